"""What notebooks and print show of results."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

import dpfront
from dpfront import _convert as convert
from dpfront import _read as read
from dpfront.v1 import front_service_pb2, release_service_pb2, trial_pb2

from . import made
from .conftest import make_study

HOSTILE = "<script>alert('x')</script>\"&"
PARAMS = {"noise": 2.0, "epochs": 3, "optimizer": "<b>$adam$"}
TERMS = (
    "δ = 1e-06, add_remove adjacency with a public number of records (zero-out), exact accountant"
)
TAGS = {"a", "div", "p", "b", "small", "table", "thead", "tbody", "tr", "th", "td"}


class Reader(HTMLParser):
    """Reads the text of HTML, and refuses everything but plain tables."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        if tag == "a":
            target, *rest = attrs
            assert rest == [("target", "_blank"), ("rel", "noopener")]
            self.text += f"{target[1]}\n"
            attrs = []
        assert {name for name, _ in attrs} <= {"style"}
        assert all(
            "url" not in (value or "") and "color" not in (value or "") for _, value in attrs
        )
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data + "\n"


def shown(x: Any) -> str:
    """The text of an object in a notebook."""
    return Reader(x._repr_html_()).text


def test_a_guarantee() -> None:
    g = read.guarantee(made.privacy(1.00001))
    assert str(g) == f"ε at most 1.001, {TERMS}; covers one run, not the search"  # rounded up
    text = Reader(g._repr_html_()).text
    for part in ("at most 1.001", TERMS, "one run, not the search", "provided that a record is"):
        assert part in text
    assert "lower bound of the true ε\n0.9999\n" in text  # rounded down: of 0.99997
    unbounded = read.guarantee(made.privacy(float("inf")))
    assert str(unbounded).startswith("no bound of ε, δ = 1e-06")
    assert "no bound" in Reader(unbounded._repr_html_()).text
    assert repr(g).startswith("Guarantee(epsilon=1.00001, ")
    pure = made.privacy(1)
    pure.delta = 0
    del pure.assumptions[:]
    assert "δ = 0, add_remove adjacency, exact accountant" in str(read.guarantee(pure))


def test_a_trial() -> None:
    info = made.trial(7, PARAMS, accuracy=0.81239, epsilon=1.00001)
    text = shown(info)
    assert "Trial 7: succeeded" in text
    assert "<b>$adam$" in text
    assert "0.8124" in text
    assert f"ε at most 1.001, {TERMS}; covers one run, not the search" in text
    seeded = made.trial(7, PARAMS, codes=["SEEDED"], epsilon=1.5)
    assert "1.5" not in shown(seeded)
    assert "epsilon\nno ε holds: runs were seeded" in shown(seeded)
    assert "warning: SEEDED: about SEEDED" in shown(seeded)


def test_a_front() -> None:
    of = made.study()
    front = made.front(
        of,
        made.point(3, PARAMS, accuracy=0.9, epsilon=20, beyond=True),
        made.point(4, {**PARAMS, "epochs": 1}, accuracy=0.7, epsilon=1.00001, interval=0.05),
        codes=["SEEDED"],
    )
    lines = str(front).splitlines()
    assert lines[0] == "posterior front: 2 points, hypervolume 1.5"
    assert lines[1].startswith("epsilon: upper bound of ε for one run, not the search; δ = 1e-06, ")
    assert "add_remove adjacency with a public number of records" in lines[1]
    assert lines[2:4] == ["warning: SEEDED: about SEEDED", ""]
    assert [line.split() for line in lines[4:]] == [
        ["accuracy", "epsilon", "epochs", "noise", "optimizer", "trial", "remark", "accuracy_90%"],
        ["0.9", "20", "3", "2", "<b>$adam$", "3", "beyond_reference"],
        ["0.7", "1.001", "1", "2", "<b>$adam$", "4", "0.65..0.75"],
    ]
    assert repr(front) == str(front)
    assert "beyond_reference" in shown(front)
    assert front[-1].trial == 4
    empty = made.front(of)
    assert str(empty) == "no points on the posterior front"
    assert "no points on the posterior front" in shown(empty)


