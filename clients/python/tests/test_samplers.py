"""Batches by random allocation: what they are, and what check() finds out about a loop."""

from __future__ import annotations

import itertools
import math
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import dpfront
from dpfront import PrivacyMismatch, privacy, samplers

from .opacus_examples import FOLDER


def generators() -> list[Any]:
    """Returns a generator of every kind that is installed."""
    numpy = pytest.importorskip("numpy")
    kinds = [random.Random(1), numpy.random.default_rng(1)]
    try:
        import torch
    except ImportError:
        return kinds
    return [*kinds, torch.Generator().manual_seed(1)]


def test_every_record_once_an_epoch() -> None:
    for generator in [None, *generators()]:
        for records, batches in [(1, 1), (1, 7), (100, 1), (100, 7), (50, 400)]:
            sampler = samplers.RandomAllocationSampler(records, batches, generator)
            for _ in range(3):
                epoch = list(sampler)
                assert len(epoch) == len(sampler) == batches
                assert all(batch == sorted(batch) for batch in epoch)
                assert sorted(itertools.chain(*epoch)) == list(range(records))
            assert (sampler.epochs, sampler.drawn) == (3, 3 * batches)
            assert sampler.expected_batch_size == records / batches


def test_allocation_is_uniform_and_independent() -> None:
    """Frequencies are within 4.5 standard errors; sizes are binomial."""
    records, batches, epochs = 10, 4, 8000

    def check(count: float, p: float, n: int) -> None:
        assert abs(count - n * p) < 4.5 * math.sqrt(n * p * (1 - p))

    for generator in generators():
        sampler = samplers.RandomAllocationSampler(records, batches, generator)
        at: Counter[tuple[int, int]] = Counter()
        together = empty = repeated = 0
        last = -1
        for _ in range(epochs):
            numbers = [0] * records
            for number, batch in enumerate(sampler):
                empty += not batch
                for record in batch:
                    numbers[record] = number
                    at[record, number] += 1
            together += numbers[0] == numbers[1]
            repeated += numbers[2] == last
            last = numbers[2]
        for record, number in itertools.product(range(records), range(batches)):
            check(at[record, number], 1 / batches, epochs)
        check(together, 1 / batches, epochs)
        check(repeated, 1 / batches, epochs)
        check(empty, (1 - 1 / batches) ** records, epochs * batches)


