"""opacus_trial against what Opacus did, as recorded: test_frameworks.py runs the real one."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import dpfront
from dpfront import PrivacyMismatch, Study
from dpfront.samplers import RandomAllocationSampler

from .opacus_examples import CASES, CONFIGURATION, EXAMPLES, FIXTURE, FOLDER, MISTAKES, make_study

RECORDED = json.loads(FIXTURE.read_text())
_ids = itertools.count(1)
DRAWN = 4817873509824692282  # a seed that PyTorch drew


@pytest.fixture
def study(client: dpfront.Client) -> Study:
    return make_study(client, f"opacus-{next(_ids)}")


class UniformWithReplacementSampler:
    """A stand-in of Opacus's, without records."""

    generator = None

    def __init__(self, sample_rate: float, lots: int) -> None:
        self.sample_rate, self.lots = sample_rate, lots

    def __len__(self) -> int:
        return self.lots

    def __iter__(self) -> Iterator[list[int]]:
        return iter([[0]] * self.lots)


UniformWithReplacementSampler.__module__ = "opacus.utils.uniform_sampler"


class Engine:
    """A stand-in of PrivacyEngine with what it was recorded to do."""

    secure_mode = False

    def __init__(self, case: dict[str, Any]) -> None:
        self.case = case
        self.hooks: dict[int, Callable[..., None]] = {}
        self.epsilon = 0.0
        self.accountant = SimpleNamespace(
            history=[],
            mechanism=lambda: case.get("accountant", "prv"),
            get_epsilon=lambda _: self.epsilon,
        )

    def make_private(self, **_: Any) -> tuple[Any, Any, Any]:
        sampler: Any
        if self.case["sampler"].endswith(".UniformWithReplacementSampler"):
            sampler = UniformWithReplacementSampler(self.case["sample_rate"], self.case["lots"])
        else:
            module, name = self.case["sampler"].rsplit(".", 1)
            sampler = type(name, (), {"__module__": module})()
        optimizer = SimpleNamespace(
            noise_multiplier=self.case["noise_multiplier"],
            max_grad_norm=1.0,
            generator=None,
            grad_samples=[[0.0]],
            clip_and_accumulate=lambda: None,
            add_noise=lambda: None,
            original_optimizer=SimpleNamespace(register_step_post_hook=self.hook),
        )
        return None, optimizer, SimpleNamespace(batch_sampler=sampler)

    def hook(self, function: Callable[..., None]) -> Any:
        self.hooks[0] = function
        return SimpleNamespace(remove=self.hooks.clear)

    def step(self, noise_multiplier: float, probability: float) -> None:
        """Makes a step, and accounts for it."""
        total = 1 + sum(entry[2] for entry in self.accountant.history)
        self.accountant.history = [(noise_multiplier, probability, total)]
        for function in list(self.hooks.values()):
            function()


def ok_case(**changes: Any) -> dict[str, Any]:
    return {**RECORDED["mnist, none"], **changes}


def train(engine: Engine, epochs: int = 2, generator: Any = None) -> None:
    """Trains as a correct program does."""
    case = engine.case
    _, optimizer, loader = engine.make_private(noise_generator=generator)
    for epoch in range(epochs):
        engine.epsilon = case["epochs"][min(epoch, len(case["epochs"]) - 1)].get("epsilon", 0)
        for _ in loader.batch_sampler:
            engine.step(optimizer.noise_multiplier, 1 / len(loader.batch_sampler))


def replay(engine: Engine) -> None:
    """Draws lots and makes steps as they were recorded."""
    *_, loader = engine.make_private()
    drawn = steps = 0
    for epoch in engine.case["epochs"]:
        lots = iter(loader.batch_sampler) if epoch["drawn"] > drawn else iter(())
        noise_multiplier, probability, _ = epoch["history"][-1]
        engine.epsilon = epoch.get("epsilon", 0)
        while steps < epoch["steps"]:
            next(lots, None)
            steps += 1
            engine.step(noise_multiplier, probability)
        assert next(lots, None) is None
        drawn = epoch["drawn"]


