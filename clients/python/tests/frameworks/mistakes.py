"""Five mistakes that every integration is tried with, and the study of their trial."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Callable
from typing import Any

import pytest

import dpfront
from dpfront import Float, Int, Maximize, PrivacyMismatch, Study

RECORDS, DELTA = 500, 1e-5
CONFIGURATION: dict[str, Any] = {"sigma": 1.0, "batch_size": 64, "epochs": 2}
LOTS = 8  # of an epoch, by Opacus's convention
PRIVACY = dpfront.opacus(
    dataset_size=RECORDS, noise_multiplier="sigma", epochs="epochs", delta=DELTA
)
ALLOCATION = dpfront.opacus(
    dataset_size=RECORDS,
    noise_multiplier="sigma",
    epochs="epochs",
    delta=DELTA,
    poisson_sampling=False,
    random_allocation=True,
)
# Each with the part that the error names.
MISTAKES = {
    "sampler": ("sampler", "allocation"),
    "batch size": ("sampling probability", "batch size", "steps in an epoch"),
    "noise": ("noise multiplier",),
    "steps": ("steps",),
    "delta": ("delta", "epsilon"),
}
_ids = itertools.count(1)


def marks(*packages: str) -> list[pytest.MarkDecorator]:
    """Returns the marks of a test module that needs packages."""
    missing = [name for name in packages if not importlib.util.find_spec(name)]
    return [
        pytest.mark.frameworks,
        pytest.mark.filterwarnings("ignore"),  # of the packages
        pytest.mark.skipif(bool(missing), reason=f"make test-frameworks: {', '.join(missing)}"),
    ]


def make_study(client: dpfront.Client, privacy: dpfront.Privacy = PRIVACY, **fields: Any) -> Study:
    """Creates a study whose suggestions are random, and so fast."""
    return Study.create(
        client,
        f"framework-{next(_ids)}",
        parameters=[
            Float("sigma", 0.5, 4, log=True),
            Int("batch_size", 2, 256),
            Int("epochs", 1, 4),
        ],
        metrics=[Maximize("accuracy", 0), dpfront.epsilon(privacy)],
        algorithm="random",
        **{"checkpoint_parameter": "epochs", **fields},
    )


def check(
    study: Study,
    mistake: str | None,
    train: Callable[[dpfront.Trial, str | None], object],
    configuration: dict[str, Any] = CONFIGURATION,
) -> None:
    """Runs a program with a mistake, or without one, and checks what becomes of the trial."""
    trial = study.ask(fixed=configuration)
    if mistake is None:
        train(trial, None)
        (info,) = study.trials()
        assert info.state == "succeeded"
        assert [m.step for m in info.raw.measurements] == [1, 2]
        return
    with pytest.raises(PrivacyMismatch) as caught:
        train(trial, mistake)
    assert caught.value.what in MISTAKES[mistake]
    assert trial.ended
    assert study.trials()[0].state == "queued"
