"""Importance, slices and contours, and their pictures."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from typing import Any

import pytest

import dpfront
from dpfront import plot
from dpfront._results.analyses import Contour, Estimate, Importance, Slices

from .conftest import Server, make_study

HELD = {"learning_rate": 0.1, "noise_variance": 4.0, "lot_size": 64, "epochs": 8}


@pytest.fixture(autouse=True)
def _without_windows() -> Iterator[None]:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="module")
def study(shared_server: Server) -> Iterator[dpfront.Study]:
    """A study whose error depends on the learning rate alone."""
    with dpfront.Client(shared_server.address) as client:
        study = make_study(client)
        for trial in study.ask_many(20, "w"):
            distance = math.log10(trial["learning_rate"]) + 1.5
            trial.tell(error=0.1 + 0.15 * distance**2)
        yield study


def test_importance(study: dpfront.Study) -> None:
    found = study.importance()
    assert [(p.metric, p.parameter) for p in found.parameters] == [
        (metric, parameter)
        for metric in ("error", "epsilon")
        for parameter in ("learning_rate", "noise_variance", "lot_size", "epochs")
    ]
    by_error = {p.parameter: p for p in found.parameters if p.metric == "error"}
    assert by_error["learning_rate"].first_order.value > 0.7
    for p in found.parameters:
        for share in (p.first_order, p.total):
            assert 0 <= share.lower <= share.value <= share.upper <= 1
    of_epsilon = {p.parameter: p.total for p in found.parameters if p.metric == "epsilon"}
    assert of_epsilon["learning_rate"] == Estimate(0, 0, 0)  # exactly: ε does not depend on it
    assert found.transforms == {"error": "logit", "epsilon": "log"}
    assert found.variances["epsilon"].value > 0
    assert "learning_rate" in str(found)
    assert "<table>" in found._repr_html_()
    frame = found.to_dataframe()
    assert list(frame["total"]) == [p.total.value for p in found.parameters]


def test_slices(study: dpfront.Study) -> None:
    found = study.slices(HELD, points=5)
    assert found.params == HELD
    assert len(found.slices) == 8
    for s in found.slices:
        assert len(s.values) == len(s.predictions) == 5
        assert list(s.values) == sorted(s.values)
        told = study.predict([{**HELD, s.parameter: value} for value in s.values])
        for p, expected in zip(s.predictions, told, strict=True):
            if s.metric == "error":
                assert p.median == pytest.approx(expected["error"].median)
                assert p.lower < p.median < p.upper
            else:
                assert p.lower == p.median == p.upper
    assert "upper bound of ε for one run, not the search" in str(found)
    assert "noise_variance" in found._repr_html_()
    assert len(found.to_dataframe()) == 40
    assert study.slices().params in [p.params for p in study.front()]
    with pytest.raises(dpfront.InvalidArgument, match="points"):
        study.slices(points=1)


def test_contour(study: dpfront.Study) -> None:
    found = study.contour("learning_rate", "epochs", params=HELD, points=3)
    assert found.metric == "error"  # the measured one
    assert (len(found.x_values), len(found.y_values)) == (3, 3)
    (told,) = study.predict([{**HELD, "learning_rate": found.x_values[1], "epochs": 64}])
    assert found.predictions[2][1].median == pytest.approx(told["error"].median)
    assert "Median of error" in str(found)
    assert "ε" not in str(found)
    assert "ε" in str(study.contour("epochs", "lot_size", metric="epsilon", points=2))
    assert "<table>" in found._repr_html_()
    assert list(found.to_dataframe().columns) == [
        "learning_rate", "epochs", "median", "lower", "upper",
    ]  # fmt: skip
    with pytest.raises(dpfront.InvalidArgument, match="y_parameter"):
        study.contour("epochs", "epochs")


def test_before_anything_is_measured(client: dpfront.Client) -> None:
    study = make_study(client)
    importance, slices = study.importance(), study.slices()
    contour = study.contour("epochs", "lot_size")
    assert {p.metric for p in importance.parameters} == {"epsilon"}
    assert (slices.params, slices.slices, contour.predictions) == ({}, (), ())
    for found in (importance, slices, contour):
        assert [w.code for w in found.warnings] == ["NO_MODEL"]
        assert "NO_MODEL" in str(found) or "nothing has been measured" in str(found)
    with pytest.raises(ValueError, match="no slice"):
        study.plot_slice()
    with pytest.raises(ValueError, match="nothing has been measured"):
        study.plot_contour("epochs", "lot_size")


def test_both_clients_answer_the_same(study: dpfront.Study, shared_server: Server) -> None:
    async def ask() -> tuple[Importance, Slices, Contour]:
        async with dpfront.AsyncClient(shared_server.address) as client:
            other = await client.study(study.id)
            return (
                await other.importance(),
                await other.slices(HELD, points=3),
                await other.contour("epochs", "lot_size", params=HELD, points=2),
            )

    assert asyncio.run(ask()) == (
        study.importance(),
        study.slices(HELD, points=3),
        study.contour("epochs", "lot_size", params=HELD, points=2),
    )


@pytest.mark.parametrize("backend", ["matplotlib", "plotly"])
def test_pictures(study: dpfront.Study, backend: plot.Backend, tmp_path: Any) -> None:
    pytest.importorskip(backend)
    pictures = [
        study.plot_importance(backend=backend),
        study.plot_slice("learning_rate", "epochs", metric="error", points=5, backend=backend),
        study.plot_slice("epochs", metric="epsilon", points=5, backend=backend),
        study.plot_contour("learning_rate", "epochs", points=4, backend=backend),
        study.plot_contour("epochs", "lot_size", metric="epsilon", points=4, backend=backend),
    ]
    if backend == "plotly":
        for figure in pictures:
            assert figure.to_html()
        assert len(pictures[1].data) == 4  # two bands and two lines
        assert "ε of one run" in pictures[4].data[0].colorbar.title.text
        assert pictures[3].layout.xaxis.type == "log"
        return
    axes = [x.flat[0] if hasattr(x, "flat") else x for x in pictures]
    for ax in axes:
        ax.figure.savefig(tmp_path / "picture.png")
    assert [label.get_text() for label in axes[0].get_yticklabels()] == [
        "epochs", "lot_size", "noise_variance", "learning_rate",
    ]  # fmt: skip
    assert axes[1].get_xscale() == "log"
    assert len(axes[1].collections) == 1  # the band
    assert not axes[2].collections  # ε is exact
    assert "δ" in axes[2].figure.get_supxlabel()
    assert axes[3].get_xlabel() == "learning_rate"


def test_a_picture_of_categories(client: dpfront.Client) -> None:
    study = dpfront.Study.create(
        client,
        "categories",
        [dpfront.Float("x", 0, 1), dpfront.Categorical("kind", ["a", "b", "<$c$>"])],
        [dpfront.Minimize("loss", 2), dpfront.Minimize("size", 2)],
        algorithm="random",
    )
    for trial in study.ask_many(8, "w"):
        trial.tell(loss=trial["x"], size=1 - trial["x"] + ("abc".find(trial["kind"][0])) / 9)
    ax = study.plot_slice("kind", metric="size", points=3)
    assert len(ax.get_xticklabels()) == 3
    ax = study.plot_contour("x", "kind", metric="size", points=3)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["a", "b", r"<\$c\$>"]