@pytest.mark.parametrize(("example", "mistake"), CASES)
def test_what_opacus_did(study: Study, example: str, mistake: str) -> None:
    case = RECORDED[f"{example}, {mistake}"]
    trial, engine = study.ask(fixed=CONFIGURATION), Engine(case)
    if mistake == "none":
        with dpfront.opacus_trial(trial, engine, lambda: 0.5):
            replay(engine)
        check_reported(study, trial)
        return
    with pytest.raises(PrivacyMismatch) as caught, dpfront.opacus_trial(trial, engine, lambda: 0.5):
        replay(engine)
    assert caught.value.what == MISTAKES[mistake][2]
    assert str(caught.value) == case["mismatch"]["text"]
    check_given_back(study, trial)
    assert "make_private" not in vars(engine)


def check_reported(study: Study, trial: dpfront.Trial) -> None:
    (info,) = study.trials()
    assert info.state == "succeeded"
    assert [m.step for m in info.raw.measurements] == [1, 2]
    assert info.raw.final_measurement.step == 2
    assert info.raw.final_measurement.metrics["epsilon"].value == trial.epsilon


def check_given_back(study: Study, trial: dpfront.Trial) -> None:
    assert trial.ended
    (info,) = study.trials()
    assert info.state == "queued"
    assert not info.raw.measurements


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_differ_by_five_lines_at_most(example: str) -> None:
    """Indentation and blank lines are not counted."""

    def lines(name: str) -> list[str]:
        text = (FOLDER / name).read_text()
        return [line.strip() for line in text.splitlines() if line.strip()]

    diff = list(difflib.ndiff(lines(f"{example}.py"), lines(f"{example}_tuned.py")))
    added = [line for line in diff if line.startswith("+ ")]
    removed = [line for line in diff if line.startswith("- ")]
    assert 0 < len(added) <= 5
    assert len(removed) < len(added)
    assert any("dpfront.opacus_trial(" in line for line in added)


def fails(study: Study, engine: Engine, run: Callable[[Engine], None], what: str) -> str:
    """Checks that a run is refused, and gives its trial back. Returns the error."""
    trial = study.ask(fixed=CONFIGURATION)
    with pytest.raises(PrivacyMismatch) as caught, dpfront.opacus_trial(trial, engine, lambda: 0.5):
        run(engine)
    assert caught.value.what == what
    assert study.trials()[0].state == "queued"
    return str(caught.value)


def test_runs_of_another_length(study: Study) -> None:
    error = fails(study, Engine(ok_case()), lambda e: train(e, 3), "steps")
    assert error.startswith("steps: more than 16 in training, 16 in the study")


def test_a_run_that_is_too_short_without_checkpoints(client: dpfront.Client) -> None:
    study = make_study(client, f"opacus-{next(_ids)}", checkpoint_parameter="")
    error = fails(study, Engine(ok_case()), lambda e: train(e, 1), "steps")
    assert error.startswith("steps: 8 in training, 16 in the study; train 2 epochs")


def test_a_run_may_end_at_a_checkpoint(study: Study) -> None:
    trial, engine = study.ask(fixed=CONFIGURATION), Engine(ok_case())
    with dpfront.opacus_trial(trial, engine, lambda: 0.5):
        train(engine, 1)
    (info,) = study.trials()
    assert info.state == "succeeded"
    assert info.raw.final_measurement.step == 1


@pytest.mark.parametrize("how", ["report", "tell"])
def test_results_before_their_step(study: Study, how: str) -> None:
    """A loop over range(epochs) that reports its variable is one behind, and so is its ε."""

    def behind(engine: Engine) -> None:
        _, _, loader = engine.make_private()
        for epoch in range(2):
            engine.epsilon = engine.case["epochs"][epoch]["epsilon"]
            for _ in loader.batch_sampler:
                engine.step(1.0, 1 / 8)
            if epoch == 1 and how == "report":
                trial.report(epoch, accuracy=0.5)
        trial.tell(accuracy=0.5, step=1)

    trial, engine = study.ask(fixed=CONFIGURATION), Engine(ok_case())
    with pytest.raises(PrivacyMismatch) as caught, dpfront.opacus_trial(trial, engine):
        behind(engine)
    assert str(caught.value).startswith("step of a result: 1 after 2 epochs in training")
    check_given_back(study, trial)
    assert "report" not in vars(trial)


def test_lots_without_a_step(study: Study) -> None:
    def skip(engine: Engine) -> None:
        *_, loader = engine.make_private()
        for _ in range(2):
            for k, _ in enumerate(loader.batch_sampler):
                if k != 3:  # an empty lot, for example
                    engine.step(1.0, 1 / 8)

    assert "7 in training, 8 in the study" in fails(
        study, Engine(ok_case()), skip, "steps in an epoch"
    )


