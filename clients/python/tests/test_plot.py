"""Pictures: what they show, and how each library draws it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import dpfront
from dpfront import _read as read
from dpfront import _specs as specs
from dpfront import audit, plot
from dpfront._operations import accounting
from dpfront._results.fronts import Front, HypervolumePoint
from dpfront._results.guarantees import EpsilonCurve
from dpfront._results.trials import TrialInfo
from dpfront.plot import _data as data
from dpfront.plot import _shapes as shapes
from dpfront.v1 import front_service_pb2, trial_pb2

from . import made
from .conftest import make_study

PARAMS: dict[str, Any] = {"noise": 1.0, "epochs": 10, "optimizer": "sgd", "momentum": 0.5}
ADAM = {"noise": 10.0, "epochs": 20, "optimizer": "<b>$adam$"}
TERMS = "upper bound of ε for one run, not the search; δ = 1e-06, add_remove adjacency"

TWO = made.study()
THREE = made.study(seconds=True)


@pytest.fixture(autouse=True)
def _without_windows() -> Iterator[None]:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def drawn(ax: Any) -> list[tuple[Any, list[tuple[float, float]]]]:
    """The lines of axes with their points."""
    return [(line, list(zip(*line.get_data(), strict=True))) for line in ax.lines]


def written(figure: Any, path: Any) -> None:
    """Draws for real, which fails for texts that are not valid."""
    figure.savefig(path / "picture.png")


# --- front


def front_of_two() -> tuple[Front, list[TrialInfo]]:
    front = made.front(
        TWO,
        made.point(1, PARAMS, accuracy=0.9, epsilon=4, interval=0.02),
        made.point(2, ADAM, accuracy=0.6, epsilon=1, interval=0.1),
        made.point(3, PARAMS, accuracy=0.95, epsilon=40, beyond=True),
    )
    trials = [
        made.trial(1, PARAMS, accuracy=0.91, epsilon=4),
        made.trial(2, ADAM, accuracy=0.5, epsilon=1),
        made.trial(3, PARAMS, accuracy=0.95, epsilon=40),
        made.trial(4, PARAMS),
        made.trial(5, PARAMS, accuracy=0.05, epsilon=2),
    ]
    return front, trials


def test_the_stairs_of_a_front() -> None:
    (panel,) = data.front(*front_of_two()).panels
    behind, stairs, points = panel.series
    # ε is horizontal. A step keeps the accuracy of smaller ε up to the next one, and the last
    # goes to the reference.
    corners = list(zip(stairs.x, stairs.y, strict=True))
    assert corners == [(1, 0.6), (4, 0.6), (4, 0.9), (10, 0.9)]
    assert (points.x, points.y) == ((1, 4), (0.6, 0.9))
    assert points.x_interval == ()
    assert points.y_interval == ((0.6 - 0.1, 0.6 + 0.1), (0.9 - 0.02, 0.9 + 0.02))
    assert (behind.x, behind.y) == ((4, 1), (0.91, 0.5))
    assert behind.label == "measured (2; 2 beyond the reference)"
    assert (panel.x_log, panel.y_log) == (True, False)
    assert panel.x_label == "epsilon (ε of one run)"


def test_a_step_goes_towards_what_is_worse() -> None:
    """Without ε the first objective, to maximise, is horizontal: worse is to the left."""
    of = made.study()
    of.spec.metrics[1].computed.expression = "noise"
    front = made.front(
        of,
        made.point(1, PARAMS, accuracy=0.9, epsilon=4),
        made.point(2, ADAM, accuracy=0.6, epsilon=1),
    )
    (panel,) = data.front(front, ()).panels
    stairs = panel.series[0]
    corners = list(zip(stairs.x, stairs.y, strict=True))
    assert corners == [(0.9, 4), (0.6, 4), (0.6, 1), (0.1, 1)]
    assert (panel.x_label, panel.y_label) == ("accuracy", "epsilon")
    assert data.front(front, ()).note == ""


def test_measurements_on_the_way_are_behind_the_front() -> None:
    of = made.study(checkpoint_parameter="epochs")
    front = made.front(of, made.point(1, PARAMS, step=4, accuracy=0.9, epsilon=4))
    steps = {2: {"accuracy": 0.5, "epsilon": 1.0}, 4: {"accuracy": 0.9, "epsilon": 4.0}}
    trials = [made.trial(1, PARAMS, steps, accuracy=0.8, epsilon=5)]
    behind = data.front(front, trials).panels[0].series[0]
    assert sorted(behind.x) == [1, 4, 5]
    assert "trial 1, step 2" in behind.hover


def test_pairs_of_three_objectives() -> None:
    front = made.front(
        THREE,
        made.point(1, PARAMS, accuracy=0.9, epsilon=4, seconds=20),
        made.point(2, ADAM, accuracy=0.6, epsilon=1, seconds=10),
        made.point(3, ADAM, accuracy=0.6, epsilon=1, seconds=500, beyond=True),
        codes=["SEEDED"],
    )
    chart = data.front(front, ())
    labels = [(p.x_label, p.y_label, p.x_log, p.y_log) for p in chart.panels]
    assert labels == [
        ("epsilon (ε of one run)", "accuracy", True, False),
        ("epsilon (ε of one run)", "seconds", True, True),
        ("accuracy", "seconds", False, True),
    ]
    assert all(len(p.series) == 1 and not p.series[0].line for p in chart.panels)
    assert sorted(chart.panels[2].series[0].x) == [0.6, 0.9]
    assert TERMS in chart.note
    assert chart.note.endswith("\nRuns were seeded: no ε holds for them.")
    assert chart.title == "Posterior front"


def test_one_objective_has_no_front() -> None:
    of = made.study()
    del of.spec.metrics[0]
    with pytest.raises(ValueError, match="one objective"):
        data.front(made.front(of), ())


def test_matplotlib_draws_a_front(tmp_path: Any) -> None:
    ax = plot.front(*front_of_two())
    behind, stairs, points = drawn(ax)
    assert stairs[1][-1] == (10, 0.9)
    assert points[1] == [(1, 0.6), (4, 0.9)]
    assert len(behind[1]) == 2
    (intervals,) = ax.containers
    assert intervals.has_yerr
    assert not intervals.has_xerr
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")
    assert TERMS.split(";")[0] in ax.figure.get_supxlabel().replace("\n", " ")
    written(ax.figure, tmp_path)

    import matplotlib.pyplot as plt

    own = plt.subplots()[1]
    assert plot.front(*front_of_two(), ax=own) is own
    assert TERMS in own.get_title().replace("\n", " ")
    assert len(plot.front(made.front(THREE)).figure.axes) == 3
    with pytest.raises(ValueError, match="3 panels"):
        plot.front(made.front(THREE), ax=own)


def test_plotly_draws_a_front() -> None:
    pytest.importorskip("plotly")
    figure = plot.front(*front_of_two(), backend="plotly").to_dict()
    behind, stairs, points = figure["data"]
    assert list(stairs["x"]) == [1, 4, 4, 10]
    assert points["error_y"]["array"] == pytest.approx([0.1, 0.02])
    assert points["error_y"]["arrayminus"] == pytest.approx([0.1, 0.02])
    assert "&lt;b&gt;$adam$" in points["hovertext"][0]
    assert behind["name"] == "measured (2; 2 beyond the reference)"
    assert figure["layout"]["xaxis"]["type"] == "log"
    title = figure["layout"]["title"]["text"].replace("</sup><br><sup>", " ")
    assert TERMS in title
    with pytest.raises(ValueError, match="ax: belongs to matplotlib"):
        plot.front(*front_of_two(), backend="plotly", ax=object())


def test_backends() -> None:
    wrong: Any = "ggplot"
    with pytest.raises(ValueError, match="backend: 'ggplot' is not one of matplotlib, plotly"):
        plot.front(*front_of_two(), backend=wrong)


@pytest.mark.parametrize("library", ["matplotlib", "plotly"])
def test_a_missing_library_is_named(library: str) -> None:
    """In a fresh process, where the module is not loaded yet."""
    program = f"""
