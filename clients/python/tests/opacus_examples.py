"""The examples in examples/with_opacus, the mistakes that tests make in them, and what Opacus did.

    python -m tests.opacus_examples

in clients/python, in an environment with torch and Opacus, runs all of them with every mistake
and writes what Opacus made of it to tests/fixtures/opacus.json, from which test_opacus.py
replays it without either (make record-frameworks).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import dpfront
from dpfront import Float, Int, Maximize, PrivacyMismatch, Study

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "with_opacus"
FIXTURE = Path(__file__).resolve().parent / "fixtures" / "opacus.json"
EXAMPLES = ("mnist", "cifar10", "names", "table", "finetune")
RECORDS, DELTA = 500, 1e-5
CONFIGURATION = {"lr": 0.1, "sigma": 1.0, "batch_size": 64, "epochs": 2}
SPEC = dpfront.opacus(dataset_size=RECORDS, noise_multiplier="sigma", epochs="epochs", delta=DELTA)

# What each does to a program, as a regular expression with its replacement, and the part of the
# run that differs then.
MISTAKES = {
    "shuffled loader": (
        r"(data_loader=train_loader,)(\s+noise_multiplier)",
        r"\1 poisson_sampling=False,\2",
        "sampler",
    ),
    "drop_last": (
        r"DataLoader\(train_set, batch_size=args.batch_size",
        r"\g<0>, drop_last=True",
        "sampling probability",
    ),
    "wrong q": (
        r"DataLoader\(train_set, batch_size=args.batch_size",
        r"\g<0> // 2",
        "sampling probability",
    ),
    "replaced sampler": (
        r"max_grad_norm=[^\n]+\n( +)\)\n",
        r"\g<0>\1train_loader = DataLoader(train_loader.dataset, args.batch_size, "
        r"shuffle=True, collate_fn=train_loader.collate_fn)\n",
        "sampler",
    ),
    "sigma of 2C": (r"noise_multiplier=args.sigma", r"\g<0> / 2", "noise multiplier"),
}
CASES = [(e, m) for e in EXAMPLES for m in ("none", *MISTAKES)]


def make_study(client: dpfront.Client, id: str, **fields: Any) -> Study:
    """Creates a study of the examples' parameters."""
    return Study.create(
        client,
        id,
        parameters=[
            Float("lr", 1e-3, 5, log=True),
            Float("sigma", 0.5, 4, log=True),
            Int("batch_size", 2, 256),
            Int("epochs", 1, 4),
        ],
        metrics=[Maximize("accuracy", 0), dpfront.epsilon(fields.pop("privacy", SPEC))],
        algorithm="random",
        **{"checkpoint_parameter": "epochs", **fields},
    )


def study_id(example: str, mistake: str) -> str:
    """Returns the id of the study of a case."""
    return f"{example}-" + re.sub("[^a-z]", "-", mistake.lower())


def with_mistake(example: str, mistake: str) -> str:
    """Returns the program of an example with a mistake in it."""
    source = (FOLDER / f"{example}_tuned.py").read_text()
    if mistake == "none":
        return source
    pattern, replacement, _ = MISTAKES[mistake]
    changed, count = re.subn(pattern, replacement, source)
    assert count == 1, (example, mistake, count)
    return changed


@contextmanager
def recording() -> Iterator[dict[str, Any]]:
    """Records what make_private returns, and the lots, steps and accounting of every epoch."""
    import opacus
    from opacus.utils.uniform_sampler import UniformWithReplacementSampler as Sampler

    seen: dict[str, Any] = {"epochs": []}
    drawn, steps = [0], [0]
    make_private: Callable[..., Any] = opacus.PrivacyEngine.make_private
    draw = Sampler.__iter__

    def recorded(engine: Any, *args: Any, **kwargs: Any) -> Any:
        made = make_private(engine, *args, **kwargs)
        optimizer, sampler = made[1], made[-1].batch_sampler
        seen["sampler"] = f"{type(sampler).__module__}.{type(sampler).__qualname__}"
        seen["sample_rate"] = getattr(sampler, "sample_rate", None)
        seen["lots"] = len(sampler)
        seen["noise_multiplier"] = optimizer.noise_multiplier
        seen["max_grad_norm"] = optimizer.max_grad_norm
        seen["accountant"] = engine.accountant.mechanism()

        def stepped(*_: object) -> None:
            steps[0] += 1
            epoch = (steps[0] - 1) // len(sampler)
            now = {
                "drawn": drawn[0],
                "steps": steps[0],
                "history": [list(entry) for entry in engine.accountant.history],
            }
            if steps[0] % len(sampler) == 0:
                now["epsilon"] = engine.accountant.get_epsilon(DELTA)
            seen["epochs"][epoch:] = [now]

        optimizer.original_optimizer.register_step_post_hook(stepped)
        return made

    def counted(sampler: Any) -> Iterator[Any]:
        for lot in draw(sampler):
            drawn[0] += 1
            yield lot

    opacus.PrivacyEngine.make_private = recorded
    Sampler.__iter__ = counted
    try:
        yield seen
    finally:
        opacus.PrivacyEngine.make_private = make_private
        Sampler.__iter__ = draw


def run_example(study: Study, example: str, mistake: str) -> tuple[dpfront.Trial, dict[str, Any]]:
    """Runs an example with a mistake. Returns its trial, and what was recorded."""
    if str(FOLDER) not in sys.path:
        sys.path.insert(0, str(FOLDER))
    module = ModuleType("example")
    exec(compile(with_mistake(example, mistake), example, "exec"), module.__dict__)
    trial = study.ask(fixed=CONFIGURATION)
    with recording() as seen:
        try:
            module.main(trial)
        except PrivacyMismatch as error:
            seen["mismatch"] = {"what": error.what, "text": str(error)}
        else:
            seen["mismatch"] = None
    return trial, seen


def main() -> None:
    """Records the fixture."""
    import opacus
    import torch

    torch.set_num_threads(1)
    recorded: dict[str, Any] = {"opacus": opacus.__version__, "torch": torch.__version__}
    with dpfront.local_server() as server:
        for example, mistake in CASES:
            study = make_study(server.client(), study_id(example, mistake))
            _, recorded[f"{example}, {mistake}"] = run_example(study, example, mistake)
    FIXTURE.parent.mkdir(exist_ok=True)
    FIXTURE.write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main()