def test_reading_a_pass_without_a_step_is_allowed(study: Study) -> None:
    trial, engine = study.ask(fixed=CONFIGURATION), Engine(ok_case())

    def read_then_train() -> None:
        made = engine.make_private()
        list(made[-1].batch_sampler)
        engine.epsilon = ok_case()["epochs"][0]["epsilon"]
        for _ in made[-1].batch_sampler:
            engine.step(1.0, 1 / 8)

    with dpfront.opacus_trial(trial, engine, lambda: 0.5):
        read_then_train()
    assert trial.ended


def test_a_sampler_that_changes_later(study: Study) -> None:
    def change(engine: Engine) -> None:
        *_, loader = engine.make_private()
        engine.epsilon = ok_case()["epochs"][0]["epsilon"]
        for _ in range(2):
            for _ in loader.batch_sampler:
                engine.step(1.0, 1 / 8)
            loader.batch_sampler.sample_rate = 0.25

    fails(study, Engine(ok_case()), change, "sampling probability")


def test_noise_that_changes_later(study: Study) -> None:
    def change(engine: Engine) -> None:
        *_, loader = engine.make_private()
        for k, _ in enumerate(loader.batch_sampler):
            engine.step(1.0 if k < 4 else 0.9, 1 / 8)

    assert fails(study, Engine(ok_case()), change, "noise multiplier").startswith(
        "noise multiplier: 0.9 in training, 1.0 in the study"
    )


def test_steps_that_opacus_did_not_account(study: Study) -> None:
    def detached(engine: Engine) -> None:
        *_, loader = engine.make_private()
        for _ in loader.batch_sampler:
            engine.hooks[0]()

    fails(study, Engine(ok_case()), detached, "accountant")


def test_an_accountant_that_disagrees(study: Study) -> None:
    case = ok_case()
    case["epochs"] = [{**epoch, "epsilon": epoch["epsilon"] * 0.9} for epoch in case["epochs"]]
    assert "ε after epoch 1: 2.8" in fails(study, Engine(case), train, "ε after epoch 1")


def test_an_accountant_that_gives_no_bound(study: Study) -> None:
    case = ok_case()
    case["epochs"] = [{**epoch, "epsilon": math.inf} for epoch in case["epochs"]]
    trial, engine = study.ask(fixed=CONFIGURATION), Engine(case)
    with dpfront.opacus_trial(trial, engine, lambda: 0.5):
        train(engine)
    assert trial.ended


def test_lots_that_are_accumulated(study: Study) -> None:
    """Opacus accounts for a step on the gradients of two lots as one with twice the probability."""

    def accumulate(engine: Engine) -> None:
        *_, loader = engine.make_private()
        for k, _ in enumerate(loader.batch_sampler):
            if k % 2:
                engine.step(1.0, 2 / 8)

    fails(study, Engine(ok_case()), accumulate, "sampling probability")


def test_an_engine_with_a_history(study: Study) -> None:
    engine = Engine(ok_case())
    engine.accountant.history = [(1.0, 0.125, 8)]
    assert "make a new PrivacyEngine" in fails(study, engine, train, "accountant")


def test_make_private_once(study: Study) -> None:
    fails(study, Engine(ok_case()), lambda _: None, "make_private")

    def twice(engine: Engine) -> None:
        engine.make_private()
        engine.make_private()

    fails(study, Engine(ok_case()), twice, "make_private")


def test_a_mismatch_that_training_code_catches(study: Study) -> None:
    def careless(engine: Engine) -> None:
        with contextlib.suppress(Exception):
            engine.make_private()

    fails(study, Engine(ok_case(noise_multiplier=0.5)), careless, "noise multiplier")


def test_distributed_training_is_refused(study: Study) -> None:
    kind = "opacus.utils.uniform_sampler.DistributedUniformWithReplacementSampler"
    error = fails(study, Engine(ok_case(sampler=kind)), train, "sampler")
    assert "train in one process" in error


def test_the_server_asks_to_stop(study: Study) -> None:
    trial, engine = study.ask(fixed=CONFIGURATION), Engine(ok_case())
    values = iter([0.4, 0.5])

    def evaluate() -> float:
        trial._stop_reason = "enough"  # as after an answer of the server
        return next(values)

    reached = False
    with dpfront.opacus_trial(trial, engine, evaluate):
        train(engine)
        reached = True
    assert not reached
    (info,) = study.trials()
    assert info.state == "succeeded"
    assert info.raw.final_measurement.step == 1


