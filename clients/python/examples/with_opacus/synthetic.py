"""Small synthetic data sets, instead of the real ones of Opacus's examples."""

from __future__ import annotations

import torch
from torch.utils.data import TensorDataset

RECORDS = 500  # of each training set; no lot of 64 divides it


def images(records: int, channels: int, size: int, seed: int) -> TensorDataset:
    """Returns images of ten classes: each class is a bright square at its place, with noise."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(10, (records,), generator=generator)
    pictures = 0.3 * torch.randn(records, channels, size, size, generator=generator)
    side = size // 5
    for picture, label in zip(pictures, labels.tolist(), strict=True):
        row, column = label // 5 * 2 * side, label % 5 * side
        picture[:, row : row + side, column : column + side] += 1
    return TensorDataset(pictures, labels)


def names(records: int, seed: int) -> list[tuple[torch.Tensor, int]]:
    """Returns words as letters from 1 to 26 with their language, of two: one likes vowels."""
    generator = torch.Generator().manual_seed(seed)
    vowels = torch.tensor([1, 5, 9, 15, 21])
    result = []
    for _ in range(records):
        length = int(torch.randint(3, 9, (1,), generator=generator))
        letters = torch.randint(1, 27, (length,), generator=generator)
        language = int(torch.randint(2, (1,), generator=generator))
        if language:
            change = torch.rand(length, generator=generator) < 0.6
            letters[change] = vowels[torch.randint(5, (int(change.sum()),), generator=generator)]
        result.append((letters, language))
    return result


def table(records: int, seed: int) -> TensorDataset:
    """Returns a table of eight columns with a label that depends on three of them."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(records, 8, generator=generator)
    label = x[:, 0] + x[:, 1] * x[:, 2] > 0
    return TensorDataset(x, label.long())