def test_a_recommendation() -> None:
    answer = front_service_pb2.QueryFrontResponse(
        reachable=True,
        parameters=convert.to_values(PARAMS),
        predictions={"accuracy": trial_pb2.MetricPrediction(median=0.9, lower=0.8, upper=0.95)},
        computed_metrics=made.metric_values({"epsilon": 1.00001}),
        optimize="accuracy",
        trials=["studies/made/trials/4"],
        runs=2,
        privacy=made.privacy(1.00001),
    )
    text = shown(read.recommendation(answer))
    assert "expected accuracy\n0.9, 90 % interval 0.8 to 0.95" in text
    assert f"ε at most 1.001, {TERMS}; covers one run, not the search" in text
    assert "trials 4 (2 runs)" in text
    answer.reachable = False
    answer.warnings.add(code="SEEDED")  # other runs were; the one to come need not be
    assert "ε at most 1.001" in shown(read.recommendation(answer))
    assert "out of reach, this is nearest" in shown(read.recommendation(answer))
    answer.predictions.clear()  # as where no model agrees with the measurements
    answer.reached["accuracy"] = 0.9
    answer.reached["epsilon"] = 1.00001
    text = shown(read.recommendation(answer))
    assert "measured accuracy\n0.9\n" in text
    assert "measured epsilon" not in text
    assert shown(read.recommendation(front_service_pb2.QueryFrontResponse())) == (
        "No recommendation yet\n"
    )


def test_a_ledger() -> None:
    assert f"ε at most 2.001, {TERMS}; covers all runs of the study together" in shown(
        made.ledger()
    )
    assert "composed\nno ε holds: runs were seeded" in shown(made.ledger("SEEDED"))


@pytest.mark.parametrize("kind", ["trial", "study", "front", "recommendation", "release"])
def test_hostile_names(kind: str) -> None:
    of = made.study(display_name=HOSTILE, description=HOSTILE, labels={HOSTILE: HOSTILE})
    of.spec.parameters[2].categorical_domain.categories[1] = HOSTILE
    of.warnings.add(code=HOSTILE, message=HOSTILE)
    params = {**PARAMS, "optimizer": HOSTILE}
    raw = made.trial(1, params, epsilon=1).raw
    raw.note = raw.state_reason = HOSTILE
    raw.labels[HOSTILE] = HOSTILE
    found = {
        "trial": read.trial_info(raw),
        "study": read.study_info(of),
        "front": made.front(of, made.point(1, params, accuracy=0.5, epsilon=1), codes=[HOSTILE]),
        "recommendation": read.recommendation(
            front_service_pb2.QueryFrontResponse(parameters=convert.to_values(params))
        ),
        "release": read.release(
            release_service_pb2.Release(
                name="studies/made/releases/1", mechanism=HOSTILE, protects=HOSTILE
            )
        ),
    }[kind]
    text = shown(found)
    assert HOSTILE in text
    assert "<script" not in found._repr_html_()


def test_lines_of_a_name_stay_one_line() -> None:
    of = made.study(description="first\nwarning: forged")
    lines = str(read.study_info(of)).splitlines()
    assert "description: first warning: forged" in lines


def test_a_link_to_the_page(client: dpfront.Client) -> None:
    study = make_study(client)
    assert "see it live" not in shown(study)  # nothing is asked of the server for it
    page = study.page_url()
    assert page is not None
    assert page == f"{client.page_url()}studies/{study.id}"
    assert f"{page}\nsee it live" in shown(study)
    hostile = read.study_info(made.study())
    html = hostile._card(page='http://x/"><script>').html()
    assert "<script>" not in html
    assert 'http://x/"><script>' in Reader(html).text


def test_study_and_trial_handles(client: dpfront.Client) -> None:
    study = make_study(client, checkpoint_parameter="epochs")
    text = shown(study)
    assert f"Study {study.id}" in text
    assert "parameter learning_rate\n0.001 to 1, log scale\n" in text
    assert "parameter lot_size\nintegers, 8 to 512, log scale\n" in text
    assert "metric error\nminimize, reference 1\n" in text
    assert "metric epsilon\nminimize, reference 10; upper bound of ε for one run" in text
    assert "δ = 1e-06, replace_one adjacency, rdp accountant" in text
    assert "trials\nnone\n" in shown(study.info())
    trial = study.ask()
    assert f"Trial {trial.number}: held" in shown(trial)
    assert "covers one run, not the search" in shown(trial)
    trial.seeded = True
    assert "epsilon\nno ε holds: runs were seeded\n" in shown(trial)
    trial.tell(error=0.5)
    assert f"Trial {trial.number}: ended" in shown(trial)
    assert "trials\n1 succeeded\n" in shown(study.info())
