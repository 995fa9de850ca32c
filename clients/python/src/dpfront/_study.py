"""What both kinds of study share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dpfront import _convert as convert
from dpfront import results as r
from dpfront import spec as s
from dpfront._space import space
from dpfront.v1 import study_pb2

Parameters = Sequence[s.Parameter] | Callable[[Any], Any]
"""The parameters of a study, or an objective whose ``suggest_*`` calls say them."""


def listed(parameters: Parameters) -> Sequence[s.Parameter]:
    """Returns the parameters, of an objective by a dry call."""
    return space(parameters) if callable(parameters) else parameters


class StudyBase:
    """What is known of a study without asking its server."""

    def __init__(self, message: study_pb2.Study) -> None:
        self._keep(message)

    def _keep(self, message: study_pb2.Study) -> r.StudyInfo:
        """Takes the newest message of the study."""
        self._message = message
        self._info = convert.study_info(message)
        return self._info

    @property
    def id(self) -> str:
        """Id of the study."""
        return self._info.id

    @property
    def name(self) -> str:
        """Resource name: studies/{id}."""
        return self._message.name

    @property
    def spec(self) -> study_pb2.StudySpec:
        """The spec of the study when it was created, loaded or changed by this object, as the
        message of the contract.
        """
        return self._message.spec

    @property
    def parameters(self) -> list[s.Parameter]:
        """The parameters of the study, like `spec`."""
        return [convert.from_parameter(x) for x in self._message.spec.parameters]

    @property
    def publication(self) -> r.Publication | None:
        """What publishing the results of the study guarantees, with private_mode or
        random_stopping; that of ``study.info()`` has the spending so far.
        """
        return self._info.publication
