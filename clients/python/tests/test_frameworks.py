"""The examples with the real torch and Opacus, and every mistake in every one of them."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dpfront
from dpfront import Study

from .opacus_examples import (
    CASES,
    CONFIGURATION,
    EXAMPLES,
    FIXTURE,
    FOLDER,
    make_study,
    run_example,
    study_id,
)

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.filterwarnings("ignore"),  # of torch and Opacus
    pytest.mark.skipif(not importlib.util.find_spec("opacus"), reason="make test-frameworks"),
]
RECORDED = json.loads(FIXTURE.read_text())


@pytest.fixture(autouse=True)
def one_thread() -> None:
    import torch

    torch.set_num_threads(1)


@pytest.mark.parametrize(("example", "mistake"), CASES)
def test_what_opacus_does_is_as_recorded(
    client: dpfront.Client, example: str, mistake: str
) -> None:
    study = make_study(client, study_id(example, mistake))
    trial, seen = run_example(study, example, mistake)
    (info,) = study.trials()
    if mistake == "none":
        assert info.state == "succeeded"
        assert info.raw.final_measurement.step == CONFIGURATION["epochs"]
        assert not info.raw.final_measurement.seeded
    else:
        assert info.state == "queued"
        assert not info.raw.measurements
        assert seen["mismatch"]["what"]
    assert trial.ended
    recorded = RECORDED[f"{example}, {mistake}"]
    assert rounded(json.loads(json.dumps(seen))) == rounded(recorded), "make record-frameworks"


def rounded(x: Any) -> Any:
    """Numbers to eight digits: ε comes from Fourier transforms."""
    if isinstance(x, float):
        return float(f"{x:.8g}")
    if isinstance(x, dict):
        return {key: rounded(value) for key, value in x.items()}
    return [rounded(value) for value in x] if isinstance(x, list) else x


@pytest.mark.parametrize("example", EXAMPLES)
def test_programs(shared_server: Any, client: dpfront.Client, example: str) -> None:
    """As they are started: before the change alone, and after it for a study."""
    environment = {
        **os.environ,
        "DPARETO_SERVER": shared_server.address,
        "PYTHONWARNINGS": "ignore",
    }

    def run(name: str) -> None:
        process = subprocess.run(
            [sys.executable, FOLDER / name],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        assert process.returncode == 0, process.stderr

    run(f"{example}.py")
    study = make_study(client, example, max_trials=1)
    run(f"{example}_tuned.py")
    assert [t.state for t in study.trials()] == ["succeeded"]


def parts(batch_size: int = 64, records: int = 500, **loader: Any) -> tuple[Any, ...]:
    """Returns a model, its optimizer and a loader of records."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    data = TensorDataset(torch.randn(records, 4), torch.randint(2, (records,)))
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return model, optimizer, DataLoader(data, batch_size=batch_size, **loader)


def train(engine: Any, epochs: int, made: tuple[Any, ...], **options: Any) -> None:
    """Trains a model."""
    import torch

    names = ("module", "optimizer", "data_loader")
    options = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, **options}
    model, optimizer, loader = engine.make_private(**dict(zip(names, made, strict=True)), **options)
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()


@pytest.fixture
def study(client: dpfront.Client, request: pytest.FixtureRequest) -> Iterator[Study]:
    name = "".join(c if c.isalnum() else "-" for c in request.node.name.lower())
    study = make_study(client, f"frameworks-{name}"[:60].rstrip("-"))
    yield study
    study.delete()


@pytest.mark.parametrize("accountant", ["prv", "rdp", "gdp"])
def test_accountants_and_workers_that_read_ahead(study: Study, accountant: str) -> None:
    from opacus import PrivacyEngine

    trial, engine = study.ask(fixed=CONFIGURATION), PrivacyEngine(accountant=accountant)
    with dpfront.opacus_trial(trial, engine, lambda: 0.5):
        train(engine, 2, parts(num_workers=2))
    assert study.trials()[0].state == "succeeded"


def test_opacus_rounds_the_steps_of_an_epoch(client: dpfront.Client) -> None:
    from opacus import PrivacyEngine

    spec = dpfront.opacus(dataset_size=186, noise_multiplier="sigma", epochs="epochs", delta=1e-5)
    study = make_study(client, "frameworks-93", privacy=spec)
    trial, engine = study.ask(fixed={**CONFIGURATION, "batch_size": 2}), PrivacyEngine()
    with dpfront.opacus_trial(trial, engine, lambda: 0.5):
        train(engine, 2, parts(2, 186))
    assert engine.accountant.history == [(1.0, 1 / 92, 2 * 92)]
    assert study.trials()[0].state == "succeeded"


