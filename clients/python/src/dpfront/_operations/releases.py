"""Operations that publish, and the ledgers that they charge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpfront import _convert as convert
from dpfront import _read as read
from dpfront import privacy as p
from dpfront._operations.calls import Call, Operation, pages
from dpfront._results.releases import Charge, LedgerInfo, Release
from dpfront.v1 import privacy_pb2, release_service_pb2


def create_ledger(
    id: str,
    records: int,
    target_epsilon: float,
    delta: float,
    adjacency: p.Adjacency,
    description: str,
) -> Operation[LedgerInfo]:
    request = release_service_pb2.CreateLedgerRequest(
        ledger_id=convert.text("id", id),
        ledger=convert.fill(
            release_service_pb2.Ledger(),
            description=description,
            records=records,
            epsilon=target_epsilon,
            delta=delta,
            adjacency=convert.enum_value(privacy_pb2.Adjacency, adjacency, "adjacency"),
        ),
    )
    answer: release_service_pb2.CreateLedgerResponse = yield Call(
        f"create ledger {id}", "releases", "CreateLedger", request
    )
    return read.ledger_info(answer.ledger)


def get_ledger(name: str) -> Operation[LedgerInfo]:
    request = release_service_pb2.GetLedgerRequest(name=name)
    answer: release_service_pb2.GetLedgerResponse = yield Call(
        f"read {name}", "releases", "GetLedger", request
    )
    return read.ledger_info(answer.ledger)


def list_ledgers() -> Operation[list[LedgerInfo]]:
    request = release_service_pb2.ListLedgersRequest()
    answers = yield from pages("list the ledgers", "releases", "ListLedgers", request)
    return [read.ledger_info(x) for answer in answers for x in answer.ledgers]


def list_charges(ledger: str) -> Operation[list[Charge]]:
    request = release_service_pb2.ListChargesRequest(parent=ledger)
    answers = yield from pages(f"list the charges of {ledger}", "releases", "ListCharges", request)
    return [read.charge(x) for answer in answers for x in answer.charges]


def select_privately(
    ledger: str,
    utilities: Sequence[float],
    sensitivity: float,
    target_epsilon: float,
    method: str,
    request_id: str,
) -> Operation[Release]:
    request = convert.fill(
        release_service_pb2.SelectPrivatelyRequest(),
        ledger=ledger,
        utilities=[convert.number("utilities", x) for x in convert.several("utilities", utilities)],
        sensitivity=sensitivity,
        epsilon=target_epsilon,
        method=convert.enum_value(privacy_pb2.SelectionMethod, method, "method"),
        request_id=request_id,
    )
    answer: release_service_pb2.SelectPrivatelyResponse = yield Call(
        f"select privately on {ledger}", "releases", "SelectPrivately", request
    )
    return read.release(answer.release)


def _kusner(fields: Mapping[str, Any]) -> release_service_pb2.KusnerMethod:
    try:
        return convert.fill(
            release_service_pb2.KusnerMethod(), "kusner.", **convert.mapping("kusner", fields)
        )
    except KeyError as error:
        raise ValueError(f"kusner: there is no field {error}") from None


def release_best(
    study: str,
    metric: str,
    at_most: Mapping[str, float] | None,
    target_epsilon: float | None,
    kusner: Mapping[str, Any] | None,
    request_id: str,
) -> Operation[Release]:
    convert.positive("epsilon", target_epsilon)
    request = convert.fill(
        release_service_pb2.ReleaseBestRequest(),
        name=study,
        metric=metric,
        at_most=at_most,
        epsilon=target_epsilon,
        kusner=None if kusner is None else _kusner(kusner),
        request_id=request_id,
    )
    answer: release_service_pb2.ReleaseBestResponse = yield Call(
        f"release the best of {study}", "releases", "ReleaseBest", request
    )
    return read.release(answer.release)


def release_front(
    study: str, target_epsilon: float | None, delta: float | None, request_id: str
) -> Operation[Release]:
    convert.positive("epsilon", target_epsilon)
    convert.positive("delta", delta)
    request = convert.fill(
        release_service_pb2.ReleaseFrontRequest(name=study),
        epsilon=target_epsilon,
        delta=delta,
        request_id=request_id,
    )
    answer: release_service_pb2.ReleaseFrontResponse = yield Call(
        f"release the front of {study}", "releases", "ReleaseFront", request
    )
    return read.release(answer.release)


def get_release(name: str) -> Operation[Release]:
    request = release_service_pb2.GetReleaseRequest(name=convert.text("name", name))
    answer: release_service_pb2.GetReleaseResponse = yield Call(
        f"read {name}", "releases", "GetRelease", request
    )
    return read.release(answer.release)


def list_releases(parent: str) -> Operation[list[Release]]:
    request = release_service_pb2.ListReleasesRequest(parent=parent)
    answers = yield from pages(
        f"list the releases of {parent}", "releases", "ListReleases", request
    )
    return [read.release(x) for answer in answers for x in answer.releases]
