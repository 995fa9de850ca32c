"""Checks a training loop with Opacus against the trial that it runs.

    with dpfront.opacus_trial(trial, privacy_engine, lambda: test(model)):
        train(privacy_engine)  # calls privacy_engine.make_private

The server knows ε of a trial from its parameters. Whether the training loop runs what the
study describes is another question, which this module answers as far as can be seen from
outside: sampler, sampling probability, noise multiplier, steps, and ε by Opacus's accountant.
It imports neither torch nor Opacus: it looks at the objects that ``make_private`` returns.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NoReturn

from dpfront._sync.trial import Trial
from dpfront._trial import Outcome, outcome
from dpfront.errors import DParetoError, PrivacyMismatch
from dpfront.integrations._plan import Plan, account, close, plans
from dpfront.v1 import privacy_pb2

__all__ = ["opacus_trial"]

POISSON_SAMPLER = "opacus.utils.uniform_sampler.UniformWithReplacementSampler"
DISTRIBUTED_SAMPLER = "opacus.utils.uniform_sampler.DistributedUniformWithReplacementSampler"
# Opacus's PRV accountant returns an upper bound that eps_error, by default 0.01, can move by
# twice as much. Where 1 / (1 / n) rounds below n, as for n = 93, Opacus makes n - 1 steps an
# epoch and accounts 1 / (n - 1): a relative difference of less than 1 %.
PRV_SLACK, RELATIVE_SLACK = 0.02, 0.01
# Seeds that PyTorch draws have 53 bits or more, those that people set are smaller than this.
LARGEST_HAND_SET_SEED = 2**32
# Opacus computes the norm of all layers in single precision.
NORM_SLACK = 1e-6


@contextmanager
def opacus_trial(
    trial: Trial,
    privacy_engine: Any,
    evaluate: Callable[[], Outcome] | None = None,
) -> Iterator[None]:
    """Checks the training in the block against the trial, and reports it after every epoch.

    ``privacy_engine`` is a new ``opacus.PrivacyEngine``, whose ``make_private`` is called once
    in the block. Its results are compared with what the study says of the trial:

    - at once: the sampler, its probability, and the noise multiplier;
    - at every step: that the lot came from that sampler, that the step has no more gradients
      than the lot has records, that the noise is for the norm to which they were clipped, and
      Opacus's record of the noise multiplier, the probability and the number of steps;
    - after every epoch: the number of steps;
    - at the end, and after the first epoch if the study has a checkpoint parameter: ε by Opacus's
      accountant, within the accuracy of that accountant, with ε of the server;
    - at the end: that the run is as long as the trial says.

    With ``evaluate``, its result is reported after every epoch: a dict of metrics, or a number
    if there is only one. The block ends the trial with the last report. When the server expects
    nothing more of the run, the block ends where the next epoch would begin. Without
    ``evaluate`` the caller reports and ends the trial, and the block only checks.

    ``evaluate`` is called within the last ``optimizer.step()`` of an epoch, after the update. A
    trial whose noise or lots come from a generator of the caller's, or from PyTorch after
    ``torch.manual_seed``, is marked as seeded (`Trial.seeded`), unless the engine is in
    ``secure_mode``.

    The study's privacy metrics must be of Poisson-sampled `DpSgd`, as `dpfront.opacus`
    describes it. Several processes (DistributedDataParallel) are not supported.

    Raises:
        PrivacyMismatch: Training and study differ. The trial is given back.
    """
    run = _Run(trial, privacy_engine, evaluate)
    try:
        with run.attached(), suppress(_Stop):
            run.check_engine()
            yield
            run.finish()
        if evaluate is not None and not trial.ended:
            trial.tell()
    except PrivacyMismatch as mismatch:
        if not trial.ended:
            with suppress(DParetoError):
                trial.release(str(mismatch))
        raise


class _Stop(BaseException):
    """Ends the block early. It passes ``except Exception`` of training code."""


class _Run:
    """One training run in a block."""

    def __init__(
        self,
        trial: Trial,
        engine: Any,
        evaluate: Callable[[], Outcome] | None,
    ) -> None:
        if not isinstance(trial, Trial):
            raise TypeError(f"trial: must be a Trial of the blocking client, is {trial!r}")
        self.trial = trial
        self.engine = engine
        self.evaluate = evaluate
        self.checkpoint = trial._info.checkpoint_parameter
        self.plans = plans(trial, "opacus_trial")
        self.sampler: Any = None
        self.optimizer: Any = None
        self.hook: Any = None
        self.generator: Any = None  # of the noise
        self.undo: list[Callable[[], None]] = []
        self.sizes: deque[int] = deque()  # of lots without a step yet
        # Since the last noise:
        self.norm = 0.0  # the largest to which gradients were clipped
        self.gradients = 0  # one for each record, if all is well
        self.backward = 0  # passes that ghost clipping clipped, and no step has used
        self.lots = 0  # of an epoch
        self.steps = 0  # in all
        self.drawn = 0  # lots of this pass over the loader
        self.used = 0  # lots of this pass that an optimizer step followed
        self.mismatch: PrivacyMismatch | None = None

    # --- around the block

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Intercepts make_private of the engine."""
        original = self.engine.make_private

        def make_private(*args: Any, **kwargs: Any) -> Any:
            made = original(*args, **kwargs)
            self.made(made[1], made[-1], kwargs.get("noise_generator"))
            # Ghost clipping has a criterion besides, whose backward() clips.
            self.watch(made[1], made[2].module if len(made) > 3 else None)
            return made

        self.engine.make_private = make_private
        if self.checkpoint:
            self.watch_reports()
        try:
            yield
        finally:
            del self.engine.make_private
            for undo in self.undo:
                undo()
            if self.hook is not None:
                self.hook.remove()
            if self.sampler is not None:
                self.sampler.__class__ = type(self.sampler).__mro__[1]

    def fail(self, what: str, here: object, study: object, advice: str) -> NoReturn:
        """Raises a mismatch, and again when the block ends, should training code catch it."""
        self.mismatch = PrivacyMismatch(what, here, study, advice)
        raise self.mismatch

    def check_engine(self) -> None:
        if self.engine.accountant.history:
            self.fail(
                "accountant",
                f"a history of {sum(h[2] for h in self.engine.accountant.history)} steps",
                "a run from its first step",
                "make a new PrivacyEngine for every trial",
            )

    def finish(self) -> None:
        """Checks the run as a whole."""
        if self.mismatch is not None:
            raise self.mismatch
        if self.optimizer is None:
            self.fail(
                "make_private",
                "not called in the block",
                "a private run",
                "call make_private of this privacy_engine within the block",
            )
        if self.trial.ended or self.trial.should_stop or self.at_checkpoint():
            return
        planned = self.planned_steps()
        if self.steps != planned:
            self.fail(
                "steps",
                self.steps,
                planned,
                f"train {planned // self.lots} epochs of len(loader) = {self.lots} steps",
            )

    def at_checkpoint(self) -> bool:
        """Whether the last report, of a study with a checkpoint parameter, has all steps."""
        reported = self.trial._reported_step
        return bool(self.checkpoint) and self.used == self.lots and reported == self.report_step()

    # --- what make_private returned

    def made(self, optimizer: Any, loader: Any, generator: Any) -> None:
        """Checks the optimizer and the data loader that training will use."""
        if self.optimizer is not None:
            self.fail("make_private", "called again", "one run", "use a block for every run")
        sampler = loader.batch_sampler
        self.check_sampler(sampler)
        for plan in self.plans:
            self.check_plan(plan, sampler, optimizer)
        self.optimizer, self.sampler, self.lots = optimizer, sampler, len(sampler)
        self.generator = generator
        # The sampler gets a subclass of its class, so that isinstance still holds. Opacus splits
        # large lots by wrapping the sampler (BatchMemoryManager): a wrapped loader misses them.
        run, plain = self, type(sampler)

        def draw(self: Any) -> Iterator[Any]:
            run.begin_pass()
            for lot in plain.__iter__(self):
                run.drawn += 1
                run.sizes.append(len(lot))
                yield lot

        sampler.__class__ = type(plain.__name__, (plain,), {"__iter__": draw})
        self.hook = optimizer.original_optimizer.register_step_post_hook(self.stepped)

    def watch(self, optimizer: Any, ghost: Any) -> None:
        """Follows what is clipped, and the noise that is added to it."""

        def wrap(owner: Any, name: str, wrapper: Callable[[Callable[[], Any]], Any]) -> None:
            setattr(owner, name, partial(wrapper, getattr(owner, name)))
            self.undo.append(partial(delattr, owner, name))

        def clip(original: Callable[[], Any]) -> None:
            # With clipping="per_layer" max_grad_norm is only what the noise is for.
            norms = getattr(optimizer, "max_grad_norms", [optimizer.max_grad_norm])
            self.clipped(math.hypot(*map(float, norms)), len(optimizer.grad_samples[0]))
            original()

        def clip_ghost(original: Callable[[], Any]) -> Any:
            factors = original()
            self.backward += 1
            self.clipped(float(ghost.max_grad_norm), len(factors))
            return factors

        def accumulate(original: Callable[[], Any]) -> None:
            if not self.backward:
                self.fail(
                    "clipping",
                    "gradients of a loss that does not clip",
                    "clipped gradients",
                    "compute the loss with the criterion that make_private returned",
                )
            self.backward = 0
            original()

        def add_noise(original: Callable[[], Any]) -> None:
            self.check_clipping(float(optimizer.max_grad_norm))
            original()

        if ghost is None:
            wrap(optimizer, "clip_and_accumulate", clip)
        else:
            wrap(ghost, "get_clipping_coef", clip_ghost)
            wrap(optimizer, "accumulate", accumulate)
        wrap(optimizer, "add_noise", add_noise)

    def watch_reports(self) -> None:
        """Follows at which step results are stored, since ε depends on it."""
        trial: Any = self.trial
        report, tell = trial.report, trial.tell

        def reported(step: int, *args: Any, **kwargs: Any) -> Any:
            self.check_step(step)
            return report(step, *args, **kwargs)

        def told(*args: Any, step: int | None = None, **kwargs: Any) -> Any:
            if step is not None:
                self.check_step(step)
            return tell(*args, step=step, **kwargs)

        trial.report, trial.tell = reported, told
        self.undo += [partial(delattr, trial, "report"), partial(delattr, trial, "tell")]

    def check_step(self, step: int) -> None:
        if self.lots == 0:
            return
        in_steps = self.in_steps()
        made = self.steps if in_steps else -(-self.steps // self.lots)
        if step < made:
            self.fail(
                "step of a result",
                f"{step} after {made} {'steps' if in_steps else 'epochs'}",
                f"at least {made}",
                "count from 1: a result belongs to what was trained before it",
            )

    def clipped(self, norm: float, gradients: int) -> None:
        self.norm = max(self.norm, norm)
        self.gradients += gradients

    def check_clipping(self, norm: float) -> None:
        """Checks the gradients of a lot, when noise for a norm is about to be added."""
        if self.norm > norm * (1 + NORM_SLACK):
            self.fail(
                "clipping norm",
                f"{self.norm:g} of the gradients, and {norm:g} of the noise",
                "the same",
                "change it only between lots, and where Opacus clips per layer or by ghost "
                "clipping not at all",
            )
        # Of an empty lot Opacus can make one of a random record (rand_on_empty).
        if self.sizes and self.gradients > max(1, self.sizes[0]):
            self.fail(
                "gradients in a step",
                self.gradients,
                f"at most one for each of the {self.sizes[0]} records of the lot",
                "train on the lot alone, average over copies of a record before clipping, and "
                "have the records in the first dimension (batch_first)",
            )
        self.norm, self.gradients = 0.0, 0

    def check_sampler(self, sampler: Any) -> None:
        kind = f"{type(sampler).__module__}.{type(sampler).__qualname__}"
        if kind == DISTRIBUTED_SAMPLER:
            self.fail("sampler", kind, POISSON_SAMPLER, "train in one process")
        if kind != POISSON_SAMPLER:
            self.fail(
                "sampler",
                kind,
                f"Poisson lots ({POISSON_SAMPLER})",
                "call make_private with poisson_sampling=True, and a DataLoader without a "
                "sampler of its own",
            )

    def check_plan(self, plan: Plan, sampler: Any, optimizer: Any) -> None:
        if not close(sampler.sample_rate, plan.probability):
            self.fail(
                "sampling probability",
                _fraction(sampler.sample_rate),
                _fraction(plan.probability),
                "give the DataLoader the batch size of the trial"
                + (
                    "; or is it made with drop_last=True, and the study without?"
                    if close(1 / sampler.sample_rate, plan.lots - 1)
                    else ""
                ),
            )
        if len(sampler) not in (plan.lots, int(1 / sampler.sample_rate)):
            self.fail(
                "steps in an epoch", len(sampler), plan.lots, "leave the sampler as Opacus made it"
            )
        self.check_noise(plan, optimizer.noise_multiplier)

    def check_noise(self, plan: Plan, noise_multiplier: float) -> None:
        if mismatch := plan.noise_mismatch(noise_multiplier):
            self.mismatch = mismatch
            raise mismatch

    # --- while training runs

    def begin_pass(self) -> None:
        """Starts an epoch, when the sampler is asked for its first lot."""
        if self.mismatch is not None:
            raise self.mismatch
        self.check_pass()
        if self.evaluate is not None and self.trial.should_stop and self.used:
            raise _Stop
        for plan in self.plans:
            self.check_plan(plan, self.sampler, self.optimizer)
        self.drawn = self.used = 0
        self.sizes.clear()

    def check_pass(self) -> None:
        """Checks that the last pass made a step for every lot, or none: then it only read."""
        if self.used not in (0, self.lots):
            self.fail(
                "steps in an epoch",
                self.used,
                self.lots,
                "make an optimizer step for every lot, also for an empty one, and finish epochs",
            )

    def stepped(self, *_: object) -> None:
        """Checks a step that the optimizer has made."""
        if self.mismatch is not None:
            raise self.mismatch
        self.steps += 1
        self.used += 1
        if self.used > self.drawn:
            self.fail(
                "sampler",
                f"step {self.steps} without a lot of the loader that make_private returned",
                "a Poisson lot for every step",
                "train on that loader, and with no other",
            )
        self.sizes.popleft()
        self.check_history()
        planned = self.planned_steps()
        if self.steps > planned:
            self.fail("steps", f"more than {planned}", planned, "train as long as the trial says")
        if self.used == self.lots:
            self.end_epoch()

    def check_history(self) -> None:
        """Compares what Opacus has accounted with the plan and the steps."""
        history = self.engine.accountant.history
        accounted = sum(steps for _, _, steps in history)
        if accounted != self.steps:
            self.fail(
                "accountant",
                f"{accounted} steps accounted",
                f"{self.steps} made",
                "use the optimizer that make_private returned, with its step hook",
            )
        noise_multiplier, probability, _ = history[-1]
        for plan in self.plans:
            self.check_noise(plan, noise_multiplier)
        if not close(probability, 1 / self.lots):
            self.fail(
                "sampling probability",
                _fraction(probability),
                _fraction(1 / self.lots),
                "use one lot for every step",
            )

    def planned_steps(self) -> int:
        """Steps of the whole run, by the number of lots that the loader has."""
        plan = self.plans[0]
        return plan.steps - plan.steps // plan.lots * (plan.lots - self.lots)

    def end_epoch(self) -> None:
        """Compares ε, and reports."""
        # Opacus's accountant takes a good part of a second. It depends only on what every step
        # checks, so that twice is enough: early, and for the whole run.
        first = bool(self.checkpoint) and self.steps == self.lots
        if first or self.steps == self.planned_steps():
            for plan in self.plans:
                self.check_epsilon(plan)
        if self.seeded():
            self.trial.seeded = True
        if self.evaluate is not None:
            metrics = outcome(self.evaluate(), self.trial._info)
            self.trial.report(self.report_step(), metrics)

    def report_step(self) -> int:
        """Returns the step of a report now: the epoch, or the number of steps if the study's
        checkpoint parameter is in steps.
        """
        epoch = self.steps // self.lots
        return epoch * self.plans[0].lots if self.in_steps() else epoch

    def in_steps(self) -> bool:
        """Whether the study's checkpoint parameter counts steps, not epochs."""
        return bool(self.trial.params.get(self.checkpoint) == self.plans[0].steps)

    def check_epsilon(self, plan: Plan) -> None:
        accountant, epoch = self.engine.accountant, self.steps // self.lots
        # Opacus accounts for adding and removing, and its "gdp" is an approximation.
        kind = accountant.mechanism()
        if plan.spec.adjacency != privacy_pb2.ADJACENCY_ADD_REMOVE or kind not in ("prv", "rdp"):
            return
        spec = privacy_pb2.PrivacySpec()
        spec.CopyFrom(plan.spec)
        spec.accountant, spec.conversion = privacy_pb2.ACCOUNTANT_TIGHTEST, 0  # type: ignore[assignment]
        by_epochs = spec.dp_sgd.WhichOneof("length") == "epochs"
        answer = account(self.trial, spec, epoch if by_epochs else epoch * plan.lots)
        ours, theirs = answer.guarantees[0].epsilon, accountant.get_epsilon(spec.delta)
        # Rényi accounting gives an upper bound that can be far above, and PRV accounting none (∞)
        # where ε is in the hundreds.
        vague = kind == "rdp" or theirs == math.inf
        above = math.inf if vague else PRV_SLACK + RELATIVE_SLACK * ours
        if not ours * (1 - RELATIVE_SLACK) <= theirs <= ours + above:
            self.fail(
                f"ε after epoch {epoch}",
                f"{theirs:.6g} at δ = {spec.delta:g}",
                f"{ours:.6g}",
                "please report it: noise, sampling and steps agree, but the accountants do not",
            )

    def seeded(self) -> bool:
        """Whether the noise comes from a seed that somebody knows."""
        if self.engine.secure_mode:
            return False
        generators = (self.generator, self.optimizer.generator, self.sampler.generator)
        if any(generator is not None for generator in generators):
            return True
        torch = sys.modules.get("torch")
        if torch is None:
            return False
        seeds = [torch.initial_seed()]
        if torch.cuda.is_initialized():  # its noise has a generator of its own
            seeds.append(torch.cuda.initial_seed())
        return bool(min(seeds) < LARGEST_HAND_SET_SEED)


def _fraction(q: float) -> str:
    return f"{q:.6g} (1/{1 / q:.6g})"