@pytest.mark.parametrize("seeding", ["none", "torch", "noise", "loader"])
def test_seeds(study: Study, seeding: str) -> None:
    import torch
    from opacus import PrivacyEngine

    torch.seed()
    trial, engine = study.ask(fixed=CONFIGURATION), PrivacyEngine()
    made = parts(generator=torch.Generator() if seeding == "loader" else None)
    options = {"noise_generator": torch.Generator()} if seeding == "noise" else {}
    if seeding == "torch":
        torch.manual_seed(1)
    with dpfront.opacus_trial(trial, engine, lambda: 0.5):
        train(engine, 2, made, **options)
    torch.seed()
    assert study.trials()[0].raw.final_measurement.seeded is (seeding != "none")


def test_a_noise_multiplier_for_a_target_is_checked(study: Study) -> None:
    from opacus import PrivacyEngine

    trial, engine = study.ask(fixed=CONFIGURATION), PrivacyEngine()
    model, optimizer, loader = parts()
    with (
        pytest.raises(dpfront.PrivacyMismatch, match=r"noise multiplier: 2.* in training, 1.0 in"),
        dpfront.opacus_trial(trial, engine, lambda: 0.5),
    ):
        engine.make_private_with_epsilon(
            module=model,
            optimizer=optimizer,
            data_loader=loader,
            target_epsilon=1.0,
            target_delta=1e-5,
            epochs=2,
            max_grad_norm=1.0,
        )