def test_system_numbers_are_uniform(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers that would give the first batches more are drawn again."""
    rng = random.Random(3)
    calls = []

    def urandom(size: int) -> bytes:
        calls.append(size)
        if len(calls) == 1:  # the largest number, without which 2**64 is a multiple of 3
            return b"\xff" * 8 + (0).to_bytes(8, sys.byteorder) * (size // 8 - 1)
        return rng.randbytes(size)

    monkeypatch.setattr(samplers.os, "urandom", urandom)  # type: ignore[attr-defined]
    sizes = [len(batch) for batch in samplers.RandomAllocationSampler(5, 3)]
    assert calls == [40, 8]
    assert sizes[0] >= 4
    assert sum(sizes) == 5


def test_same_allocation() -> None:
    fresh = samplers.RandomAllocationSampler(200, 5, random.Random(1))
    assert list(fresh) != list(fresh)
    same = samplers.RandomAllocationSampler(200, 5, random.Random(1), fresh=False)
    assert list(same) == list(same)


def test_batches_per_epoch() -> None:
    """As the server counts: halves to even, at least one."""
    for (records, size), batches in {
        (1000, 300): 3,
        (1000, 400): 2,
        (7, 2): 4,
        (10, 9): 1,
        (9, 9): 1,
    }.items():
        assert samplers.batches_per_epoch(records, size) == batches
    for arguments, text in {
        (0, 1): "records: must be at least 1, is 0",
        (5, 0): "batch_size: must be at least 1, is 0",
        (5, 6): "batch_size: must be at most records",
    }.items():
        with pytest.raises(ValueError, match=text):
            samplers.batches_per_epoch(*arguments)
    with pytest.raises(TypeError, match="batches_per_epoch: must be an int"):
        samplers.RandomAllocationSampler(5, 2.5)  # type: ignore[arg-type]


def test_arrays_for_jax() -> None:
    np = pytest.importorskip("numpy")
    batches = samplers.RandomAllocationBatches(50, 8, np.random.default_rng(2), multiple=4)
    seen = []
    lengths = set()
    for indices, mask in batches:
        assert indices.shape == mask.shape
        assert mask.dtype == bool
        assert (indices[~mask] == 0).all()
        lengths.add(len(indices))
        seen += indices[mask].tolist()
    assert len(batches) == 8
    assert sorted(seen) == list(range(50))
    assert {length % 4 for length in lengths} == {0}
    few = samplers.RandomAllocationBatches(1, 5, np.random.default_rng(2), multiple=4)
    assert [int(mask.sum()) for _, mask in few].count(0) == 4  # empty ones are there
    assert {len(indices) for indices, _ in few} == {4}
    few.check(privacy.RandomAllocation(5, 1.0, 2))


FRESH = privacy.RandomAllocation(4, 1.0, 3)
LOTS = privacy.DpSgd("random_allocation", 10, 3, 1.0, epochs=3)  # round(10 / 3) = 3 lots


def test_check_accepts() -> None:
    sampler = samplers.RandomAllocationSampler(10, 4)
    sampler.check(FRESH)
    for _ in range(3):
        list(sampler)
    sampler.check(FRESH)
    sampler.check(privacy.Privacy(FRESH, 1e-5, "add_remove"))
    lots = samplers.RandomAllocationSampler(10, 3)
    list(lots)
    lots.check(LOTS)
    lots.check(privacy.DpSgd("random_allocation", 10, 3, 1.0, steps=2))  # rounded up to an epoch


@pytest.mark.parametrize(
    ("sampler", "epochs", "mechanism", "what"),
    [
        ((10, 4, True), 4, FRESH, "epochs: 4 in training, 3 in the study"),
        ((10, 5, True), 1, FRESH, "batches in an epoch: 5 in training, 4 in the study"),
        ((10, 4, False), 1, FRESH, "allocation: the one of the first epoch in training"),
        ((11, 3, True), 1, LOTS, "records: 11 in training, 10 in the study"),
        ((10, 4, True), 1, LOTS, "batches in an epoch: 4 in training, 3 in the study"),
    ],
)
def test_check_finds(
    sampler: tuple[int, int, bool], epochs: int, mechanism: Any, what: str
) -> None:
    made = samplers.RandomAllocationSampler(sampler[0], sampler[1], fresh=sampler[2])
    for _ in range(epochs):
        next(iter(made))  # an interrupted epoch counts
    with pytest.raises(PrivacyMismatch, match=what):
        made.check(mechanism)


def test_check_needs_numbers() -> None:
    sampler = samplers.RandomAllocationSampler(10, 4)
    cases: list[tuple[Any, str]] = [
        (privacy.RandomAllocation(4, 1.0, "epochs"), "epochs: must be a number"),
        (privacy.RandomAllocation(4, 1.0, 3, picks=2), "picks: must be 1"),
        (privacy.DpSgd("shuffled", 10, 3, 1.0, epochs=3), "must be random allocation"),
    ]
    for mechanism, text in cases:
        with pytest.raises(ValueError, match=text):
            sampler.check(mechanism)


class Column:
    """A stand-in of a tensor."""

    def __init__(self, numbers: Sequence[float]) -> None:
        self.numbers = list(numbers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Column) and self.numbers == other.numbers

    def __getitem__(self, at: slice) -> Column:
        return Column(self.numbers[at])


def collate(batch: list[tuple[float, str]]) -> Any:
    """Fails on an empty batch, as PyTorch's does."""
    xs, names = zip(*batch, strict=True)
    return {"x": Column(xs), "more": (list(names), [Column(xs), Column(xs)])}


def test_empty_batches() -> None:
    with pytest.raises(ValueError, match="not enough values"):
        collate([])
    whole = samplers.with_empty((1.0, "a"), collate)
    assert whole([(2.0, "b")]) == collate([(2.0, "b")])
    none = Column([])
    assert whole([]) == {"x": none, "more": ([], [none, none])}


def test_with_torch() -> None:
    torch = pytest.importorskip("torch")
    from torch.utils.data import DataLoader, TensorDataset

    data = TensorDataset(torch.arange(20.0)[:, None], torch.arange(20))
    sampler = samplers.RandomAllocationSampler(20, 40, torch.Generator().manual_seed(3))
    loader = DataLoader(data, batch_sampler=sampler, collate_fn=samplers.with_empty(data[0]))
    for _ in range(2):
        batches = list(loader)
        assert len(batches) == len(loader) == 40
        assert sorted(torch.cat([y for _, y in batches]).tolist()) == list(range(20))
        assert {x.shape[1:] for x, _ in batches} == {(1,)}
        assert any(len(y) == 0 for _, y in batches)
    sampler.check(privacy.RandomAllocation(40, 1.0, 2))


def test_opacus_spec(client: dpfront.Client) -> None:
    """One changed line: ε of a shuffling loader, and of random allocation with the same noise."""
    run: dict[str, Any] = {
        "dataset_size": 60_000,
        "batch_size": 256,
        "noise_multiplier": 1.0,
        "epochs": 10,
        "delta": 1e-5,
        "poisson_sampling": False,
    }
    shuffled = client.epsilon(dpfront.opacus(**run)).epsilon
    allocated = client.epsilon(dpfront.opacus(**run, random_allocation=True)).epsilon
    assert shuffled == pytest.approx(46.2112, abs=1e-3)
    assert allocated == pytest.approx(1.0485, rel=1e-3)
    same = privacy.RandomAllocation(samplers.batches_per_epoch(60_000, 256), 1.0, 10)
    assert client.epsilon(privacy.Privacy(same, 1e-5, "add_remove")).epsilon == allocated
    with pytest.raises(ValueError, match="random_allocation goes with poisson_sampling=False"):
        dpfront.opacus(**{**run, "poisson_sampling": True}, random_allocation=True)


# --- the example with stand-ins of torch and Opacus


class Loader:
    """A stand-in of PyTorch's DataLoader."""

    def __init__(self, dataset: Any, batch_sampler: Any, collate_fn: Any) -> None:
        self.dataset, self.batch_sampler, self.collate_fn = dataset, batch_sampler, collate_fn

    def __len__(self) -> int:
        return len(self.batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        for batch in self.batch_sampler:
            yield self.collate_fn([self.dataset[i] for i in batch])


def pairs(batch: list[tuple[float, int]]) -> Any:
    """Collates records of a number and a label."""
    return tuple(map(Column, zip(*batch, strict=True)))


def test_the_example_of_opacus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its loop makes a step for every lot, and check() accepts as many epochs as it ran."""
    steps: list[int] = []
    seen: list[float] = []

    def model(x: Column) -> Column:
        seen.extend(x.numbers)
        return x

    def make_private(**made: Any) -> Any:
        assert made["poisson_sampling"] is False
        assert len(made["data_loader"]) == 100
        return made["module"], made["optimizer"], made["data_loader"]

    model.train = lambda: None  # type: ignore[attr-defined]
    model.parameters = lambda: None  # type: ignore[attr-defined]
    optimizer = SimpleNamespace(zero_grad=lambda: None, step=lambda: steps.append(1))
    loss = SimpleNamespace(backward=lambda: None)
    stand_ins: dict[str, Any] = {
        "torch": SimpleNamespace(
            optim=SimpleNamespace(SGD=lambda *_, **__: optimizer),
            nn=SimpleNamespace(CrossEntropyLoss=lambda: lambda *_: loss),
        ),
        "torch.utils.data": SimpleNamespace(DataLoader=Loader, default_collate=pairs),
        "opacus": SimpleNamespace(PrivacyEngine=None),
        "synthetic": SimpleNamespace(
            RECORDS=50, table=lambda records, seed: [(float(i), i % 2) for i in range(records)]
        ),
    }
    for name, value in stand_ins.items():
        monkeypatch.setitem(sys.modules, name, value)
    example = ModuleType("example")
    source = (FOLDER / "allocation.py").read_text()
    exec(compile(source, "allocation.py", "exec"), example.__dict__)
    monkeypatch.setitem(example.__dict__, "batches_per_epoch", lambda *_: 100)  # many are empty
    args = SimpleNamespace(lr=0.5, sigma=1.0, batch_size=1, epochs=2)
    sampler = example.fit(args, model, SimpleNamespace(make_private=make_private))
    assert len(steps) == 200
    assert sorted(seen) == sorted(2 * [float(i) for i in range(50)])
    sampler.check(privacy.RandomAllocation(100, 1.0, 2))
    with pytest.raises(PrivacyMismatch, match="epochs: 2 in training, 1 in the study"):
        sampler.check(privacy.RandomAllocation(100, 1.0, 1))


def test_poisson_batches() -> None:
    numpy = pytest.importorskip("numpy")
    for generator in (None, numpy.random.default_rng(1)):
        batches = samplers.PoissonBatches(1000, 300, generator, multiple=8)
        assert len(batches) == 4
        assert batches.expected_batch_size == 250
        sizes, seen = [], Counter[int]()
        for _ in range(50):
            for indices, mask in batches:
                assert len(indices) == len(mask)
                assert len(mask) % 8 == 0
                lot = indices[mask].tolist()
                assert lot == sorted(set(lot))
                sizes.append(len(lot))
                seen.update(lot)
        # 200 binomial sizes with a standard deviation of 13.7: their mean within six of its own.
        assert abs(sum(sizes) / len(sizes) - 250) < 6 * 13.7 / math.sqrt(len(sizes))
        assert max(sizes) - min(sizes) > 20
        assert len(seen) == 1000
    empty = samplers.PoissonBatches(100, 1, numpy.random.default_rng(1), multiple=8)
    assert any(not mask.any() for _, mask in empty)
    with pytest.raises(ValueError, match=r"batch_size: must be at most records \(3\), is 4"):
        samplers.PoissonBatches(3, 4)