import sys
sys.modules[{library!r}] = None
from dpfront import plot
from tests.test_plot import front_of_two
try:
    plot.front(*front_of_two(), backend={library!r})
except ImportError as error:
    print(error)
"""
    out = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).resolve().parents[1],
    ).stdout
    assert out == f'a picture takes {library}: pip install "dpfront[{library}]"\n'


# --- history


def history(trials: Sequence[TrialInfo]) -> shapes.Chart:
    volumes = [HypervolumePoint(2, 1, 0.5, 1, 0), HypervolumePoint(1, 2, 0.75, 2, 0)]
    return data.history(read.study_info(TWO), volumes, trials, "best")


def test_a_history() -> None:
    done = {3: 0.5, 1: 0.7, 2: 0.6, 4: 0.8}
    trials = [made.trial(n, PARAMS, accuracy=v, epsilon=v * 10) for n, v in done.items()]
    failed = made.trial(5, PARAMS, accuracy=0.99, epsilon=0.1).raw
    failed.state = trial_pb2.TRIAL_STATE_INFEASIBLE
    chart = history([*trials, read.trial_info(failed)])
    volume, accuracy, epsilon = chart.panels
    assert (volume.series[0].x, volume.series[0].y) == ((1, 2), (0.5, 0.75))
    assert volume.y_label == "hypervolume of the best front"
    behind, best = accuracy.series
    assert (behind.x, behind.y) == ((1, 2, 3, 4), (0.7, 0.6, 0.5, 0.8))
    assert best.label == "largest so far"
    corners = list(zip(best.x, best.y, strict=True))
    assert corners == [(1, 0.7), (2, 0.7), (3, 0.7), (4, 0.7), (4, 0.8)]
    assert epsilon.series[1].y[-1] == 5.0
    assert epsilon.series[1].label == "smallest so far"
    assert epsilon.y_log
    assert TERMS in chart.note
    assert "seeded" in history([made.trial(1, PARAMS, codes=["SEEDED"])]).note


def test_an_empty_history_is_drawn(tmp_path: Any) -> None:
    ax = plot.history(read.study_info(TWO), [], [])
    assert len(ax.figure.axes) == 3
    written(ax.figure, tmp_path)
    pytest.importorskip("plotly")
    figure = plot.history(read.study_info(TWO), [], [], backend="plotly")
    assert len(figure.data) == 3


# --- parallel coordinates


def test_parallel_coordinates() -> None:
    front = made.front(TWO, made.point(2, ADAM, accuracy=0.9, epsilon=10))
    trials = [
        made.trial(1, PARAMS, accuracy=0.5, epsilon=0.1),
        made.trial(2, ADAM, accuracy=0.95, epsilon=10),
        made.trial(3, PARAMS, accuracy=0.5, epsilon=float("inf")),
    ]
    found = data.parallel(read.study_info(TWO), front, trials, "")
    labels = [a.label for a in found.axes]
    assert labels == ["noise", "epochs", "optimizer", "momentum", "accuracy", "epsilon"]
    assert found.on_front == (False, True)
    # Logarithms of noise and ε; the category by its place; a momentum that does not exist below.
    assert found.lines[0] == (0, 10, 0, 0.5, 0.5, -1)
    assert found.lines[1] == (1, 20, 1, -0.2, 0.9, 1)
    noise, epochs, optimizer, momentum, _, epsilon = found.axes
    assert (noise.low, noise.high) == (-1, 1)
    assert [text for _, text in noise.ticks] == ["0.1", "0.2", "0.5", "1", "2", "5", "10"]
    assert epochs.ticks == ((5, "5"), (10, "10"), (15, "15"), (20, "20"))
    assert optimizer.ticks == ((0, "sgd"), (1, "<b>$adam$"))
    assert momentum.ticks[0] == (-0.2, "absent")
    assert (epsilon.low, epsilon.high) == (-1, 1)
    assert labels[found.color] == "accuracy"
    assert TERMS in found.note
    by_epsilon = data.parallel(read.study_info(TWO), front, trials, "epsilon")
    assert labels[by_epsilon.color] == "epsilon"
    with pytest.raises(ValueError, match="color: 'noise' is not one of accuracy, epsilon"):
        data.parallel(read.study_info(TWO), front, trials, "noise")
    with pytest.raises(ValueError, match="no trial"):
        data.parallel(read.study_info(TWO), made.front(TWO), [], "")


def test_discrete_values_are_the_ticks_of_their_axis() -> None:
    spec = specs.study_spec(
        dpfront.StudySpec([dpfront.Discrete("width", [16, 32, 64], log=True)], made.SPEC.metrics)
    )
    axis, column = data._parameter_axis(spec.parameters[0], [32.0])
    assert [text for _, text in axis.ticks] == ["16", "32", "64"]
    assert column == [axis.ticks[1][0]]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (-3, 17, ["0", "5", "10", "15"]),
        (1, 2, ["1", "1.2", "1.4", "1.6", "1.8", "2"]),
        (0.1062, 0.4885, ["0.2", "0.3", "0.4"]),
        (1e6, 3e6, ["1e+06", "1.5e+06", "2e+06", "2.5e+06", "3e+06"]),
    ],
)
def test_ticks_are_round(low: float, high: float, expected: list[str]) -> None:
    assert [text for _, text in data._ticks(low, high)] == expected


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1e-6, 1e6, ["1e-06", "0.0001", "0.01", "1", "100", "1e+04", "1e+06"]),
        (0.03, 20, ["0.1", "1", "10"]),
        (16, 128, ["20", "50", "100"]),
        (1.1, 1.9, ["1.1", "1.9"]),
    ],
)
def test_logarithmic_ticks(low: float, high: float, expected: list[str]) -> None:
    assert [text for _, text in data._log_ticks(low, high)] == expected


def test_both_draw_parallel_coordinates(tmp_path: Any) -> None:
    front, trials = front_of_two()
    info = read.study_info(TWO)
    ax = plot.parallel_coordinates(info, front, trials)
    thick = [points for line, points in drawn(ax) if line.get_linewidth() > 2]
    assert len(thick) == 2
    assert [label.get_text() for label in ax.get_xticklabels()][-1] == "epsilon"
    heights = {height for line in thick for _, height in line}
    assert min(heights) >= 0
    assert max(heights) <= 1
    written(ax.figure, tmp_path)
    pytest.importorskip("plotly")
    (lines,) = plot.parallel_coordinates(info, front, trials, backend="plotly").to_dict()["data"]
    *_, chosen = lines["dimensions"]
    assert chosen["label"] == "on the front"
    assert sum(chosen["values"]) == 2
    assert chosen["constraintrange"][0] > 0.5
    assert lines["dimensions"][2]["ticktext"][1] == "&lt;b&gt;$adam$"
    assert lines["line"]["color"] == lines["dimensions"][4]["values"]


# --- learning curves


def test_learning_curves(tmp_path: Any) -> None:
    of = made.study(checkpoint_parameter="epochs")
    front = made.front(of, made.point(2, PARAMS, step=2, accuracy=0.9, epsilon=4))
    steps = {k: {"accuracy": 0.1 * k, "epsilon": 1.0 * k} for k in (1, 2)}
    steps[3] = {"accuracy": float("nan"), "epsilon": 3.0}
    trials = [made.trial(n, PARAMS, steps, accuracy=0.5, epsilon=10) for n in (2, 1, 3)]
    info = read.study_info(of)
    chart = data.learning_curves(info, front, trials, "")
    (panel,) = chart.panels
    # Those of the front are drawn last; the final value belongs to the end of the run.
    assert [s.hover[0].splitlines()[0] for s in panel.series] == ["trial 1", "trial 3", "trial 2"]
    assert [s.label for s in panel.series] == ["other trials", "", "on the posterior front"]
    assert [s.role for s in panel.series] == ["behind", "behind", "front"]
    assert (panel.series[0].x, panel.series[0].y) == ((1, 2, 10), (0.1, 0.2, 0.5))
    assert (panel.x_label, panel.y_label, chart.note) == ("epochs", "accuracy", "")
    assert TERMS in data.learning_curves(info, front, trials, "epsilon").note
    with pytest.raises(ValueError, match="metric: 'loss' is not one of accuracy, epsilon"):
        data.learning_curves(info, front, trials, "loss")
    ax = plot.learning_curves(info, front, trials)
    assert len(ax.lines) == 3
    written(ax.figure, tmp_path)
    pytest.importorskip("plotly")
    figure = plot.learning_curves(info, front, trials, backend="plotly")
    assert [trace.showlegend for trace in figure.data] == [True, False, True]


def test_no_learning_curves_say_so() -> None:
    trials = [made.trial(1, PARAMS, accuracy=0.5)]
    chart = data.learning_curves(read.study_info(TWO), made.front(TWO), trials, "")
    assert chart.note == "no trial has reported accuracy on the way: trial.report() does"


def test_a_final_value_without_a_step_is_no_point_of_a_curve() -> None:
    trials = [made.trial(1, PARAMS, {5: {"accuracy": 0.4}}, accuracy=0.5)]
    chart = data.learning_curves(read.study_info(TWO), made.front(TWO), trials, "")
    assert chart.panels[0].series[0].x == (5,)
    assert chart.panels[0].x_label == "step"


# --- ε over epochs


def curve(trial: int, *epsilons: float) -> EpsilonCurve:
    guarantees = tuple(read.guarantee(made.privacy(e)) for e in epsilons)
    return EpsilonCurve(trial, PARAMS, "epochs", tuple(range(1, len(epsilons) + 1)), guarantees)


def test_epsilon_over_epochs(tmp_path: Any) -> None:
    curves = [curve(1, 0.5, 1), curve(2, 1, 2, float("inf"))]
    chart = data.epsilon_over_epochs(curves)
    (panel,) = chart.panels
    assert [(s.label, s.x, s.y) for s in panel.series] == [
        ("trial 2", (1, 2), (1, 2)),
        ("trial 1", (1, 2), (0.5, 1)),
    ]
    assert panel.y_log
    assert chart.title == "ε over epochs"
    assert TERMS in chart.note
    assert "exact accountant" in chart.note
    ax = plot.epsilon_over_epochs(curves)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["trial 2", "trial 1"]
    written(ax.figure, tmp_path)
    with pytest.raises(ValueError, match="no configuration"):
        plot.epsilon_over_epochs([])
    pytest.importorskip("plotly")
    first, second = plot.epsilon_over_epochs(curves, backend="plotly").data
    assert first.line.color != second.line.color


def test_curves_of_a_study(client: dpfront.Client) -> None:
    study = make_study(client, checkpoint_parameter="epochs")
    params = {"learning_rate": 0.1, "noise_variance": 16.0, "lot_size": 64, "epochs": 50}
    study.add_trial(params, error=0.5)
    study.add_trial({**params, "epochs": 3}, error=0.4)
    long, short = study.epsilon_curves([1, 2])
    assert (long.trial, long.unit, long.lengths[0], long.lengths[-1]) == (1, "epochs", 1, 50)
    assert len(long.lengths) == 25
    assert short.lengths == (1, 2, 3)
    assert short.guarantees[-1].epsilon == study.get_trial(2).metrics["epsilon"]
    assert long.guarantees[-1].epsilon == study.get_trial(1).metrics["epsilon"]
    values = [g.epsilon for g in long.guarantees]
    assert values == sorted(values)
    inside = {p.trial for p in study.front() if not p.beyond_reference}
    assert {c.trial for c in study.epsilon_curves()} == inside
    with pytest.raises(ValueError, match=r"metric error of studies/.* is not ε of DP-SGD"):
        study.epsilon_curves(metric="error")

    async def other() -> list[EpsilonCurve]:
        async with dpfront.AsyncClient(client.address) as twin:
            same = await twin.study(study.id)
            assert plot.front(await same.front("observed"), await same.trials()).lines
            return await same.epsilon_curves([1, 2])

    assert asyncio.run(other()) == [long, short]


@pytest.mark.parametrize(
    ("length", "unit", "longest"),
    [
        ({"steps": "steps"}, "steps", 7),
        ({"epochs": "int(steps)"}, "epochs", 7),
        ({"epochs": 12}, "epochs", 12),
        ({"steps": "steps * 2"}, "steps", 14),
        ({"epochs": "steps * 2"}, "", 0),
    ],
)
def test_lengths_of_runs(
    client: dpfront.Client, length: dict[str, Any], unit: str, longest: int
) -> None:
    privacy = dpfront.opacus(
        dataset_size=1000, batch_size=100, noise_multiplier=2.0, delta=1e-6, **length
    )
    study = dpfront.Study.create(
        client,
        f"lengths-{unit}-{longest}",
        [dpfront.Int("steps", 1, 10)],
        [dpfront.Maximize("accuracy", 0), dpfront.epsilon(privacy)],
        algorithm="random",
    )
    study.add_trial({"steps": 7}, accuracy=0.5)
    if not unit:
        with pytest.raises(ValueError, match="'steps \\* 2', not a parameter or a number"):
            study.epsilon_curves([1])
        return
    (found,) = study.epsilon_curves([1])
    assert (found.unit, found.lengths[-1]) == (unit, longest)
    assert found.guarantees[-1].epsilon == study.get_trial(1).metrics["epsilon"]


def test_costly_accountants_give_fewer_lengths(
    client: dpfront.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def privacy(accountant: dpfront.privacy.Accountant) -> dpfront.Privacy:
        return dpfront.opacus(
            dataset_size=60_000, batch_size=256, epochs="epochs", delta=1e-6, accountant=accountant
        )

    with pytest.raises(dpfront.InvalidArgument) as refused:
        client.epsilon_curve(privacy("pld"), range(6, 31), noise_multiplier=1.1, epochs=30)
    compute = accounting.epsilon

    def costly(privacy: Any, params: Any, lengths: Any) -> Any:
        if len(lengths) > 6:
            raise refused.value
        return (yield from compute(privacy, params, lengths))

    study = dpfront.Study.create(
        client,
        "costly",
        [dpfront.Float("noise_multiplier", 0.5, 2), dpfront.Int("epochs", 1, 40)],
        [dpfront.Maximize("accuracy", 0), dpfront.epsilon(privacy("rdp"))],
        algorithm="random",
    )
    study.add_trial({"noise_multiplier": 1.1, "epochs": 30}, accuracy=0.5)
    monkeypatch.setattr(accounting, "epsilon", costly)
    (found,) = study.epsilon_curves([1])
    assert 2 <= len(found.lengths) <= 6
    assert (found.lengths[0], found.lengths[-1]) == (1, 30)


# --- studies


@pytest.mark.parametrize("backend", ["matplotlib", "plotly"])
def test_the_pictures_of_a_study(
    client: dpfront.Client, backend: plot.Backend, tmp_path: Any
) -> None:
    pytest.importorskip(backend)
    study = make_study(client, checkpoint_parameter="epochs")
    for k in range(4):
        with study.trial() as trial:
            for step in range(1, min(3, trial["epochs"]) + 1):
                trial.report(step, error=0.5 - k / 20 - step / 50)
    pictures = [
        study.plot_front("observed", backend=backend),
        study.plot_history(backend=backend),
        study.plot_parallel_coordinates("observed", color="epsilon", backend=backend),
        study.plot_learning_curves("observed", metric="error", backend=backend),
        study.plot_epsilon_over_epochs([1, 2], backend=backend),
    ]
    if backend == "plotly":
        assert [type(x).__name__ for x in pictures] == ["Figure"] * 5
        return
    from matplotlib.axes import Axes

    for picture in pictures:
        assert isinstance(picture, Axes)
        written(picture.figure, tmp_path)
    assert pictures[0].get_ylabel() == "error"
    assert pictures[0].get_xscale() == "log"
    inside = [p for p in study.front("observed") if not p.beyond_reference]
    assert len(drawn(pictures[0])[2][1]) == len(inside)


def test_a_constant_point_is_where_the_stairs_begin(tmp_path: Path) -> None:
    """ε = 0 has no place on a logarithmic axis; the point has no trial, and no parallel line."""
    constant = front_service_pb2.FrontPoint(
        constant_point="majority",
        values={
            "epsilon": front_service_pb2.FrontValue(value=0),
            "accuracy": front_service_pb2.FrontValue(value=0.76),
        },
    )
    front = made.front(TWO, constant, made.point(1, PARAMS, accuracy=0.9, epsilon=4, interval=0.02))
    found = front[0]
    assert (found.constant_point, found.trial, found.params, found.trials) == (
        "majority",
        0,
        {},
        (),
    )
    assert found.as_dict()["trial"] is None
    assert "none: majority" in str(front)
    (panel,) = data.front(front, []).panels
    points = panel.series[-1]
    assert points.hover[0] == "no run: majority"
    assert panel.x_log
    assert (points.x[0], points.y[0]) == (4, 0.76)
    written(plot.front(front, []).figure, tmp_path)
    with pytest.raises(ValueError, match="majority"):
        next(accounting.study_tradeoff(TWO, found, (), ""))


@pytest.mark.parametrize("backend", ["matplotlib", "plotly"])
def test_a_tradeoff_with_an_audit(client: dpfront.Client, backend: plot.Backend) -> None:
    pytest.importorskip(backend)
    privacy = dpfront.Privacy(dpfront.privacy.Gaussian(1, 1), 1e-2, "add_remove")
    curve = client.tradeoff(privacy)
    shown = audit.rates([1.0] * 600, [0.0] * 600, threshold=0.5, claim=curve.guarantee)
    chart = data.tradeoff(curve, shown)
    upper, lower, attack = chart.panels[0].series[1:]
    assert shown.refuted
    assert attack.x == (shown.fpr,)
    # The true curve reaches that of the audit's ε somewhere, and the claimed one nowhere.
    assert all(a >= b for a, b in zip(lower.y, upper.y, strict=True))
    assert "Audited: ε at least" in chart.note
    assert "confidence 0.95" in chart.note
    assert plot.tradeoff(curve, audit=shown, backend=backend) is not None

    weak = data.tradeoff(curve, audit.rates([1.0, 0.0] * 9, [0.0, 1.0] * 9, claim=curve.guarantee))
    upper, lower = weak.panels[0].series[1:3]
    assert any(a < b for a, b in zip(lower.y, upper.y, strict=True))