def test_mnist(binary: str, tmp_path: Path) -> None:
    """The larger example, on made-up data in MNIST's format."""
    import gzip

    import numpy as np

    source = np.random.default_rng(1)
    for kind, records in (("train", 1200), ("t10k", 100)):
        for name, header, size in (("images-idx3", 16, 784), ("labels-idx1", 8, 1)):
            body = source.integers(0, 10, (records, size), dtype=np.uint8).tobytes()
            with gzip.open(tmp_path / f"{kind}-{name}-ubyte.gz", "wb") as file:
                file.write(bytes(header) + body)
    process = subprocess.run(
        [
            sys.executable,
            FOLDER.parent / "opacus_mnist.py",
            "--data-dir",
            tmp_path,
            "--trials",
            "2",
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "DPARETO_BINARY": binary},
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert "ε by Opacus" in process.stdout


# Opacus accounts for the following as for any other run.


def steps(
    made: Any, loader: Any, criterion: Any = None, scheduler: Any = None, copies: int = 1
) -> None:
    """Trains two epochs on a number of copies of every record."""
    import torch

    model, optimizer = made[:2]
    for _ in range(int(CONFIGURATION["epochs"])):
        for x, y in loader:
            optimizer.zero_grad()
            predicted = model(torch.cat([x] * copies))
            (criterion or torch.nn.CrossEntropyLoss())(
                predicted, torch.cat([y] * copies)
            ).backward()
            optimizer.step()
            if scheduler is not None:
                scheduler.step()


@pytest.mark.parametrize(
    ("case", "what"),
    [
        ("flat", None),
        ("flat, norm changed between lots", None),
        ("flat, norm changed within a lot", "clipping norm"),
        ("flat, two copies of a record", "gradients in a step"),
        ("per layer", None),
        ("per layer, norm changed", "clipping norm"),
        ("ghost", None),
        ("ghost, split lots", None),
        ("ghost, norm changed", "clipping norm"),
        ("ghost, two copies of a record", "gradients in a step"),
        ("ghost, another criterion", "clipping"),
    ],
)
def test_clipping(study: Study, case: str, what: str | None) -> None:
    import torch
    from opacus import PrivacyEngine
    from opacus.schedulers import ExponentialGradClip
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    kind = case.split(",")[0]
    kinds: dict[str, dict[str, Any]] = {
        "flat": {"max_grad_norm": 1.0},
        "per layer": {"max_grad_norm": [1.0, 0.5], "clipping": "per_layer"},
        "ghost": {
            "max_grad_norm": 1.0,
            "grad_sample_mode": "ghost",
            "criterion": torch.nn.CrossEntropyLoss(),
        },
    }

    def run(engine: Any) -> None:
        model, optimizer, loader = parts()
        made = engine.make_private(
            module=model,
            optimizer=optimizer,
            data_loader=loader,
            noise_multiplier=1.0,
            **kinds[kind],
        )
        optimizer, loader = made[1], made[-1]
        criterion = made[2] if kind == "ghost" and "another" not in case else None
        copies = 2 if "copies" in case else 1
        scheduler = ExponentialGradClip(optimizer, gamma=0.5) if "changed" in case else None
        if "split" in case or "within" in case:
            with BatchMemoryManager(
                data_loader=loader, max_physical_batch_size=16, optimizer=optimizer
            ) as split:
                steps(made, split, criterion, scheduler, copies)
        else:
            steps(made, loader, criterion, scheduler, copies)
        assert "add_noise" in vars(optimizer)
        seen.append(optimizer)

    seen: list[Any] = []
    trial, engine = study.ask(fixed=CONFIGURATION), PrivacyEngine()
    if what is None:
        with dpfront.opacus_trial(trial, engine, lambda: 0.5):
            run(engine)
        assert study.trials()[0].state == "succeeded"
        assert "add_noise" not in vars(seen[0])
        return
    with (
        pytest.raises(dpfront.PrivacyMismatch) as caught,
        dpfront.opacus_trial(trial, engine, lambda: 0.5),
    ):
        run(engine)
    assert caught.value.what == what
    assert study.trials()[0].state == "queued"


def test_a_generator_of_the_noise_that_is_set_later(study: Study) -> None:
    import torch
    from opacus import PrivacyEngine

    trial, engine = study.ask(fixed=CONFIGURATION), PrivacyEngine()
    with dpfront.opacus_trial(trial, engine, lambda: 0.5):
        model, optimizer, loader = parts()
        made = engine.make_private(
            module=model,
            optimizer=optimizer,
            data_loader=loader,
            noise_multiplier=1.0,
            max_grad_norm=1.0,
        )
        made[1].generator = torch.Generator().manual_seed(2**40)
        steps(made, made[-1])
    assert study.trials()[0].raw.final_measurement.seeded


def test_ghost_clipping_with_split_lots_and_mixed_precision(study: Study) -> None:
    """All at once, in the way that large models are trained."""
    import torch
    from opacus import PrivacyEngine
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    trial, engine = study.ask(fixed=CONFIGURATION), PrivacyEngine()
    with dpfront.opacus_trial(trial, engine, lambda: 0.5):
        model, optimizer, loader = parts()
        model, optimizer, criterion, loader = engine.make_private(
            module=model,
            optimizer=optimizer,
            data_loader=loader,
            criterion=torch.nn.CrossEntropyLoss(),
            noise_multiplier=1.0,
            max_grad_norm=1.0,
            grad_sample_mode="ghost",
        )
        with BatchMemoryManager(
            data_loader=loader, max_physical_batch_size=16, optimizer=optimizer
        ) as split:
            for _ in range(2):
                for x, y in split:
                    optimizer.zero_grad()
                    with torch.autocast("cpu", dtype=torch.bfloat16):
                        loss = criterion(model(x), y)
                    loss.backward()
                    optimizer.step()
    assert study.trials()[0].state == "succeeded"


def test_a_model_in_half_precision(study: Study) -> None:
    import torch
    from opacus import PrivacyEngine

    trial, engine = study.ask(fixed=CONFIGURATION), PrivacyEngine()
    model, _, loader = parts()
    model = model.to(torch.bfloat16)
    with (
        pytest.raises(dpfront.PrivacyMismatch, match=r"^precision: parameters in torch.bfloat16"),
        dpfront.opacus_trial(trial, engine, lambda: 0.5),
    ):
        train(engine, 2, (model, torch.optim.SGD(model.parameters(), lr=0.1), loader))


@pytest.mark.parametrize("split", [False, True])
def test_steps_of_a_right_loop_have_no_findings(split: bool) -> None:
    from . import record_steps

    assert record_steps.replay(1, split=split)


def test_seeded_faults_of_steps_are_found() -> None:
    from . import record_steps

    for fault, finding in record_steps.FAULTS.items():
        found = record_steps.replay(2, fault)
        assert finding in [f.what for f in found.findings], fault
