"""The callback in real fits of Lightning with Opacus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dpfront
from dpfront.integrations.lightning import trial_callback
from dpfront.samplers import RandomAllocationSampler, batches_per_epoch, with_empty

from .mistakes import ALLOCATION, DELTA, MISTAKES, PRIVACY, RECORDS, check, make_study, marks

pytestmark = marks("lightning", "opacus")


def fit(trial: dpfront.Trial, mistake: str | None, folder: Path, allocation: bool = False) -> None:
    """Trains as Opacus's example for Lightning does."""
    import lightning.pytorch as pl
    import torch
    from opacus import PrivacyEngine
    from opacus.data_loader import DPDataLoader
    from torch.utils.data import DataLoader, TensorDataset

    engine = PrivacyEngine()
    torch.manual_seed(1)
    data = TensorDataset(torch.randn(RECORDS, 4), torch.randint(2, (RECORDS,)))
    sigma = trial["sigma"] * (0.5 if mistake == "noise" else 1)
    batch = trial["batch_size"] // (2 if mistake == "batch size" else 1)
    epochs = trial["epochs"] + (mistake == "steps")

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = torch.nn.Linear(4, 2)

        def train_dataloader(self) -> Any:
            if allocation:
                sampler = RandomAllocationSampler(RECORDS, batches_per_epoch(RECORDS, batch))
                return DataLoader(data, batch_sampler=sampler, collate_fn=with_empty(data[0]))
            loader = DataLoader(data, batch_size=batch, shuffle=mistake == "sampler")
            return loader if mistake == "sampler" else DPDataLoader.from_data_loader(loader)

        def val_dataloader(self) -> Any:
            return DataLoader(data, batch_size=100)

        def configure_optimizers(self) -> Any:
            self.trainer.fit_loop.setup_data()
            loader = self.trainer.train_dataloader
            _, optimizer, _ = engine.make_private(
                module=self,
                optimizer=torch.optim.SGD(self.parameters(), lr=0.1),
                data_loader=loader,
                noise_multiplier=sigma,
                max_grad_norm=1.0,
                poisson_sampling=isinstance(loader, DPDataLoader),
            )
            return optimizer

        def training_step(self, batch: Any, _: int) -> Any:
            return torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])

        def validation_step(self, batch: Any, _: int) -> None:
            accuracy = (self.model(batch[0]).argmax(1) == batch[1]).float().mean()
            self.log("val_accuracy", accuracy)
            if mistake == "delta" and engine.accountant.history:
                self.log("epsilon", engine.get_epsilon(DELTA * 100))

    trainer = pl.Trainer(
        max_epochs=epochs,
        callbacks=[trial_callback(trial, engine)],
        accelerator="cpu",
        default_root_dir=folder,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Module())


@pytest.mark.parametrize("mistake", [None, *MISTAKES])
def test_five_mistakes(client: dpfront.Client, mistake: str | None, tmp_path: Path) -> None:
    check(make_study(client), mistake, lambda trial, wrong: fit(trial, wrong, tmp_path))


def test_random_allocation(client: dpfront.Client, tmp_path: Path) -> None:
    study = make_study(client, ALLOCATION)
    check(study, None, lambda trial, _: fit(trial, None, tmp_path, allocation=True))
    # A study of Poisson lots does not take them.
    check(
        make_study(client, PRIVACY),
        "sampler",
        lambda trial, _: fit(trial, None, tmp_path, allocation=True),
    )


def test_the_server_ends_a_fit(
    client: dpfront.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = make_study(client)
    trial = study.ask(fixed={"sigma": 1.0, "batch_size": 64, "epochs": 4})
    study.stop_trial(trial.number, "enough")
    fit(trial, None, tmp_path)
    (info,) = study.trials()
    assert info.raw.final_measurement.step == 1
