"""Batches by random allocation ("balls in bins"), for PyTorch, JAX and NumPy, and Poisson
batches for JAX.

In every epoch each record goes to one of the epoch's batches, uniformly and independently of the
other records. A loop reads every record once an epoch, as with shuffling, but the sampling
amplifies privacy (`dpfront.privacy.RandomAllocation`). In a loop with PyTorch or Opacus one line
changes:

    sampler = RandomAllocationSampler(len(data), batches_per_epoch(len(data), 256))
    loader = DataLoader(data, batch_sampler=sampler)  # was: batch_size=256, shuffle=True

For JAX, `RandomAllocationBatches` has the same batches as padded arrays with a mask, and
`PoissonBatches` those of Poisson sampling.

Three rules make ε hold. Sums of clipped gradients are divided by the expected size
(``records / batches_per_epoch``), never by the size of a batch. Every batch makes a step with
noise, also an empty one. The allocation stays secret: give a generator in tests only. Call
``check(mechanism)`` after training: it compares what the loop drew with what was accounted.
"""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dpfront import privacy
from dpfront.errors import PrivacyMismatch

__all__ = [
    "PoissonBatches",
    "RandomAllocationBatches",
    "RandomAllocationSampler",
    "batches_per_epoch",
    "with_empty",
]


def batches_per_epoch(records: int, batch_size: int) -> int:
    """Returns the number of batches that `DpSgd` accounts for an expected size of a batch.

    It is ``records / batch_size`` rounded, halves to even, and at least 1.
    """
    _positive("records", records)
    _positive("batch_size", batch_size)
    if batch_size > records:
        raise ValueError(f"batch_size: must be at most records ({records}), is {batch_size}")
    return max(1, round(records / batch_size))


class RandomAllocationSampler:
    """The batches of an epoch as lists of indices: a ``batch_sampler`` for PyTorch's DataLoader.

    Every pass over it is an epoch of ``batches_per_epoch`` batches of random sizes, some of which
    may be empty; indices within a batch increase. PyTorch's default collation fails on an empty
    batch. That happens with a probability below 1e-50 if batches have 128 records on average;
    for small batches give the loader a ``collate_fn`` by `with_empty`.

    ``generator`` is a ``torch.Generator``, a ``numpy.random.Generator`` or a ``random.Random``,
    for reproducible tests. Anybody who knows its seed knows the allocation, and ε does not hold.
    Without it the operating system's random numbers are used, and the allocation is exactly
    uniform. With ``fresh=False`` every epoch uses the allocation of the first one.
    """

    def __init__(
        self,
        records: int,
        batches_per_epoch: int,
        generator: Any = None,
        *,
        fresh: bool = True,
    ) -> None:
        self.records = _positive("records", records)
        self.batches_per_epoch = _positive("batches_per_epoch", batches_per_epoch)
        self.generator = generator
        self.fresh = fresh
        self.epochs = 0
        """Number of epochs that began, interrupted ones too."""
        self.drawn = 0
        """Number of batches that were drawn in all."""
        self._bins: Sequence[int] | None = None

    @property
    def expected_batch_size(self) -> float:
        """By what sums of gradients are divided."""
        return self.records / self.batches_per_epoch

    def __len__(self) -> int:
        return self.batches_per_epoch

    def __iter__(self) -> Iterator[list[int]]:
        self.epochs += 1
        if self._bins is None or self.fresh:
            self._bins = _uniform(self.records, self.batches_per_epoch, self.generator)
        batches: list[list[int]] = [[] for _ in range(self.batches_per_epoch)]
        for record, number in enumerate(self._bins):
            batches[number].append(record)
        for batch in batches:
            self.drawn += 1
            yield batch

    def check(self, mechanism: privacy.Privacy | privacy.RandomAllocation | privacy.DpSgd) -> None:
        """Compares what a training loop drew with a mechanism whose fields are numbers.

        An interrupted epoch counts as a whole one: it released no more. A loop that drew fewer
        epochs than the mechanism has passes as well, since its ε is smaller.

        Raises:
            PrivacyMismatch: ε of the mechanism does not hold for the loop.
            ValueError: The mechanism is not random allocation, or a field is no number.
        """
        planned = _planned(mechanism)
        if planned.records not in (None, self.records):
            raise PrivacyMismatch(
                "records", self.records, planned.records, "give the sampler len(data)"
            )
        if self.batches_per_epoch != planned.steps:
            raise PrivacyMismatch(
                "batches in an epoch",
                self.batches_per_epoch,
                planned.steps,
                "use batches_per_epoch(records, batch_size)",
            )
        if self.fresh != planned.fresh:
            names = {True: "drawn anew in every epoch", False: "the one of the first epoch"}
            raise PrivacyMismatch(
                "allocation",
                names[self.fresh],
                names[planned.fresh],
                f"make the sampler with fresh={planned.fresh}",
            )
        if self.epochs > planned.epochs:
            raise PrivacyMismatch(
                "epochs", self.epochs, planned.epochs, "account all passes over the loader"
            )


