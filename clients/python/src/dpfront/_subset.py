"""The secret subset of the training records that candidates of some studies are trained on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class TrainingSubset:
    """A secret, uniformly random subset of the training records.

    All candidates of a study have the same one. Which records are in it must stay secret.
    """

    size: int
    """Number of records in the subset."""
    of: int
    """Number of all training records."""
    _key: bytes = field(repr=False)

    def indices(self, n: int) -> list[int]:
        """Returns the positions of the subset among n training records, in a random order.

        Train on these records alone, in this order: ``[data[i] for i in indices]``. The order is
        not sorted on purpose.

        Args:
            n: The number of training records at hand, for a check.

        Raises:
            ValueError: The study's subset is of another number of records.
        """
        if n != self.of:
            raise ValueError(
                f"indices: the study's subset is of {self.of} training records, not of {n}"
            )
        # Fisher-Yates. The words are SHAKE256 of the key, 8 bytes each in little-endian order; a
        # number below k is the next word modulo k, without words below 2^64 mod k.
        words = _words(self._key, self.size)
        order = list(range(self.of))
        for i in range(self.size):
            k = self.of - i
            word = next(words)
            while word < 2**64 % k:
                word = next(words)
            j = i + word % k
            order[i], order[j] = order[j], order[i]
        return order[: self.size]


def _words(key: bytes, expected: int) -> Iterator[int]:
    """Yields words of 64 bits, of which about a number is expected to be used."""
    count, done = expected + 8, 0
    while True:
        stream = hashlib.shake_256(key).digest(8 * count)
        for at in range(8 * done, 8 * count, 8):
            yield int.from_bytes(stream[at : at + 8], "little")
        done, count = count, 2 * count
