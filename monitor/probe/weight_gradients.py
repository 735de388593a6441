"""`torch.autograd.grad`: backward time, and a micro-batch where it takes the place of a backward pass."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING, Any

from monitor.probe.clock import BACKWARD

if TYPE_CHECKING:
    from monitor.probe.adapters.plain import Boundary
    from monitor.probe.recorder import Recorder


def of_weights(*args: Any, **kwargs: Any) -> bool:
    """Whether `autograd.grad`, called so, asks for gradients of weights, and does not go on with them.

    A penalty on gradients goes on, an attack asks for those of its input: neither trains.
    """
    import torch

    inputs = args[1] if len(args) > 1 else kwargs.get("inputs")
    first = inputs[0] if isinstance(inputs, list | tuple) and inputs else inputs
    return not kwargs.get("create_graph") and isinstance(first, torch.nn.Parameter)


def timed_grad(recorder: Recorder, boundary: Boundary) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes the replacement of `torch.autograd.grad`. It trains nothing by itself; what it asks for may."""
    from monitor.probe import torch_compat

    loop_state, thread = recorder.loop_state, recorder.training_thread_id
    compiling = torch_compat.is_dynamo_compiling()
    push, pop = recorder.clock.push, recorder.clock.pop

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def grad(*args: Any, **kwargs: Any) -> Any:
            if compiling() or loop_state.in_backward or get_ident() != thread[0]:
                return original(*args, **kwargs)
            loop_state.in_backward, opened = True, push(BACKWARD)
            try:
                return original(*args, **kwargs)
            finally:
                loop_state.in_backward = False
                pop(opened)
                try:
                    if of_weights(*args, **kwargs):
                        boundary.gradient()
                except Exception as error:  # noqa: BLE001 - steps cannot be counted any more
                    recorder.fail(error)

        return grad

    return make
