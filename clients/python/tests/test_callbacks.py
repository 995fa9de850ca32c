"""Callbacks with tiny stand-ins of the frameworks: make test-frameworks runs the real ones.

A stand-in has what a framework calls, in the order in which it calls it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import dpfront
from dpfront import PrivacyMismatch, Study
from dpfront.integrations import huggingface, keras, lightning, opake
from dpfront.integrations._run import TrialRun, batch_size, validation_metrics
from dpfront.samplers import PoissonBatches

from .frameworks.mistakes import (
    CONFIGURATION,
    DELTA,
    LOTS,
    MISTAKES,
    PRIVACY,
    RECORDS,
    check,
    make_study,
)
from .test_opacus import Engine, UniformWithReplacementSampler, ok_case


@pytest.fixture(autouse=True)
def bases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts base classes of callbacks in the place of the frameworks."""
    for name, attribute in [
        ("lightning.pytorch.callbacks", "Callback"),
        ("transformers", "TrainerCallback"),
        ("keras.callbacks", "Callback"),
    ]:
        module = ModuleType(name)
        setattr(module, attribute, type(attribute, (), {}))
        monkeypatch.setitem(sys.modules, name, module)


class Array:
    """A stand-in of a tensor."""

    def __init__(self, *shape: int) -> None:
        self.shape = shape


def engine_of(trial: dpfront.Trial, mistake: str | None) -> Engine:
    engine: Any = Engine(
        ok_case(
            noise_multiplier=trial["sigma"] * (0.5 if mistake == "noise" else 1),
            sample_rate=1 / 16 if mistake == "batch size" else 1 / LOTS,
            lots=16 if mistake == "batch size" else LOTS,
        )
    )
    engine.get_epsilon = lambda delta: 1.0
    return engine  # type: ignore[no-any-return]


def shuffled() -> Any:
    return type("BatchSampler", (), {"__len__": lambda _: LOTS, "__iter__": lambda _: iter(())})()


def epochs_of(trial: dpfront.Trial, mistake: str | None) -> Iterator[int]:
    return iter(range(trial["epochs"] + (mistake == "steps")))


def with_lightning(trial: dpfront.Trial, mistake: str | None) -> None:
    engine = engine_of(trial, mistake)
    callback = lightning.trial_callback(trial, engine)
    callback.setup(None, None, "fit")
    _, optimizer, loader = engine.make_private()
    if mistake == "sampler":
        loader = SimpleNamespace(batch_sampler=shuffled())
    trainer = SimpleNamespace(train_dataloader=loader, callback_metrics={}, should_stop=False)
    for epoch in epochs_of(trial, mistake):
        engine.epsilon = ok_case()["epochs"][min(epoch, 1)]["epsilon"]
        callback.on_train_epoch_start(trainer, None)
        for k, _ in enumerate(loader.batch_sampler):
            callback.on_train_batch_start(trainer, None, [Array(1, 4), Array(1)], k)
            engine.step(optimizer.noise_multiplier, 1 / len(loader.batch_sampler))
        if mistake == "delta":
            engine.get_epsilon(DELTA * 100)  # type: ignore[attr-defined]
        trainer.callback_metrics = {"val_accuracy": 0.5, "accuracy": 0.9}
        callback.on_train_epoch_end(trainer, None)
    callback.on_fit_end(trainer, None)
    callback.teardown(trainer, None, "fit")


