"""The secret subsets of training records."""

from __future__ import annotations

import hashlib
import json
from itertools import islice
from pathlib import Path

import pytest

from dpfront._read import study_info
from dpfront._subset import TrainingSubset, _words
from dpfront._trial import TrialBase
from dpfront.v1 import study_pb2, trial_pb2

VECTORS = Path(__file__).parents[2] / "go" / "subset" / "testdata" / "vectors.json"


def test_indices_are_those_of_the_go_client() -> None:
    vectors = json.loads(VECTORS.read_text())
    assert len(vectors) >= 4
    for v in vectors:
        subset = TrainingSubset(size=v["size"], of=v["of"], _key=bytes.fromhex(v["key"]))
        assert subset.indices(v["of"]) == v["indices"]


def test_every_record_is_drawn_once() -> None:
    subset = TrainingSubset(size=20_000, of=20_000, _key=b"k" * 32)
    assert sorted(subset.indices(20_000)) == list(range(20_000))


def test_words_go_on_where_more_are_needed() -> None:
    stream = hashlib.shake_256(b"k" * 32).digest(8 * 100)
    words = b"".join(w.to_bytes(8, "little") for w in islice(_words(b"k" * 32, 1), 100))
    assert words == stream


def test_another_number_of_records_is_refused() -> None:
    subset = TrainingSubset(size=3, of=10, _key=b"k" * 32)
    with pytest.raises(ValueError, match="of 10 training records, not of 11"):
        subset.indices(11)


def test_trial_has_the_subset_and_hides_its_key() -> None:
    message = trial_pb2.Trial(name="studies/s/trials/1")
    info = study_info(study_pb2.Study(name="studies/s"))
    assert TrialBase(message, info).training_subset is None
    message.training_subset.key = b"secret" + bytes(26)
    message.training_subset.size = 3
    message.training_subset.of = 10
    trial = TrialBase(message, info)
    assert trial.training_subset is not None
    assert len(trial.training_subset.indices(10)) == 3
    for shown in (repr(trial), repr(trial.training_subset), trial._repr_html_()):
        assert "secret" not in shown