def test_the_caller_may_report(study: Study) -> None:
    trial, engine = study.ask(fixed=CONFIGURATION), Engine(ok_case())
    with trial:
        with dpfront.opacus_trial(trial, engine):
            train(engine)
        assert not trial.ended
        trial.tell(accuracy=0.7)
    assert study.trials()[0].raw.final_measurement.metrics["accuracy"].value == 0.7


@pytest.mark.parametrize(
    ("seed", "cuda", "secure", "generator", "seeded"),
    [
        (42, None, False, None, True),
        (DRAWN, None, False, None, False),
        (DRAWN, None, False, object(), True),
        (42, None, True, None, False),
        (DRAWN, 42, False, None, True),
        (DRAWN, DRAWN, False, None, False),
    ],
)
def test_seeded_runs_are_marked(
    study: Study,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    cuda: int | None,
    secure: bool,
    generator: Any,
    seeded: bool,
) -> None:
    torch = SimpleNamespace(
        initial_seed=lambda: seed,
        cuda=SimpleNamespace(is_initialized=lambda: cuda is not None, initial_seed=lambda: cuda),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    trial, engine = study.ask(fixed=CONFIGURATION), Engine(ok_case())
    engine.secure_mode = secure
    with dpfront.opacus_trial(trial, engine, lambda: 0.5):
        train(engine, generator=generator)
    assert study.trials()[0].raw.final_measurement.seeded is seeded


def test_where_opacus_rounds_the_steps_of_an_epoch(client: dpfront.Client) -> None:
    """1 / (1 / 93) is below 93: Opacus makes 92 steps, and accounts for 1/92."""
    assert int(1 / (1 / 93)) == 92
    spec = dpfront.opacus(dataset_size=930, noise_multiplier="sigma", epochs="epochs", delta=1e-5)
    study = make_study(client, f"opacus-{next(_ids)}", privacy=spec)
    trial = study.ask(fixed={**CONFIGURATION, "batch_size": 10})
    ours = client.epsilon_curve(spec, [1, 2], batch_size=10, sigma=1.0, epochs=2)
    case = ok_case(sample_rate=1 / 93, lots=92)
    case["epochs"] = [{"epsilon": g.epsilon + 0.01} for g in ours]
    engine = Engine(case)
    with dpfront.opacus_trial(trial, engine, lambda: 0.5):
        train(engine)
    assert trial.ended


def test_a_study_with_drop_last_and_one_under_replace_one(client: dpfront.Client) -> None:
    """The loader has 7 lots there, and noise is relative to twice the clipping norm here."""
    spec = dpfront.opacus(
        dataset_size=500, noise_multiplier="sigma", epochs="epochs", delta=1e-5, drop_last=True
    )
    ours = client.epsilon_curve(spec, [7, 14], batch_size=64, sigma=1.0, epochs=1)
    case = ok_case(sample_rate=1 / 7, lots=7)
    case["epochs"] = [{"epsilon": g.epsilon + 0.01} for g in ours]
    study = make_study(client, f"opacus-{next(_ids)}", privacy=spec)
    trial, engine = study.ask(fixed=CONFIGURATION), Engine(case)
    with dpfront.opacus_trial(trial, engine, lambda: 0.5):
        train(engine)
    assert trial.ended

    spec = dpfront.opacus(dataset_size=500, noise_multiplier="sigma", epochs="epochs", delta=1e-5)
    spec = dataclasses.replace(spec, adjacency="replace_one")
    study = make_study(client, f"opacus-{next(_ids)}", privacy=spec)
    error = fails(study, Engine(ok_case()), train, "noise multiplier")
    assert "1.0 in training, 2.0 in the study" in error
    assert "not by 2C" in error


@pytest.mark.parametrize(
    ("privacy", "error"),
    [
        (dpfront.Privacy(dpfront.privacy.Gaussian(1, "sigma"), 1e-5, "add_remove"), "gaussian"),
        (
            dpfront.paper(
                dataset_size=500,
                batch_size="batch_size",
                noise_multiplier="sigma",
                epochs="epochs",
                delta=1e-5,
            ),
            "SAMPLING_FIXED_SIZE",
        ),
    ],
)
def test_other_mechanisms_are_refused(
    client: dpfront.Client, privacy: dpfront.Privacy, error: str
) -> None:
    study = make_study(client, f"opacus-{next(_ids)}", privacy=privacy, checkpoint_parameter="")
    trial = study.ask(fixed=CONFIGURATION)
    with (
        pytest.raises(ValueError, match=f"metric epsilon: .*{error}"),
        dpfront.opacus_trial(trial, Engine(ok_case())),
    ):
        pass


def allocated(client: dpfront.Client, **fields: Any) -> Study:
    spec = dpfront.opacus(
        dataset_size=500,
        noise_multiplier="sigma",
        delta=1e-5,
        poisson_sampling=False,
        random_allocation=True,
        **{"epochs": "epochs", **fields},
    )
    return make_study(client, f"opacus-{next(_ids)}", privacy=spec)


class AllocatingEngine(Engine):
    """A stand-in that leaves the loader's sampler as it is, as poisson_sampling=False does."""

    def __init__(self, sampler: Any) -> None:
        super().__init__(ok_case())
        self.sampler = sampler

    def make_private(self, **options: Any) -> tuple[Any, Any, Any]:
        _, optimizer, _ = super().make_private(**options)
        return None, optimizer, SimpleNamespace(batch_sampler=self.sampler)


def test_random_allocation(client: dpfront.Client) -> None:
    study, sampler = allocated(client), RandomAllocationSampler(500, 8)
    trial, engine = study.ask(fixed=CONFIGURATION), AllocatingEngine(sampler)
    with dpfront.opacus_trial(trial, engine, lambda: 0.5):
        train(engine)
    (info,) = study.trials()
    assert [m.step for m in info.raw.measurements] == [1, 2]
    assert not info.raw.final_measurement.seeded
    assert type(sampler) is RandomAllocationSampler
    assert sampler.drawn == 16


@pytest.mark.parametrize(
    ("sampler", "what"),
    [
        (RandomAllocationSampler(500, 4), "steps in an epoch"),
        (RandomAllocationSampler(400, 8), "records"),
        (RandomAllocationSampler(500, 8, fresh=False), "allocation"),
        (UniformWithReplacementSampler(1 / 8, 8), "sampler"),
    ],
)
def test_other_allocations(client: dpfront.Client, sampler: Any, what: str) -> None:
    fails(allocated(client), AllocatingEngine(sampler), train, what)


def test_allocation_in_a_study_of_poisson_lots(study: Study) -> None:
    engine = AllocatingEngine(RandomAllocationSampler(500, 8))
    assert "poisson_sampling=True" in fails(study, engine, train, "sampler")


def test_a_length_that_cannot_be_counted(client: dpfront.Client) -> None:
    trial = allocated(client, epochs="epochs * 2").ask(fixed=CONFIGURATION)
    with (
        pytest.raises(ValueError, match=r"^epochs: must be a number or a parameter .* 2'$"),
        dpfront.opacus_trial(trial, Engine(ok_case())),
    ):
        pass


def test_another_delta(study: Study) -> None:
    def ask(engine: Any) -> None:
        engine.get_epsilon = lambda delta: 1.0
        with dpfront.opacus_trial(trial, engine, lambda: 0.5):
            assert engine.get_epsilon(1e-5) == 1.0
            engine.get_epsilon(1e-3)

    trial = study.ask(fixed=CONFIGURATION)
    with pytest.raises(PrivacyMismatch) as caught:
        ask(Engine(ok_case()))
    assert str(caught.value).startswith("delta: 0.001 in training, 1e-05 in the study")
    check_given_back(study, trial)


def test_a_reported_epsilon_that_is_too_small(study: Study) -> None:
    trial, engine = study.ask(fixed=CONFIGURATION), Engine(ok_case())
    with (
        pytest.raises(PrivacyMismatch, match=r"^epsilon: 2 in training, 3.17"),
        dpfront.opacus_trial(trial, engine, lambda: {"accuracy": 0.5, "epsilon": 2.0}),
    ):
        train(engine)


def test_a_model_in_half_precision(study: Study) -> None:
    class Half(Engine):
        def make_private(self, **options: Any) -> tuple[Any, Any, Any]:
            module, optimizer, loader = super().make_private(**options)
            optimizer.params = [SimpleNamespace(dtype="torch.bfloat16")]
            return module, optimizer, loader

    assert "torch.autocast" in fails(study, Half(ok_case()), train, "precision")
