"""Records the steps of training loops in PyTorch."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from dpfront.audit._replay import Array, Step


@contextmanager
def opacus_steps(optimizer: Any, data_loader: Any) -> Iterator[list[Step]]:
    """Records the steps of a loop with Opacus in the block, for `replay`.

        with audit.opacus_steps(optimizer, data_loader) as steps:
            train(model, optimizer, data_loader)

    ``optimizer`` and ``data_loader`` are what ``make_private`` returned. Lots are recorded as the
    sampler draws them, models and noisy averages when the wrapped optimizer makes a step: give
    `replay` the ``divisor`` ``optimizer.expected_batch_size``. The order of the weights is that of
    the optimizer's parameters. It holds a copy of the model for every step.
    """
    import torch

    steps: list[Step] = []
    lots: deque[list[int]] = deque()
    sampler = data_loader.batch_sampler
    plain = type(sampler)

    def draw(self: Any) -> Iterator[Any]:
        for lot in plain.__iter__(self):
            lots.append([int(i) for i in lot])
            yield lot

    def flat(tensors: Sequence[Any]) -> Array:
        vector: Array = torch.cat([t.detach().reshape(-1) for t in tensors]).cpu().numpy()
        return vector.astype("float64")

    def record(*_: Any) -> None:
        parameters = [p for p in optimizer.params if p.requires_grad]
        lot = lots.popleft() if lots else []
        steps.append(Step(lot, flat(parameters), flat([p.grad for p in parameters])))

    # A subclass of the sampler's class, so that isinstance still holds.
    sampler.__class__ = type(plain.__name__, (plain,), {"__iter__": draw})
    hook = optimizer.original_optimizer.register_step_pre_hook(record)
    try:
        yield steps
    finally:
        hook.remove()
        sampler.__class__ = plain


def torch_gradients(
    module: Any, loss: Callable[[Any, int], Any]
) -> Callable[[Array, Sequence[int]], Array]:
    """Returns the ``gradients`` of `replay` for a module of PyTorch: one backward pass a record.

    ``loss`` returns the loss of a record, by its number, under a model:
    ``lambda model, i: cross_entropy(model(x[i : i + 1]), y[i : i + 1])``. The module is copied; it
    must not be the one that Opacus has wrapped.
    """
    import numpy as np
    import torch

    own = deepcopy(module)
    parameters = [p for p in own.parameters() if p.requires_grad]

    def gradients(weights: Array, lot: Sequence[int]) -> Array:
        vector = torch.as_tensor(weights, dtype=parameters[0].dtype)
        torch.nn.utils.vector_to_parameters(vector, parameters)
        rows = []
        for i in lot:
            found = torch.autograd.grad(loss(own, i), parameters)
            rows.append(torch.cat([g.reshape(-1) for g in found]).numpy().astype("float64"))
        return np.array(rows)

    return gradients
