"""Audits a training loop of any framework: lower bounds of its ε, and faults of its steps.

    claim = client.epsilon(privacy)
    shown = audit.one_run(train, 1000, claim=claim)
    print(shown)
    dpfront.plot.tradeoff(client.tradeoff(privacy), audit=shown)

`one_run` and `two_worlds` run a training loop with canaries and return a `LowerBound` of ε beside
the claim. `replay` computes recorded steps again and finds what an attack cannot: clipping, noise
and lots that are not what is accounted. `rmia` and `attack_rate` measure an attack, which a study
can have as an objective.

A lower bound above the claim proves a fault. One below it proves nothing.
"""

from dpfront.audit._attacks import LowerBound, dirac_score, one_run, rates, two_worlds
from dpfront.audit._membership import AttackRate, attack_rate, rmia
from dpfront.audit._opacus import opacus_steps, torch_gradients
from dpfront.audit._replay import Finding, Replay, Step, replay

__all__ = [
    "AttackRate",
    "Finding",
    "LowerBound",
    "Replay",
    "Step",
    "attack_rate",
    "dirac_score",
    "one_run",
    "opacus_steps",
    "rates",
    "replay",
    "rmia",
    "torch_gradients",
    "two_worlds",
]
