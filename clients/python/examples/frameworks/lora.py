"""LoRA: only low-rank corrections of a frozen transformer are trained."""

import torch
from opacus import PrivacyEngine
from recipe import RECORDS, search
from torch.utils.data import DataLoader, TensorDataset

import dpfront

torch.manual_seed(1)  # the same frozen weights in every trial
WORDS = torch.randint(0, 20, (RECORDS + 200, 6))
LABELS = ((WORDS > 9).sum(1) > 3).long()
ENCODER = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
with torch.no_grad():  # attention has no correction here: its outputs are computed once
    FEATURES = ENCODER(torch.nn.Embedding(20, 16)(WORDS)).mean(1)
torch.seed()  # noise must not come from a seed


class LowRank(torch.nn.Module):
    """A frozen layer with a trained correction."""

    def __init__(self, frozen, rank=4):
        super().__init__()
        self.frozen = frozen.requires_grad_(False)
        self.down = torch.nn.Linear(frozen.in_features, rank, bias=False)
        self.up = torch.nn.Linear(rank, frozen.out_features, bias=False)
        torch.nn.init.zeros_(self.up.weight)

    def forward(self, x):
        """Returns what the layer computes, and the correction."""
        return self.frozen(x) + self.up(self.down(x))


def train(trial):
    """Trains one configuration."""
    layers = LowRank(ENCODER.linear1), torch.nn.ReLU(), LowRank(ENCODER.linear2)
    model = torch.nn.Sequential(*layers, torch.nn.Linear(16, 2))
    engine, data = PrivacyEngine(), TensorDataset(FEATURES[:RECORDS], LABELS[:RECORDS])

    @torch.no_grad()
    def accuracy():
        return (model(FEATURES[RECORDS:]).argmax(1) == LABELS[RECORDS:]).float().mean().item()

    with dpfront.opacus_trial(trial, engine, accuracy):  # the line
        private, optimizer, loader = engine.make_private(
            module=model,
            optimizer=torch.optim.Adam(model.parameters(), lr=trial["lr"] / 10),
            data_loader=DataLoader(data, batch_size=trial["batch_size"]),
            noise_multiplier=trial["sigma"],
            max_grad_norm=1.0,
        )
        for _ in range(trial["epochs"]):
            for x, y in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(private(x), y).backward()
                optimizer.step()


if __name__ == "__main__":
    search(train)
