"""A study that names its learning rate and clipping norm needs fewer runs, and says so."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import dpfront
from dpfront import (
    Client,
    DpSgd,
    DpSgdFeatures,
    Float,
    Int,
    Minimize,
    Privacy,
    Study,
    opacus,
    paper,
)
from dpfront._specs import study_spec
from dpfront.v1 import privacy_pb2

_counter = itertools.count(1)

PARAMETERS = [
    Float("lr", 1e-3, 1, log=True),
    Float("C", 0.1, 10, log=True),
    Float("noise_multiplier", 0.5, 8, log=True),
    Int("epochs", 1, 20, log=True),
]
TERMS: dict[str, Any] = {
    "dataset_size": 10000,
    "batch_size": 100,
    "noise_multiplier": "noise_multiplier",
    "epochs": "epochs",
    "delta": 1e-5,
}
NAMES: dict[str, Any] = {"learning_rate": "lr", "clipping_norm": "C"}


def new_id() -> str:
    return f"features-{next(_counter)}"


def create(client: Client, privacy: Privacy, id: str = "", **fields: Any) -> Study:
    metrics = [dpfront.epsilon(privacy), Minimize("error", 1, "logit")]
    return Study.create(client, id or new_id(), PARAMETERS, metrics, **fields)


@pytest.mark.parametrize(
    "privacy",
    [
        opacus(**TERMS, **NAMES),
        opacus(**TERMS, **NAMES, drop_last=True),
        opacus(**TERMS, **NAMES, poisson_sampling=False),
        paper(**TERMS, **NAMES),
        Privacy(
            DpSgd("fixed_size", 10000, 100, "noise_multiplier", "epochs", **NAMES),
            1e-5,
            "replace_one",
        ),
    ],
)
def test_features_are_on_by_default(client: Client, privacy: Privacy) -> None:
    study = create(client, privacy)
    assert study.info().features == "on: learning rate lr, clipping norm C"
    stored = study.spec.algorithm.dp_sgd_features
    assert (stored.learning_rate, stored.clipping_norm) == ("lr", "C")
    assert "features of DP-SGD" in str(study.info())


def test_normalized_gradients(client: Client) -> None:
    study = create(
        client, opacus(**TERMS, learning_rate=0.1, clipping_norm=1, optimizer="normalized")
    )
    assert study.info().features == "on: learning rate 0.1, clipping norm 1, normalized gradients"
    explicit = DpSgdFeatures("lr", "C", "normalized", without_public_runs=True)
    study = create(client, opacus(**TERMS), dp_sgd_features=explicit)
    assert study.info().features == (
        "on: learning rate lr, clipping norm C, normalized gradients, without public runs"
    )
    with pytest.raises(ValueError, match="optimizer: 'adam' is not one of sgd, normalized"):
        create(client, opacus(**TERMS, **NAMES, optimizer="adam"))  # type: ignore[arg-type]


def test_features_are_off(client: Client) -> None:
    study = create(client, opacus(**TERMS))
    assert study.info().features == (
        "off; add learning_rate and clipping_norm to the mechanism of metric epsilon to need "
        "fewer runs"
    )
    assert not study.spec.algorithm.HasField("dp_sgd_features")
    study = create(client, opacus(**TERMS, **NAMES), dp_sgd_features=False)
    assert study.info().features == "off"
    study = create(client, opacus(**TERMS, **NAMES), algorithm="random")
    assert study.info().features == ""
    metrics = [dpfront.epsilon(opacus(**TERMS)), Minimize("error", 1, "logit")]
    parameters = [*PARAMETERS, Float("max_grad_norm", 1, 2)]
    study = Study.create(client, new_id(), parameters, metrics)
    assert "add learning_rate='lr' and clipping_norm='max_grad_norm' to" in study.info().features


def test_the_rest_of_the_features(client: Client) -> None:
    study = create(
        client, opacus(**TERMS, **NAMES), dp_sgd_features=DpSgdFeatures(without_datasets=["adult"])
    )
    stored = study.spec.algorithm.dp_sgd_features
    assert (stored.learning_rate, list(stored.without_datasets)) == ("lr", ["adult"])
    for on in (None, True):
        create(client, opacus(**TERMS, **NAMES), id="features-again", dp_sgd_features=on)
    with pytest.raises(dpfront.AlreadyExists, match=r"study.update\(max_trials=5\) changes it"):
        create(client, opacus(**TERMS, **NAMES), id="features-again", max_trials=5)
    with pytest.raises(dpfront.InvalidArgument, match=r"learning_rate.*must be .*lr.* as in"):
        create(client, opacus(**TERMS, **NAMES), dp_sgd_features=DpSgdFeatures("lr * 2.0"))
    with pytest.raises(dpfront.InvalidArgument, match="clipping_norm: must be set with"):
        create(client, opacus(**TERMS, learning_rate="lr"))
    with pytest.raises(TypeError, match="dp_sgd_features: 'lr' is not True or False"):
        create(client, opacus(**TERMS), dp_sgd_features="lr")
    with pytest.raises(TypeError, match=r"dp_sgd_features\.learning_rate: \[\] is not a number"):
        create(client, opacus(**TERMS), dp_sgd_features=DpSgdFeatures([]))  # type: ignore[arg-type]


def test_epsilon_needs_no_learning_rate(client: Client) -> None:
    guarantee = client.epsilon(opacus(**TERMS, **NAMES), noise_multiplier=1.0, epochs=2)
    assert guarantee == client.epsilon(opacus(**TERMS), noise_multiplier=1.0, epochs=2)


def test_every_field_of_the_features() -> None:
    features = DpSgdFeatures(0.5, "C", "sgd", True, ["adult", "mnist"])
    metrics = [dpfront.epsilon(opacus(**TERMS))]
    message = study_spec(dpfront.StudySpec(PARAMETERS, metrics, dp_sgd_features=features))
    made = message.algorithm.dp_sgd_features
    assert made.learning_rate == "0.5"
    assert made.clipping_norm == "C"
    assert made.optimizer == privacy_pb2.DP_SGD_OPTIMIZER_SGD
    assert made.without_public_runs
    assert list(made.without_datasets) == ["adult", "mnist"]
