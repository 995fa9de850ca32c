"""The ε of other accountants, as recorded, against ours (see record_accountants.py)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import dpfront
from dpfront import DpSgd, Privacy, check
from dpfront import privacy as p
from dpfront.integrations.accountants import (
    from_opacus,
    from_opake,
    to_jax_privacy,
    to_opacus,
    to_opake,
)

dp_accounting = pytest.importorskip("dp_accounting")
pytestmark = pytest.mark.filterwarnings("ignore")  # numpy in its accountants

RECORDED = json.loads((Path(__file__).parent / "fixtures" / "accountants.json").read_text())
DELTA = 1e-5


def made(package: str, **attributes: Any) -> Any:
    """An object of another package with what a check reads of it."""
    return type("Theirs", (SimpleNamespace,), {"__module__": package})(**attributes)


def theirs(entry: dict[str, Any]) -> Any:
    """What is given to a check for a recorded entry."""
    state = entry["state"]
    if entry["package"] in ("opacus", "opake-accounting"):
        return state
    names = vars(dp_accounting) | vars(dp_accounting.dp_event)
    if entry["package"] == "jax-privacy":
        return made("jax_privacy.experimental", dp_event=eval(entry["event"], names))
    event = dp_accounting.ComposedDpEvent(
        [
            dp_accounting.SelfComposedDpEvent(
                dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(s)), t
            )
            for s, q, t in state["history"]
        ]
    )
    relation = "REPLACE_ONE" if "replace" in state["kind"] else "ADD_OR_REMOVE_ONE"
    name = "RdpAccountant" if state["kind"] == "rdp" else "PLDAccountant"
    kind = type(name, (SimpleNamespace,), {"__module__": "dp_accounting"})
    return kind(ledger=event, neighboring_relation=SimpleNamespace(name=relation))


def checked(client: dpfront.Client, entry: dict[str, Any]) -> dpfront.Check:
    return check(client, theirs(entry), delta=DELTA, epsilon=entry["epsilon"])


def label(entry: dict[str, Any]) -> str:
    return f"{entry['package']} {entry['version']} {json.dumps(entry['state'])[:90]}"


@pytest.mark.parametrize("entry", RECORDED, ids=label)
def test_recorded_histories(client: dpfront.Client, entry: dict[str, Any]) -> None:
    found = checked(client, entry)
    kind = entry["state"].get("mechanism") or entry["state"].get("kind", "pld")
    truncated = 'runcated_batch_size": 128' in json.dumps(entry["state"])
    assert found.agrees == (not found.reasons)
    if kind == "gdp":
        assert not found.safe
        assert "central limit theorem" in found.reasons[0]
    elif kind == "rdp":
        assert found.safe
        assert "Rényi" in found.reasons[0]
    elif not truncated:
        assert found.agrees, found
        assert found.safe, found


def test_truncated_lots(client: dpfront.Client) -> None:
    """JAX-Privacy agrees; opake, for adding or removing a record, is above both."""
    entries = {
        e["package"]: checked(client, e)
        for e in RECORDED
        if '"truncated_batch_size": 128' in json.dumps(e["state"])
    }
    assert entries["jax-privacy"].agrees
    other = entries["opake-accounting"]
    assert other.epsilon > 1.05 * other.ours.epsilon
    assert other.safe
    assert "add/remove adjacency for each number of records" in other.reasons[0]


def test_another_sampler_was_executed(client: dpfront.Client) -> None:
    history = {"history": [[1.1, 0.01, 1000]], "mechanism": "prv"}
    shuffled = Privacy(DpSgd("shuffled", 10_000, 100, 1.1, epochs=10), DELTA, "add_remove")
    found = check(client, history, delta=DELTA, epsilon=1.5255, executed=shuffled)
    assert not found.agrees
    assert not found.safe
    assert "Theirs is for poisson lots, training ran shuffled lots" in found.reasons[0]
    assert found.ours.epsilon > 5
    assert "NO" in str(found)


def test_other_terms(client: dpfront.Client) -> None:
    history = {"history": [[1.1, 0.01, 1000]]}
    found = check(client, history, delta=DELTA, epsilon=1.5255, adjacency="replace_one")
    assert "add_remove adjacency, ours for replace_one" in found.reasons[0]
    # The noise is the same, relative to a sensitivity twice as large; dp_accounting says 2.4778.
    assert found.ours.epsilon == pytest.approx(2.4778, abs=1e-3)
    assert not found.safe
    with pytest.raises(ValueError, match="adjacency: executed has its own"):
        check(
            client, history, delta=DELTA, epsilon=1, adjacency="add_remove", executed=found.privacy
        )
    found = check(client, history, delta=1e-7, epsilon=1.5255, epsilon_delta=DELTA)
    assert "Theirs is at δ = 1e-05, ours at δ = 1e-07." in found.reasons
    found = check(client, history, delta=DELTA, epsilon=1.2)
    assert not found.safe
    assert "no guarantee" in found.reasons[0]


def test_live_objects(client: dpfront.Client) -> None:
    accountant = made(
        "opacus.accountants.prv",
        history=[(1.1, 0.01, 1000)],
        mechanism=lambda: "prv",
        get_epsilon=lambda delta: 1.5255 if delta == DELTA else 0,
    )
    assert check(client, accountant, delta=DELTA).agrees
    process = made(
        "opake.api", process=RECORDED[13]["state"]["process"], epsilon_at=lambda d: 1.516
    )
    assert check(client, process, delta=DELTA).agrees
    event = dp_accounting.SelfComposedDpEvent(
        dp_accounting.PoissonSampledDpEvent(0.1, dp_accounting.GaussianDpEvent(3.0)), 20
    )
    assert check(client, event, delta=DELTA).agrees
    pld = dp_accounting.pld.PLDAccountant().compose(event)
    assert check(client, pld, delta=DELTA).agrees
    plan = made("jax_privacy.experimental", dp_event=event)
    config = made(
        "jax_privacy.experimental", plan=plan, accountant=dp_accounting.pld.PLDAccountant()
    )
    assert check(client, config, delta=DELTA).agrees


def test_out_and_in(client: dpfront.Client) -> None:
    privacy = Privacy(
        DpSgd("poisson", 10_000, 100, "sigma", epochs="epochs", convention="opacus"),
        DELTA,
        "add_remove",
    )
    want = client.epsilon(privacy, sigma=1.1, epochs=10).epsilon
    values = {"sigma": 1.1, "epochs": 10}
    history = to_opacus(privacy, **values)
    assert history == [(1.1, 0.01, 1000)]
    state = to_opake(privacy, **values)
    assert state == RECORDED[13]["state"]
    for back in (from_opacus(history, delta=DELTA), from_opake(state, delta=DELTA)):
        assert client.epsilon(back).epsilon == pytest.approx(want, rel=1e-6)
    assert to_jax_privacy(privacy, **values) == {
        "num_bands": 1,
        "iterations": 1000,
        "epsilon": None,
        "delta": None,
        "noise_multiplier": 1.1,
        "sampling_prob": 0.01,
    }
    two = p.Composition((p.Part(p.Gaussian(1, 3)), p.Part(p.Gaussian(1, 4), 2)))
    state = to_opake(Privacy(two, DELTA, "add_remove"))
    want = client.epsilon(Privacy(two, DELTA, "add_remove")).epsilon
    assert client.epsilon(from_opake(state, delta=DELTA)).epsilon == pytest.approx(want, rel=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: from_opacus([], delta=DELTA), "it has no step"),
        (lambda: from_opacus([(0.0, 0.1, 5)], delta=DELTA), "is not private"),
        (lambda: from_opake({"type": "EpsDelta"}, delta=DELTA), "EpsDelta of opake has no"),
        (
            lambda: to_opacus(Privacy(p.Gaussian(1, 1), DELTA, "replace_one")),
            'Opacus has "add_remove" only',
        ),
        (
            lambda: to_opake(Privacy(DpSgd("shuffled", 9, 3, 1.0, 1), DELTA, "add_remove")),
            "shuffled lots are not Poisson samples",
        ),
        (
            lambda: to_jax_privacy(Privacy(p.Laplace(1, 1), DELTA, "add_remove")),
            "only Poisson samples with Gaussian noise",
        ),
    ],
)
def test_what_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_what_a_check_refuses(client: dpfront.Client) -> None:
    with pytest.raises(ValueError, match="theirs: must be of opacus"):
        check(client, 3, delta=DELTA)
    with pytest.raises(ValueError, match="epsilon: must be given with a recorded history"):
        check(client, {"history": [[1.1, 0.01, 1000]]}, delta=DELTA)
