"""How well a model predicts, and what the next runs are expected to gain."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import dpfront
from dpfront._results.analyses import ExpectedGain, Validation

from .conftest import Server, make_study


def trained(client: dpfront.Client, **fields: Any) -> dpfront.Study:
    """Returns a study with results of eight configurations."""
    study = make_study(client, **fields)
    for k in range(8):
        with study.ask() as trial:
            p = trial.params
            learnt = p["learning_rate"] * p["epochs"] / (1 + p["noise_variance"])
            trial.tell(error=0.1 + 0.5 / (1 + learnt) + k / 1e3)
    return study


def test_cross_validate(client: dpfront.Client) -> None:
    study = trained(client)
    found = study.cross_validate()
    assert found.warnings == ()
    assert found.raw.revision > 0
    (objective,) = found.objectives
    assert objective.metric == "error"
    assert len(objective.points) == 8
    values = {t.number: t.metrics["error"] for t in study.trials()}
    for p in objective.points:
        assert p.observed == values[p.trial]
        assert p.predicted.lower < p.predicted.median < p.predicted.upper
        assert p.within == (p.predicted.lower <= p.observed <= p.predicted.upper)
    assert objective.coverage == sum(p.within for p in objective.points) / 8
    assert objective.r_squared is not None
    assert objective.r_squared <= 1
    assert "Fit of the model" in str(found)
    assert "error" in found._repr_html_()
    pandas = pytest.importorskip("pandas")
    frame = found.to_dataframe()
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) == 8
    assert set(frame["within"]) <= {True, False}


def test_expected_gain(client: dpfront.Client) -> None:
    study = trained(client)
    found = study.expected_gain(runs=3)
    assert [p.runs for p in found.points] == [1, 2, 3]
    assert [p.cost for p in found.points] == [1, 2, 3]
    assert found.cost_unit == "runs"
    assert found.hypervolume == pytest.approx(study.front().hypervolume)
    for p in found.points:
        assert p.lower <= p.upper
        assert 0 <= p.probability <= 1
    assert "hypervolume today" in str(found)
    assert "<table>" in found._repr_html_()
    pytest.importorskip("pandas")
    frame = found.to_dataframe()
    assert list(frame["gain"]) == [p.gain for p in found.points]
    assert len(study.expected_gain().points) == 10


def test_bad_numbers_of_runs(client: dpfront.Client) -> None:
    study = make_study(client)
    with pytest.raises(ValueError, match="runs: must be at least 1, is 0"):
        study.expected_gain(0)
    with pytest.raises(dpfront.InvalidArgument, match="runs"):
        study.expected_gain(51)


def test_without_results(client: dpfront.Client) -> None:
    study = make_study(client)
    fit, gain = study.cross_validate(), study.expected_gain()
    assert fit.objectives == ()
    assert gain.points == ()
    assert [w.code for w in (*fit.warnings, *gain.warnings)] == ["NO_MODEL", "NO_MODEL"]
    assert "No model yet" in str(fit)
    assert "No forecast" in str(gain)
    pytest.importorskip("pandas")
    for frame in (fit.to_dataframe(), gain.to_dataframe()):
        assert len(frame) == 0
        assert "NO_MODEL" in frame.attrs["warnings"][0]
    with pytest.raises(ValueError, match="nothing to compare"):
        study.plot_fit()


def test_asyncio(server: Server) -> None:
    async def ask(id: str) -> tuple[Validation, ExpectedGain]:
        async with dpfront.AsyncClient(server.address) as client:
            study = await client.study(id)
            return await study.cross_validate(), await study.expected_gain(2)

    with dpfront.Client(server.address) as client:
        study = trained(client)
        fit, gain = asyncio.run(ask(study.id))
        assert fit == study.cross_validate()
        assert gain == study.expected_gain(2)


def test_plot_fit(client: dpfront.Client, tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    study = trained(client)
    (objective,) = study.cross_validate().objectives
    ax = study.plot_fit()
    diagonal, points = ax.lines
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata())
    assert list(points.get_xdata()) == [p.observed for p in objective.points]
    assert list(points.get_ydata()) == [p.predicted.median for p in objective.points]
    ax.figure.savefig(tmp_path / "fit.png")
    pytest.importorskip("plotly")
    figure = study.plot_fit(backend="plotly")
    trace = figure.data[1]
    assert list(trace.x) == [p.observed for p in objective.points]
    assert list(trace.error_y.array) == pytest.approx(
        [p.predicted.upper - p.predicted.median for p in objective.points]
    )
