"""TensorBoard: logs the trials of a study for its HParams page.

    with TensorBoardTracker(study, "logs") as tracker:
        study.optimize(train, callbacks=[tracker])

writes a folder for each trial, with its parameters, metrics by step, and ε, δ, adjacency and
coverage as text. ``tensorboard --logdir logs`` shows them. The front is ``front.json``.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.types_pb2 import DT_STRING
from tensorboard.plugins.hparams import metadata
from tensorboard.plugins.hparams.api_pb2 import Status
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionEndInfo
from tensorboard.plugins.hparams.summary_v2 import hparams_pb
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from dpfront._sync.study import Study
from dpfront.integrations._tracking import Record, Tracker

__all__ = ["TensorBoardTracker"]


class TensorBoardTracker(Tracker):
    """Logs a study into a folder of TensorBoard.

    Args:
        study: The study.
        logdir: The folder.
        timeout: How long the end of the block waits for the file system, in seconds.
    """

    def __init__(self, study: Study, logdir: str | Path, *, timeout: float = 60.0) -> None:
        super().__init__(study, timeout=timeout)
        self._folder = Path(logdir) / study.id

    def _known(self) -> set[int]:
        return {int(path.name.partition("-")[2]) for path in self._folder.glob("trial-*")}

    def _log(self, record: Record) -> None:
        # A folder gets its name when it is complete.
        part, folder = self._folder / f".{record.name}", self._folder / record.name
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        writer = EventFileWriter(str(part))
        begin, end = record.start.timestamp(), record.end.timestamp()

        def write(message: Any, step: int, time: float) -> None:
            writer.add_event(Event(wall_time=time, step=step, summary=message))

        write(hparams_pb(dict(record.params), f"{record.study}-{record.number}", begin), 0, begin)
        write(Summary(value=[_text(record.tags)]), 0, end)
        last = max((step for step, _ in record.curve), default=0)
        for step, metrics in (*record.curve, (last, record.metrics)):
            values = [Summary.Value(tag=key, simple_value=x) for key, x in metrics.items()]
            write(Summary(value=values), step, end)
        write(Summary(value=[_end(record.succeeded, end)]), 0, end)
        writer.close()
        part.rename(folder)

    def _log_front(self, front: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / "front.json").write_text(front, encoding="utf-8")


def _end(succeeded: bool, time: float) -> Any:
    """Returns how a trial ended, for the HParams page."""
    status = Status.Value("STATUS_SUCCESS" if succeeded else "STATUS_FAILURE")
    data = HParamsPluginData(session_end_info=SessionEndInfo(status=status, end_time_secs=time))
    return Summary.Value(
        tag=metadata.SESSION_END_INFO_TAG,
        metadata=metadata.create_summary_metadata(data),
        tensor=metadata.NULL_TENSOR,
    )


def _text(tags: Mapping[str, str]) -> Any:
    """Returns the tags as a table for TensorBoard's text page."""
    rows = ["| tag | value |", "|---|---|", *(f"| {k} | {v} |" for k, v in sorted(tags.items()))]
    plugin = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
    tensor = TensorProto(dtype=DT_STRING, string_val=["\n".join(rows).encode()])
    return Summary.Value(tag="dpareto/text_summary", metadata=plugin, tensor=tensor)