def with_huggingface(trial: dpfront.Trial, mistake: str | None) -> None:
    engine = engine_of(trial, mistake)
    _, optimizer, loader = engine.make_private()
    optimizer.zero_grad = lambda: None
    if mistake == "sampler":
        loader = SimpleNamespace(batch_sampler=shuffled())
    callback = huggingface.trial_callback(trial, engine)
    control = SimpleNamespace(should_training_stop=False)
    wrapped = SimpleNamespace(optimizer=optimizer)  # as accelerate does
    callback.on_train_begin(
        None, None, control, optimizer=wrapped, train_dataloader=loader, model=None
    )
    for epoch in epochs_of(trial, mistake):
        engine.epsilon = ok_case()["epochs"][min(epoch, 1)]["epsilon"]
        for _ in loader.batch_sampler:
            engine.step(optimizer.noise_multiplier, 1 / len(loader.batch_sampler))
            callback.on_step_end(None, None, control)
        if mistake == "delta":
            engine.get_epsilon(DELTA * 100)  # type: ignore[attr-defined]
        callback.on_evaluate(None, None, control, {"eval_accuracy": 0.5, "epoch": epoch})
    callback.on_train_end(None, None, control)


def with_keras(trial: dpfront.Trial, mistake: str | None) -> None:
    lots = RECORDS // trial["batch_size"]
    callback = keras.trial_callback(trial)
    callback.model = SimpleNamespace(
        stop_training=False,
        get_noise_multiplier=lambda: trial["sigma"] * (0.5 if mistake == "noise" else 1),
        non_trainable_weights=[
            SimpleNamespace(name="_optimizer_steps", numpy=lambda: SimpleNamespace(item=lambda: 0))
        ],
        _dp_params=SimpleNamespace(
            poisson_sampling_in_fit=mistake != "sampler",
            gradient_accumulation_steps=1,
            batch_size=trial["batch_size"] // (2 if mistake == "batch size" else 1),
            train_size=RECORDS,
            delta=DELTA * (100 if mistake == "delta" else 1),
            seed=2**60,
        ),
    )
    callback.on_train_begin()
    for _ in epochs_of(trial, mistake):
        for k in range(lots):
            callback.on_train_batch_end(k)
        callback.on_epoch_end(0, {"accuracy": 0.9, "val_accuracy": 0.5})
    callback.on_train_end()


class Opake:
    """A stand-in of opake: its sampler, which is its own loader, and its noise function."""

    def __init__(self, trial: dpfront.Trial, **changes: Any) -> None:
        poisson = {"sample_rate": 1 / LOTS, "truncated_batch_size": None, "n_steps": None}
        fields = {"data_source": range(RECORDS), "consumed": 0, **poisson, **changes}
        self.sampler = made("PoissonSampler" if "k" not in changes else "KOutOfTSampler", **fields)
        self.batch_sampler = self.sampler
        self.sigma = trial["sigma"]
        self.state = made(
            "GaussianNoiseState", _step_counter=0, _rng_key=SimpleNamespace(seed=2**60)
        )

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.sampler.n_steps or 10**6))

    def noise(self, norms: Any, state: Any) -> tuple[Any, Any]:
        """Adds noise to a sum with these norms, of one group or of several."""
        many = isinstance(norms, dict)
        total = sum(norms.values()) if many else norms
        deviations = (  # as opake divides noise among groups
            SimpleNamespace(values={k: self.sigma * (c * total) ** 0.5 for k, c in norms.items()})
            if many
            else self.sigma * norms
        )
        noisy = SimpleNamespace(
            max_norm=SimpleNamespace(values=norms) if many else norms, noise_stddev=deviations
        )
        following = made(
            "GaussianNoiseState", _step_counter=state._step_counter + 1, _rng_key=state._rng_key
        )
        return noisy, following


def made(name: str, **attributes: Any) -> Any:
    """An object of a class of opake."""
    return type(name, (SimpleNamespace,), {"__module__": "opake.api"})(**attributes)


def with_opake(trial: dpfront.Trial, mistake: str | None) -> None:
    theirs = Opake(
        trial,
        sample_rate=(0.5 if mistake == "batch size" else 1) / LOTS,
        n_steps=LOTS * 3 if mistake == "steps" else None,
    )
    theirs.sigma *= 0.5 if mistake == "noise" else 1
    if mistake == "sampler":
        theirs.batch_sampler = shuffled()

    def evaluate() -> dict[str, float]:
        return {"accuracy": 0.5} | ({"epsilon": 0.1} if mistake == "delta" else {})

    lots, noise = opake.trial_steps(trial, theirs, theirs.noise, evaluate)
    state = theirs.state
    for _ in lots:
        _, state = noise(0.7, state)