class RandomAllocationBatches:
    """The batches of an epoch as arrays for JAX: pairs of indices and a mask.

    Every pass over it is an epoch. Arrays are padded to a multiple of ``multiple``, so that a
    compiled step sees few shapes; an empty batch has one multiple too. The mask is False where
    the index is padding: multiply clipped gradients by it before they are summed. Batches are
    never truncated, which would be another mechanism.

    It has the other arguments and the `check` of `RandomAllocationSampler`. It needs NumPy.
    """

    def __init__(
        self,
        records: int,
        batches_per_epoch: int,
        generator: Any = None,
        *,
        multiple: int = 64,
        fresh: bool = True,
    ) -> None:
        self.sampler = RandomAllocationSampler(records, batches_per_epoch, generator, fresh=fresh)
        self.multiple = _positive("multiple", multiple)

    def __len__(self) -> int:
        return len(self.sampler)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for batch in self.sampler:
            yield _padded(batch, self.multiple)

    def check(self, mechanism: privacy.Privacy | privacy.RandomAllocation | privacy.DpSgd) -> None:
        """See `RandomAllocationSampler.check`."""
        self.sampler.check(mechanism)


class PoissonBatches:
    """Batches of Poisson sampling as arrays for JAX: pairs of indices and a mask.

    Every step draws each record independently, with the probability that `dpfront.opacus`
    accounts: 1 / ``len(self)``, where ``len(self)`` is ``records / batch_size`` rounded up. Every
    pass over it is an epoch. Arrays are padded as those of `RandomAllocationBatches`, and
    batches are never truncated.

    ``generator`` is a ``numpy.random.Generator``, for reproducible tests: anybody who knows its
    seed knows the batches, and ε does not hold. Without it the operating system's random
    numbers are used.
    """

    def __init__(
        self, records: int, batch_size: int, generator: Any = None, *, multiple: int = 64
    ) -> None:
        self.records = _positive("records", records)
        if _positive("batch_size", batch_size) > records:
            raise ValueError(f"batch_size: must be at most records ({records}), is {batch_size}")
        self.batch_size = batch_size
        self.generator = generator
        self.multiple = _positive("multiple", multiple)

    def __len__(self) -> int:
        return -(-self.records // self.batch_size)

    @property
    def expected_batch_size(self) -> float:
        """By what sums of gradients are divided."""
        return self.records / len(self)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        import numpy as np

        for _ in range(len(self)):
            if self.generator is not None:
                drawn = self.generator.integers(len(self), size=self.records) == 0
            else:
                numbers = np.frombuffer(os.urandom(8 * self.records), dtype=np.uint64)
                # Rounded down: the probability is smaller by less than 2^-64.
                drawn = numbers < np.uint64((2**64 - 1) // len(self))
            yield _padded(np.flatnonzero(drawn).tolist(), self.multiple)


def _padded(batch: Sequence[int], multiple: int) -> tuple[Any, Any]:
    """Returns a batch as indices, whose length is a multiple, and a mask."""
    import numpy as np

    length = max(1, math.ceil(len(batch) / multiple)) * multiple
    indices = np.zeros(length, dtype=np.int64)
    indices[: len(batch)] = batch
    return indices, np.arange(length) < len(batch)


def with_empty(
    example: Any, collate: Callable[[list[Any]], Any] | None = None
) -> Callable[[list[Any]], Any]:
    """Returns a ``collate_fn`` that also takes empty batches.

    An empty batch is a batch of ``example``, a record of the data set, cut to length 0 in every
    tensor. ``collate`` is the loader's own function, by default PyTorch's.
    """
    if collate is None:
        from torch.utils.data import default_collate

        collate = default_collate
    whole = collate

    def collated(batch: list[Any]) -> Any:
        return whole(batch) if batch else _cut(whole([example]))

    return collated


def _cut(x: Any) -> Any:
    """Returns a collated batch without records."""
    if isinstance(x, Mapping):
        return {key: _cut(value) for key, value in x.items()}
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*map(_cut, x))
    if isinstance(x, (list, tuple)) and not all(isinstance(item, (str, bytes)) for item in x):
        return type(x)(map(_cut, x))
    return x[:0]


def _uniform(count: int, below: int, generator: Any) -> Sequence[int]:
    """Returns independent integers that are uniform over [0, below)."""
    if generator is None:
        return _system(count, below)
    if hasattr(generator, "integers"):
        drawn: list[int] = generator.integers(below, size=count).tolist()
    elif hasattr(generator, "randrange"):
        drawn = [generator.randrange(below) for _ in range(count)]
    else:
        import torch

        drawn = torch.randint(below, (count,), generator=generator).tolist()
    return drawn


def _system(count: int, below: int) -> list[int]:
    """Returns integers from the operating system's random numbers, without bias."""
    limit = 2**64 - 2**64 % below  # the numbers below it are a multiple of `below`
    result: list[int] = []
    while len(result) < count:
        numbers = array("Q")
        numbers.frombytes(os.urandom(numbers.itemsize * (count - len(result))))
        result += [x % below for x in numbers if x < limit]
    return result


class _Planned:
    """What a mechanism says of a sampler."""

    def __init__(self, records: int | None, steps: int, epochs: int, fresh: bool) -> None:
        self.records, self.steps, self.epochs, self.fresh = records, steps, epochs, fresh


def _planned(
    mechanism: privacy.Privacy | privacy.RandomAllocation | privacy.DpSgd,
) -> _Planned:
    m: Any = mechanism.mechanism if isinstance(mechanism, privacy.Privacy) else mechanism
    if isinstance(m, privacy.RandomAllocation):
        if m.picks is not None and _number("picks", m.picks) != 1:
            raise ValueError(f"picks: must be 1 for these batches, is {m.picks}")
        return _Planned(
            None,
            _number("steps_per_epoch", m.steps_per_epoch),
            _number("epochs", m.epochs),
            m.allocation != "same",
        )
    if isinstance(m, privacy.DpSgd) and m.sampling == "random_allocation":
        records = _number("dataset_size", m.dataset_size)
        steps = batches_per_epoch(records, _number("batch_size", m.batch_size))
        epochs = (
            _number("epochs", m.epochs)
            if m.epochs is not None
            else -(-_number("steps", m.steps) // steps)
        )
        return _Planned(records, steps, epochs, True)
    raise ValueError(f"mechanism: must be random allocation, is {m!r}")


def _number(name: str, x: privacy.Expression | None) -> int:
    if isinstance(x, bool) or not isinstance(x, int):
        raise ValueError(f"{name}: must be a number to check a loop, is {x!r}")
    return x


def _positive(name: str, x: int) -> int:
    if isinstance(x, bool) or not isinstance(x, int):
        raise TypeError(f"{name}: must be an int, is {x!r}")
    if x < 1:
        raise ValueError(f"{name}: must be at least 1, is {x}")
    return x
