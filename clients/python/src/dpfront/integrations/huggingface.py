"""Checks and reports a run of Hugging Face's Trainer that trains with Opacus.

    trainer = PrivateTrainer(..., optimizers=(optimizer, None),
                             callbacks=[trial_callback(trial, privacy_engine)])

``optimizer`` and the loader that the trainer's ``get_train_dataloader`` returns are those of
``privacy_engine.make_private``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpfront._sync.trial import Trial
from dpfront.integrations._run import validation_metrics
from dpfront.integrations.opacus import OpacusRun

__all__ = ["trial_callback"]


def trial_callback(
    trial: Trial, privacy_engine: Any, metrics: Mapping[str, str] | None = None
) -> Any:
    """Returns a ``transformers.TrainerCallback`` for one call of ``Trainer.train``.

    It compares the run with the trial as `dpfront.opacus_trial` does: the trainer's loader, the
    noise, every step, and ε. Every evaluation at the end of an epoch
    (``eval_strategy="epoch"``) is reported; ``metrics`` has the names of its values by the
    study's, by default ``eval_accuracy`` for ``accuracy``. Training ends when the server
    expects nothing more of the run, and ends the trial.

    ``privacy_engine`` is a new ``opacus.PrivacyEngine``. Trainer's default loader shuffles: its
    ``get_train_dataloader`` must return the one of ``make_private``. Gradients are accumulated
    by Opacus's ``BatchMemoryManager``, and ``gradient_accumulation_steps`` is 1.

    Raises:
        PrivacyMismatch: From ``train``: training and study differ. The trial is given back.
    """
    from transformers import TrainerCallback

    run = OpacusRun(trial, privacy_engine, "trial_callback")

    class TrialCallback(TrainerCallback):
        """The callback of one run."""

        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            optimizer, model = kwargs["optimizer"], kwargs["model"]
            if not hasattr(optimizer, "noise_multiplier"):  # in accelerate's wrapper
                optimizer = getattr(optimizer, "optimizer", optimizer)
            if not hasattr(optimizer, "noise_multiplier"):
                kind = f"{type(optimizer).__module__}.{type(optimizer).__qualname__}"
                run.fail(
                    "noise",
                    kind,
                    "opacus.optimizers.DPOptimizer",
                    "give Trainer the optimizer of make_private: optimizers=(optimizer, None)",
                )
            run.check_engine()
            ghost = model if hasattr(model, "get_clipping_coef") else None
            run.take(optimizer, kwargs["train_dataloader"], ghost)
            run.watch_accounts()

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            run.optimizer.zero_grad()  # Trainer clears the model, but not what Opacus has summed

        def on_evaluate(
            self, args: Any, state: Any, control: Any, metrics: Mapping[str, Any], **_: Any
        ) -> None:
            if not trial.ended and run.used == run.lots and run.steps:
                values = {k: v for k, v in metrics.items() if isinstance(v, (int, float))}
                if run.report(validation_metrics(trial, values, names)):
                    control.should_training_stop = True

        def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            try:
                run.end()
            finally:
                run.detach()

    names = metrics
    return TrialCallback()