FRAMEWORKS: dict[str, tuple[Callable[[dpfront.Trial, str | None], None], dpfront.Privacy]] = {
    "lightning": (with_lightning, PRIVACY),
    "huggingface": (with_huggingface, PRIVACY),
    "opake": (with_opake, PRIVACY),
    "keras": (
        with_keras,
        keras.keras_privacy(dataset_size=RECORDS, noise_multiplier="sigma", delta=DELTA),
    ),
}


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("mistake", [None, *MISTAKES])
def test_five_mistakes(client: dpfront.Client, framework: str, mistake: str | None) -> None:
    train, privacy = FRAMEWORKS[framework]
    study = make_study(client, privacy)
    check(study, mistake, train)
    if mistake is None:  # validation values are preferred
        assert study.trials()[0].raw.final_measurement.metrics["accuracy"].value == 0.5


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_server_asks_to_stop(client: dpfront.Client, framework: str) -> None:
    train, privacy = FRAMEWORKS[framework]
    study = make_study(client, privacy)
    trial = study.ask(fixed={**CONFIGURATION, "epochs": 1})
    study.stop_trial(trial.number, "enough")
    train(trial, None)
    assert study.trials()[0].raw.final_measurement.step == 1


@pytest.mark.parametrize(
    ("what", "norms", "states"),
    [
        ("noise state", [1.0, 1.0], [0, 0]),  # the same noise twice
        ("noise", [None, 1.0], [0, 0]),  # a batch without noise
        ("clipping norm", [1.0, 0.9], [0, 1]),
        ("clipping norm", [{"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 1.0}], [0, 1]),
        ("noise multiplier", [0.0], [0]),
        ("", [{"a": 1.0, "b": 2.0}] * LOTS * 2, range(LOTS * 2)),
    ],
)
def test_noise_of_opake(
    client: dpfront.Client, what: str, norms: list[Any], states: list[int]
) -> None:
    trial = make_study(client).ask(fixed=CONFIGURATION)
    theirs = Opake(trial)

    def train() -> None:
        lots, noise = opake.trial_steps(trial, theirs, theirs.noise, lambda: 0.5)
        for _, norm, at in zip(lots, [*norms, 1.0], [*states, 0], strict=False):
            theirs.state._step_counter = at
            if norm is not None:
                noise(norm, theirs.state)

    if not what:
        train()
        assert trial.ended
        assert not trial.seeded
        return
    with pytest.raises(PrivacyMismatch) as caught:
        train()
    assert caught.value.what == what
    assert trial.ended


def test_two_streams_of_opake(client: dpfront.Client) -> None:
    """Gradients and their squares share the noise multiplier."""
    trial = make_study(client).ask(fixed=CONFIGURATION)
    theirs = Opake(trial)
    theirs.sigma *= 2**0.5

    def paired(norm: Any, state: Any) -> Any:
        return (theirs.noise(norm, state)[0], theirs.noise(norm**2, state)[0]), state

    theirs.state._rng_key.seed = 42
    _, noise = opake.trial_steps(trial, theirs, paired)
    noise(0.7, theirs.state)
    assert trial.seeded


@pytest.mark.parametrize(
    ("what", "changes"),
    [
        ("records", {"data_source": range(400)}),
        ("sampler", {"truncated_batch_size": 100}),
        ("sampler", {"k": 2, "t": LOTS * 2, "allocation": "block"}),
        ("allocation", {"k": 2, "t": LOTS * 2, "allocation": "total"}),
        ("allocation", {"k": 2, "t": LOTS * 2 + 1, "allocation": "block"}),
        ("steps", {"consumed": 3}),
    ],
)
def test_samplers_of_opake(client: dpfront.Client, what: str, changes: dict[str, Any]) -> None:
    trial = make_study(client).ask(fixed=CONFIGURATION)
    theirs = Opake(trial, **changes)
    with pytest.raises(PrivacyMismatch) as caught:
        opake.trial_steps(trial, theirs, theirs.noise)
    assert caught.value.what == what
    assert trial.ended


def test_a_noise_function_that_is_not_of_opake(client: dpfront.Client) -> None:
    trial = make_study(client).ask(fixed=CONFIGURATION)
    theirs = Opake(trial)
    _, noise = opake.trial_steps(trial, theirs, theirs.noise)
    with pytest.raises(PrivacyMismatch, match="give trial_steps its function"):
        noise(1.0, SimpleNamespace(_step_counter=0))


def test_an_ordinary_optimizer(client: dpfront.Client) -> None:
    trial = make_study(client).ask(fixed=CONFIGURATION)
    callback = huggingface.trial_callback(trial, Engine(ok_case()))
    with pytest.raises(PrivacyMismatch, match="give Trainer the optimizer of make_private"):
        callback.on_train_begin(None, None, None, optimizer=object(), model=None)
    assert trial.ended


def test_names_of_metrics(client: dpfront.Client) -> None:
    trial = make_study(client).ask()
    logged = {"accuracy": 1, "eval_accuracy": 2, "val_accuracy": 3, "f1": 4, "epsilon": 5}
    assert validation_metrics(trial, logged, None) == {"accuracy": 3, "epsilon": 5}
    assert validation_metrics(trial, {"f1": 4}, {"accuracy": "f1"}) == {"accuracy": 4}
    with pytest.raises(ValueError, match="metric accuracy: f2 must be logged in every epoch"):
        validation_metrics(trial, logged, {"accuracy": "f2"})


def test_sizes_of_batches() -> None:
    for batch in (Array(7, 2), [Array(7, 2), Array(3)], {"x": (Array(7),), "y": Array(3)}):
        assert batch_size(batch) == 7


# What a loop must have shown before a report.


@pytest.fixture
def run(client: dpfront.Client) -> TrialRun:
    return TrialRun(make_study(client).ask(fixed=CONFIGURATION), "a test")


def test_a_report_of_nothing(run: TrialRun) -> None:
    with pytest.raises(PrivacyMismatch, match=r"^sampler: none that could be checked"):
        run.report(0.5)
    with pytest.raises(PrivacyMismatch):  # again: it cannot be finished
        run.end()


@pytest.mark.parametrize("missing", ["noise", "steps"])
def test_a_report_without(run: TrialRun, missing: str) -> None:
    run.check_sampler("Poisson", 1 / LOTS)
    if missing == "steps":
        run.check_noise(1.0)
    with pytest.raises(PrivacyMismatch) as caught:
        run.report(0.5)
    assert caught.value.what == missing


def test_more_steps_than_an_epoch_has(run: TrialRun) -> None:
    run.check_sampler("Poisson", 1 / LOTS, lots=LOTS + 1)
    run.check_noise(1.0)
    run.step(LOTS + 1)
    with pytest.raises(PrivacyMismatch, match=r"^steps: 9 in training, 8 in the study"):
        run.report(0.5)


def test_a_loop_in_jax_needs_batches_it_knows(client: dpfront.Client) -> None:
    from dpfront.integrations.jax import trial_steps

    def steps(study: Study, batches: Any) -> None:
        next(trial_steps(study.ask(fixed=CONFIGURATION), batches, None, lambda: 0.5))

    for batches, what in [
        (UniformWithReplacementSampler(1 / 8, 8), "sampler"),
        (PoissonBatches(400, 64), "records"),
        (PoissonBatches(500, 32), "sampling probability"),
        (PoissonBatches(500, 64), "noise"),
    ]:
        with pytest.raises(PrivacyMismatch) as caught:
            steps(make_study(client), batches)
        assert caught.value.what == what
