"""A network in Keras 3 on JAX, which JAX-Privacy makes private."""

import os
import secrets

os.environ["KERAS_BACKEND"] = "jax"

import keras
from jax_privacy import keras_api
from recipe import DELTA, RECORDS, data, search

from dpfront.integrations.keras import keras_privacy, trial_callback

X, Y = data()


def train(trial):
    """Trains one configuration."""
    batch, epochs = trial["batch_size"], trial["epochs"]
    model = keras.Sequential(
        [
            keras.Input((8,)),
            keras.layers.Dense(16, activation="tanh"),
            keras.layers.Dense(2, activation="softmax"),
        ]
    )
    config = keras_api.DPKerasConfig(
        epsilon=1e6,  # a limit of JAX-Privacy's own: ε is the study's
        delta=DELTA,
        clipping_norm=1.0,
        batch_size=batch,
        gradient_accumulation_steps=1,
        train_steps=epochs * (RECORDS // batch),
        train_size=RECORDS,
        noise_multiplier=trial["sigma"],
        poisson_sampling_in_fit=True,
        seed=secrets.randbits(62),
    )
    model = keras_api.make_private(model, config)
    model.compile(
        keras.optimizers.SGD(trial["lr"]), "sparse_categorical_crossentropy", metrics=["accuracy"]
    )
    model.fit(
        X,
        Y,
        batch_size=batch,
        epochs=epochs,
        validation_data=data(500, seed=2),
        validation_batch_size=batch,
        callbacks=[trial_callback(trial)],  # the line
        verbose=0,
    )


if __name__ == "__main__":
    search(train, keras_privacy(dataset_size=RECORDS, noise_multiplier="sigma", delta=DELTA))
