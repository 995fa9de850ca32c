"""The callback in real fits of Keras 3 with JAX-Privacy."""

from __future__ import annotations

import os
import secrets
from typing import Any

import pytest

import dpfront
from dpfront.integrations.keras import keras_privacy, trial_callback

from .mistakes import DELTA, MISTAKES, RECORDS, check, make_study, marks

pytestmark = marks("keras", "jax", "jax_privacy")
PRIVACY = keras_privacy(dataset_size=RECORDS, noise_multiplier="sigma", delta=DELTA)


def fit(trial: dpfront.Trial, mistake: str | None) -> None:
    """Trains a linear model."""
    os.environ["KERAS_BACKEND"] = "jax"
    import keras
    import numpy as np
    from jax_privacy import keras_api

    x = np.random.default_rng(1).normal(size=(RECORDS, 4)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.float32)
    batch = trial["batch_size"] // (2 if mistake == "batch size" else 1)
    epochs = trial["epochs"] + (mistake == "steps")
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, activation="sigmoid")])
    model = keras_api.make_private(
        model,
        keras_api.DPKerasConfig(
            epsilon=1e6,
            delta=DELTA * (100 if mistake == "delta" else 1),
            clipping_norm=1.0,
            batch_size=batch,
            gradient_accumulation_steps=1,
            train_steps=epochs * (RECORDS // batch),
            train_size=RECORDS,
            poisson_sampling_in_fit=mistake != "sampler",
            seed=secrets.randbits(62),  # JAX-Privacy 2.0.0 draws negative ones, and fails
            noise_multiplier=trial["sigma"] * (0.5 if mistake == "noise" else 1),
        ),
    )
    model.compile(optimizer="sgd", loss="binary_crossentropy", metrics=["accuracy"])
    model.fit(
        x,
        y,
        batch_size=batch,
        epochs=epochs,
        validation_data=(x[:100], y[:100]),
        validation_batch_size=100,
        callbacks=[trial_callback(trial)],
        verbose=0,
    )


@pytest.mark.parametrize("mistake", [None, *MISTAKES])
def test_five_mistakes(client: dpfront.Client, mistake: str | None) -> None:
    check(make_study(client, PRIVACY), mistake, fit)


def test_the_server_ends_a_fit(client: dpfront.Client) -> None:
    study = make_study(client, PRIVACY)
    trial = study.ask(fixed={"sigma": 1.0, "batch_size": 64, "epochs": 4})
    study.stop_trial(trial.number, "enough")
    fit(trial, None)
    assert study.trials()[0].raw.final_measurement.step == 1
    assert not study.trials()[0].raw.final_measurement.seeded


def test_a_model_that_is_not_private(client: dpfront.Client) -> None:
    os.environ["KERAS_BACKEND"] = "jax"
    import keras
    import numpy as np

    model: Any = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    trial = make_study(client, PRIVACY).ask()
    with pytest.raises(dpfront.PrivacyMismatch, match="call make_private of jax_privacy"):
        model.fit(np.zeros((8, 4)), np.zeros(8), callbacks=[trial_callback(trial)], verbose=0)
