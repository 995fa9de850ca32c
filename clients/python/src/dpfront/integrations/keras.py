"""Checks and reports a run of Keras 3 that JAX-Privacy makes private.

model = keras_api.make_private(model, config)  # of jax_privacy
model.fit(x, y, callbacks=[trial_callback(trial)], validation_data=..., epochs=...)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpfront._convert import expression
from dpfront._sync.trial import Trial
from dpfront.integrations._run import LARGEST_HAND_SET_SEED, TrialRun, validation_metrics
from dpfront.privacy import DpSgd, Expression, Privacy

__all__ = ["keras_privacy", "trial_callback"]


def keras_privacy(
    *,
    dataset_size: int,
    batch_size: Expression = "batch_size",
    noise_multiplier: Expression = "noise_multiplier",
    epochs: Expression = "epochs",
    delta: float,
) -> Privacy:
    """Returns the guarantee of a Keras model that JAX-Privacy trains, for one record more or less.

    With ``DPKerasConfig(poisson_sampling_in_fit=True)`` every step draws a record with
    probability ``batch_size / dataset_size``, and an epoch has ``dataset_size // batch_size``
    steps. The number of records is public.
    """
    size, lot = expression(dataset_size, "dataset_size"), expression(batch_size, "batch_size")
    mechanism = DpSgd(
        "poisson",
        dataset_size,
        None,
        noise_multiplier,
        steps=f"int({expression(epochs, 'epochs')}) * ({size} / int({lot}))",
        sampling_probability=f"double({lot}) / double({size})",
    )
    return Privacy(mechanism, delta, "add_remove")


def trial_callback(trial: Trial, metrics: Mapping[str, str] | None = None) -> Any:
    """Returns a Keras ``Callback`` for one call of ``fit``.

    It compares ``DPKerasConfig`` of the model with the trial, of a study with `keras_privacy`:
    Poisson sampling in ``fit``, probability, noise, δ and ε, and counts the steps. After every
    epoch it reports the study's metrics from the logs; ``metrics`` has the logged names by the
    study's, by default ``val_accuracy`` or ``accuracy`` for ``accuracy``. It ends the fit when
    the server expects nothing more of the run, and ends the trial with the fit.

    Raises:
        PrivacyMismatch: From ``fit``: training and study differ. The trial is given back.
    """
    from keras.callbacks import Callback

    run = TrialRun(trial, "trial_callback")

    class TrialCallback(Callback):
        """The callback of one run."""

        def on_train_begin(self, logs: Any = None) -> None:
            _check(run, getattr(self.model, "_dp_params", None))
            self.made = self._counted()
            if self.made:
                run.fail("steps", f"{self.made} before", 0, "make a new model for every trial")
            run.check_noise(float(self.model.get_noise_multiplier()))

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            run.step()

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if run.report(validation_metrics(trial, logs or {}, metrics)):
                self.model.stop_training = True

        def on_train_end(self, logs: Any = None) -> None:
            run.end()

        def _counted(self) -> int:
            weights = {w.name: w for w in self.model.non_trainable_weights}
            return int(weights["_optimizer_steps"].numpy().item())

    return TrialCallback()


def _check(run: TrialRun, config: Any) -> None:
    """Compares the configuration of a model with the trial."""
    if config is None:
        run.fail("noise", "none", "private training", "call make_private of jax_privacy.keras_api")
    if not config.poisson_sampling_in_fit:
        run.fail(
            "sampler",
            "the batches of fit, in order or shuffled",
            "Poisson lots",
            "make DPKerasConfig with poisson_sampling_in_fit=True",
        )
    if config.gradient_accumulation_steps != 1:
        run.fail(
            "gradient_accumulation_steps",
            config.gradient_accumulation_steps,
            1,
            "use microbatch_size: several lots in a step are another mechanism",
        )
    known = run.plans[0].records
    if known not in (None, config.train_size):
        run.fail("records", config.train_size, known, "give DPKerasConfig the study's train_size")
    lots = max(1, config.train_size // config.batch_size)
    run.check_sampler("DPKerasConfig", config.batch_size / config.train_size, lots=lots)
    run.check_delta(config.delta)
    run.trial.seeded |= config.seed is not None and abs(config.seed) < LARGEST_HAND_SET_SEED
