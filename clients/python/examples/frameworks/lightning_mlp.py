"""A network in PyTorch Lightning, as Opacus's own example makes it private."""

import lightning.pytorch as pl
import torch
from opacus import PrivacyEngine
from opacus.data_loader import DPDataLoader
from recipe import data, search
from torch.utils.data import DataLoader, TensorDataset

from dpfront.integrations.lightning import trial_callback

TRAIN, TEST = (TensorDataset(*map(torch.tensor, data(seed=seed))) for seed in (1, 2))


class Module(pl.LightningModule):
    """The network and its training."""

    def __init__(self, trial, engine):
        super().__init__()
        self.trial, self.engine = trial, engine
        layers = torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2)
        self.net = torch.nn.Sequential(*layers)

    def configure_optimizers(self):
        """Makes the training private."""
        self.trainer.fit_loop.setup_data()
        _, optimizer, _ = self.engine.make_private(
            module=self,
            optimizer=torch.optim.SGD(self.parameters(), lr=self.trial["lr"]),
            data_loader=self.trainer.train_dataloader,
            noise_multiplier=self.trial["sigma"],
            max_grad_norm=1.0,
        )
        return optimizer

    def training_step(self, batch, _):
        """Returns the loss of a lot."""
        return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def validation_step(self, batch, _):
        """Logs the accuracy."""
        self.log("val_accuracy", (self.net(batch[0]).argmax(1) == batch[1]).float().mean())


def train(trial):
    """Trains one configuration."""
    engine = PrivacyEngine()
    loader = DPDataLoader.from_data_loader(DataLoader(TRAIN, batch_size=trial["batch_size"]))
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "logger": False}
    trainer = pl.Trainer(
        max_epochs=trial["epochs"],
        callbacks=[trial_callback(trial, engine)],  # the line
        enable_checkpointing=False,
        **quiet,
    )
    trainer.fit(Module(trial, engine), loader, DataLoader(TEST, batch_size=500))


if __name__ == "__main__":
    search(train)
