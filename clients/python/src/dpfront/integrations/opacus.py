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
from typing import Any

from dpfront._sync.trial import Trial
from dpfront._trial import Outcome
from dpfront.errors import PrivacyMismatch
from dpfront.integrations._plan import Plan, account, close, fraction
from dpfront.integrations._run import LARGEST_HAND_SET_SEED, RELATIVE_SLACK, TrialRun, give_back
from dpfront.samplers import RandomAllocationSampler
from dpfront.v1 import privacy_pb2

__all__ = ["opacus_trial"]

POISSON_SAMPLER = "opacus.utils.uniform_sampler.UniformWithReplacementSampler"
DISTRIBUTED_SAMPLER = "opacus.utils.uniform_sampler.DistributedUniformWithReplacementSampler"
# Opacus's PRV accountant returns an upper bound that eps_error, by default 0.01, can move by
# twice as much. Where 1 / (1 / n) rounds below n, as for n = 93, Opacus makes n - 1 steps an
# epoch and accounts 1 / (n - 1): a relative difference of less than RELATIVE_SLACK.
PRV_SLACK = 0.02
# Opacus computes the norm of all layers in single precision.
NORM_SLACK = 1e-6
# In these a clipped gradient can be longer than the clipping norm by some parts in a thousand.
COARSE = ("torch.bfloat16", "torch.float16")


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
    - at every step: the sampler of the lot, no more gradients than the lot has records, noise for
      the norm to which they were clipped, and Opacus's record of the noise multiplier, the
      probability and the number of steps;
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

    The study's privacy metrics must be of `DpSgd` with Poisson lots or random allocation, as
    `dpfront.opacus` describes them. With random allocation the loader's batch sampler is a
    `dpfront.samplers.RandomAllocationSampler`, and ε is the server's: Opacus's accountant does
    not know the sampler. Several processes (DistributedDataParallel) are not supported.

    Raises:
        PrivacyMismatch: Training and study differ. The trial is given back.
    """
    run = OpacusRun(trial, privacy_engine, "opacus_trial", evaluate)
    try:
        with run.attached(), suppress(_Stop):
            run.check_engine()
            yield
            run.finish()
        if evaluate is not None and not trial.ended:
            trial.tell()
    except PrivacyMismatch as mismatch:
        give_back(trial, mismatch)
        raise


class _Stop(BaseException):
    """Ends the block early. It passes ``except Exception`` of training code."""


class OpacusRun(TrialRun):
    """One training run with Opacus. Integrations of other frameworks that train with it take
    it without the block: `attached` intercepts make_private, or `take` what it returned.
    """

    def __init__(
        self,
        trial: Trial,
        engine: Any,
        who: str,
        evaluate: Callable[[], Outcome] | None = None,
    ) -> None:
        super().__init__(trial, who)
        self.engine = engine
        self.evaluate = evaluate
        self.reads = True  # lots from the loader, and not from calls of `lot`
        self.sampler: Any = None
        self.optimizer: Any = None
        self.generator: Any = None  # of the noise
        self.undo: list[Callable[[], None]] = []
        self.sizes: deque[int] = deque()  # of lots without a step yet
        # Since the last noise:
        self.norm = 0.0  # the largest to which gradients were clipped
        self.gradients = 0  # one for each record, if all is well
        self.backward = 0  # passes that ghost clipping clipped, and no step has used
        self.drawn = 0  # lots of this pass over the loader
        self.used = 0  # lots of this pass that an optimizer step followed

    # --- around the block

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Intercepts make_private of the engine in a block."""
        self.intercept()
        try:
            yield
        finally:
            self.detach()

    def intercept(self) -> None:
        """Intercepts make_private and get_epsilon of the engine."""
        original = self.engine.make_private

        def make_private(*args: Any, **kwargs: Any) -> Any:
            made = original(*args, **kwargs)
            # Ghost clipping has a criterion besides, whose backward() clips.
            ghost = made[2].module if len(made) > 3 else None
            self.take(made[1], made[-1], ghost, kwargs.get("noise_generator"))
            return made

        self.replace(self.engine, "make_private", make_private)
        self.watch_accounts()

    def detach(self) -> None:
        """Leaves all objects as they were."""
        for undo in reversed(self.undo):
            undo()
        self.undo.clear()

    def replace(self, owner: Any, name: str, function: Callable[..., Any]) -> None:
        """Puts a function in the place of a method, until the run is detached."""
        setattr(owner, name, function)
        self.undo.append(partial(delattr, owner, name))

    def take(self, optimizer: Any, loader: Any, ghost: Any = None, generator: Any = None) -> None:
        """Checks what make_private returned, and follows it. ``ghost`` is the module whose
        gradients ghost clipping clips.
        """
        if self.optimizer is not None:
            self.fail("make_private", "called again", "one run", "use a block for every run")
        self.check_precision(optimizer)
        self.use(loader.batch_sampler)
        self.check_noise(optimizer.noise_multiplier)
        self.optimizer, self.generator = optimizer, generator
        if self.reads:
            self.follow(loader.batch_sampler)
        hook = optimizer.original_optimizer.register_step_post_hook(self.stepped)
        self.undo.append(hook.remove)
        self.watch(optimizer, ghost)

    def check_engine(self) -> None:
        """Checks that the engine has accounted for no other run."""
        if self.engine.accountant.history:
            self.fail(
                "accountant",
                f"a history of {sum(h[2] for h in self.engine.accountant.history)} steps",
                "a run from its first step",
                "make a new PrivacyEngine for every trial",
            )

    def check_precision(self, optimizer: Any) -> None:
        """Checks that gradients are clipped and summed in single precision or better."""
        for parameter in getattr(optimizer, "params", ()):
            if str(parameter.dtype) in COARSE:
                self.fail(
                    "precision",
                    f"parameters in {parameter.dtype}",
                    "torch.float32",
                    "keep the model in single precision, and compute in torch.autocast",
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
        super().finish()

    def at_checkpoint(self) -> bool:
        """Whether the last report, of a study with a checkpoint parameter, has all steps."""
        reported = self.trial._reported_step
        return bool(self.checkpoint) and self.used == self.lots and reported == self.report_step()

    # --- what make_private returned

    def use(self, sampler: Any) -> None:
        """Takes the sampler that training reads, if the study has it too."""
        for plan in self.plans:
            self.check_loader(plan, sampler)
        self.sampler, self.lots, self.sampled = sampler, len(sampler), True

    def lot(self, size: int) -> None:
        """Counts a lot that training reads."""
        self.drawn += 1
        self.sizes.append(size)

    def follow(self, sampler: Any) -> None:
        """Counts the lots of a sampler."""
        # The sampler gets a subclass of its class, so that isinstance still holds. Opacus splits
        # large lots by wrapping the sampler (BatchMemoryManager): a wrapped loader misses them.
        run, plain = self, type(sampler)

        def draw(self: Any) -> Iterator[Any]:
            run.begin_pass()
            for lot in plain.__iter__(self):
                run.lot(len(lot))
                yield lot

        def undo() -> None:
            sampler.__class__ = plain

        kind = {"__iter__": draw, "__module__": plain.__module__}
        sampler.__class__ = type(plain.__qualname__, (plain,), kind)
        self.undo.append(undo)

    def watch(self, optimizer: Any, ghost: Any) -> None:
        """Follows what is clipped, and the noise that is added to it."""

        def wrap(owner: Any, name: str, wrapper: Callable[[Callable[[], Any]], Any]) -> None:
            self.replace(owner, name, partial(wrapper, getattr(owner, name)))

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

    def watch_accounts(self) -> None:
        """Follows at which δ training code asks for ε, and at which step results are stored."""
        if self.checkpoint:
            self.watch_reports()
        if not hasattr(self.engine, "get_epsilon"):
            return
        get_epsilon = self.engine.get_epsilon

        def asked(delta: float) -> Any:
            self.check_delta(delta)
            return get_epsilon(delta)

        self.replace(self.engine, "get_epsilon", asked)

    def watch_reports(self) -> None:
        """Follows at which step results are stored, since ε depends on it."""
        trial: Any = self.trial
        report, tell = trial.report, trial.tell

        def reported(step: int, *args: Any, **kwargs: Any) -> Any:
            self.check_report_step(step)
            return report(step, *args, **kwargs)

        def told(*args: Any, step: int | None = None, **kwargs: Any) -> Any:
            if step is not None:
                self.check_report_step(step)
            return tell(*args, step=step, **kwargs)

        self.replace(trial, "report", reported)
        self.replace(trial, "tell", told)

    def check_report_step(self, step: int) -> None:
        if self.optimizer is None:
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

    def check_loader(self, plan: Plan, sampler: Any) -> None:
        """Compares a loader's batch sampler with a plan."""
        kind = f"{type(sampler).__module__}.{type(sampler).__qualname__}"
        if kind == DISTRIBUTED_SAMPLER:
            self.fail("sampler", kind, POISSON_SAMPLER, "train in one process")
        if plan.allocation:
            self.check_allocation(plan, sampler, kind)
            return
        if kind != POISSON_SAMPLER:
            self.fail(
                "sampler",
                kind,
                f"Poisson lots ({POISSON_SAMPLER})",
                "call make_private with poisson_sampling=True, and a DataLoader without a "
                "sampler of its own",
            )
        if not close(sampler.sample_rate, plan.probability):
            self.fail(
                "sampling probability",
                fraction(sampler.sample_rate),
                fraction(plan.probability),
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

    def check_allocation(self, plan: Plan, sampler: Any, kind: str) -> None:
        """Compares a sampler with a plan of random allocation."""
        if not isinstance(sampler, RandomAllocationSampler):
            self.fail(
                "sampler",
                kind,
                "random allocation (dpfront.samplers.RandomAllocationSampler)",
                "give it to the DataLoader as batch_sampler, and make_private "
                "poisson_sampling=False",
            )
        if len(sampler) != plan.lots:
            self.fail(
                "steps in an epoch",
                len(sampler),
                plan.lots,
                "use samplers.batches_per_epoch(records, batch_size) with the trial's batch size",
            )
        if plan.records not in (None, sampler.records):
            self.fail("records", sampler.records, plan.records, "give the sampler len(data)")
        if not sampler.fresh:
            self.fail(
                "allocation", "the one of the first epoch", "a new one in every epoch", "fresh=True"
            )

    # --- while training runs

    def begin_pass(self) -> None:
        """Starts an epoch, when the sampler is asked for its first lot."""
        if self.mismatch is not None:
            raise self.mismatch
        self.check_pass()
        if self.evaluate is not None and self.trial.should_stop and self.used:
            raise _Stop
        self.use(self.sampler)
        self.check_noise(self.optimizer.noise_multiplier)
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
        self.step()
        self.used += 1
        if self.used > self.drawn:
            self.fail(
                "sampler",
                f"step {self.steps} without a lot of the loader that make_private returned",
                "a lot of it for every step",
                "train on that loader, and with no other",
            )
        self.sizes.popleft()
        self.check_history()
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
        self.check_noise(noise_multiplier)
        if not close(probability, 1 / self.lots):
            self.fail(
                "sampling probability",
                fraction(probability),
                fraction(1 / self.lots),
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
                self.check_accountant(plan)
        if self.seeded():
            self.trial.seeded = True
        if self.evaluate is not None:
            self.report(self.evaluate())

    def report_step(self) -> int:
        """Returns the step of a report now: the epoch, or the number of steps if the study's
        checkpoint parameter is in steps.
        """
        epoch = self.steps // self.lots
        return epoch * self.plans[0].lots if self.in_steps() else epoch

    def in_steps(self) -> bool:
        """Whether the study's checkpoint parameter counts steps, not epochs."""
        return bool(self.trial.params.get(self.checkpoint) == self.plans[0].steps)

    def check_accountant(self, plan: Plan) -> None:
        accountant, epoch = self.engine.accountant, self.steps // self.lots
        # Opacus accounts for Poisson lots, adding and removing; its "gdp" is an approximation.
        kind, adjacency = accountant.mechanism(), plan.spec.adjacency
        known = adjacency == privacy_pb2.ADJACENCY_ADD_REMOVE and not plan.allocation
        if not known or kind not in ("prv", "rdp"):
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
