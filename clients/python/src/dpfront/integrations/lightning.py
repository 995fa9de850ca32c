"""Checks and reports a PyTorch Lightning run that trains with Opacus.

engine = PrivacyEngine()  # whose make_private the module calls in configure_optimizers
trainer = Trainer(callbacks=[trial_callback(trial, engine)], max_epochs=trial["epochs"])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpfront._sync.trial import Trial
from dpfront.integrations._run import batch_size, validation_metrics
from dpfront.integrations.opacus import OpacusRun

__all__ = ["trial_callback"]


def trial_callback(
    trial: Trial, privacy_engine: Any, metrics: Mapping[str, str] | None = None
) -> Any:
    """Returns a Lightning ``Callback`` for one call of ``Trainer.fit``.

    It compares the run with the trial as `dpfront.opacus_trial` does: the loader that the
    trainer reads, the noise, every step, and ε. After every epoch it reports the study's
    metrics from ``trainer.callback_metrics``; ``metrics`` has the logged names by the study's,
    by default ``val_accuracy`` or ``accuracy`` for ``accuracy``. It ends the fit when the
    server expects nothing more of the run, and ends the trial with the fit.

    ``privacy_engine`` is a new ``opacus.PrivacyEngine``. The module calls its ``make_private``
    in ``configure_optimizers``, with the loader of the trainer, which must be a
    ``DPDataLoader`` or have a `dpfront.samplers.RandomAllocationSampler`.

    Raises:
        PrivacyMismatch: From ``fit``: training and study differ. The trial is given back.
    """
    from lightning.pytorch.callbacks import Callback

    run = OpacusRun(trial, privacy_engine, "trial_callback")
    run.reads = False  # the trainer has its own loader, not the one of make_private

    class TrialCallback(Callback):
        """The callback of one run."""

        def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
            if stage == "fit":
                run.check_engine()
                run.intercept()

        def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
            if run.optimizer is None:
                run.finish()  # raises: nothing was made private
            run.use(trainer.train_dataloader.batch_sampler)
            run.begin_pass()

        def on_train_batch_start(
            self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
        ) -> None:
            run.lot(batch_size(batch))

        def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            values = {k: float(v) for k, v in trainer.callback_metrics.items()}
            if run.report(validation_metrics(trial, values, metrics)):
                trainer.should_stop = True

        def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
            run.end()

        def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
            run.detach()

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            run.detach()

    return TrialCallback()
