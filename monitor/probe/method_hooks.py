"""Ways into a framework: its methods wrapped, its callbacks guarded, all of it taken back at detach."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from threading import get_ident
from typing import Any

from monitor.probe.clock import CHECKPOINT, FORWARD, OPTIMIZER, OTHER
from monitor.probe.patches import Patches
from monitor.probe.recorder import OPT_STEPS, Recorder
from monitor.probe.source_location import location, user_frame

#: Training steps that are looked at, of each loop, to see whether any module is heard of in them.
LOOKS = 3


class MethodHooks:
    """What adapters wrap is wrapped here, so that no exception of ours gets out and all is put back.

    Attributes:
        recorder: where steps go.
        patches: what is put back at detach.
        looks: training steps that are still to be looked at: is any module heard of in them?
    """

    def __init__(self, recorder: Recorder, patches: Patches) -> None:
        self.recorder = recorder
        self.patches = patches
        self.looks = LOOKS
        self._wrapped: set[tuple[int, str]] = set()

    def safe(self, note: Callable[..., Any]) -> Callable[..., None]:
        """`note`, called on the training thread only, and with no exception getting out."""
        training_thread_id, fail = self.recorder.training_thread_id, self.recorder.fail

        def noted(*args: Any, **kwargs: Any) -> None:
            if get_ident() != training_thread_id[0]:
                return
            try:
                note(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - the training must not notice
                fail(error)

        return noted

    def anywhere(self, note: Callable[..., Any]) -> Callable[..., None]:
        """`note`, called on any thread while recording is on, and with no exception getting out."""
        training_thread_id, fail = self.recorder.training_thread_id, self.recorder.fail

        def noted(*args: Any, **kwargs: Any) -> None:
            if not training_thread_id[0]:
                return
            try:
                note(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - the training must not notice
                fail(error)

        return noted

    def time_saving(self, owner: Any, name: str) -> None:
        """Have a method of this class count as saving a checkpoint."""
        loop_state, recorder, clock = self.recorder.loop_state, self.recorder, self.recorder.clock

        def note(began: int) -> None:
            took_ms = (time.perf_counter_ns() - began) / 1e6
            recorder.event("save", ms=round(took_ms, 3), location=location(user_frame(3)))

        noted = self.safe(note)

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def save(*args: Any, **kwargs: Any) -> Any:
                if loop_state.saving or not recorder.here:
                    return original(*args, **kwargs)
                loop_state.saving, began, depth = True, time.perf_counter_ns(), clock.push(CHECKPOINT)
                try:
                    return original(*args, **kwargs)
                finally:
                    clock.pop(depth)
                    loop_state.saving = False
                    noted(began)

            return save

        self.wrap(owner, name, make)

    def after(self, owner: Any, name: str, note: Callable[[Any], None]) -> None:
        """Call `note(object)` after this method of the class has returned."""
        noted = self.safe(note)

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def method(target: Any, /, *args: Any, **kwargs: Any) -> Any:
                result = original(target, *args, **kwargs)
                noted(target)
                return result

            return method

        self.wrap(owner, name, make)

    def time_training_step(self, owner: Any, name: str) -> None:
        """A method that runs forward, backward and more: what no hook of ours claims in it is `other`.

        Where no module is heard of (compiled as a whole, functions alone), all of that is `forward`.
        """
        training_thread_id, clock = self.recorder.training_thread_id, self.recorder.clock
        push, pop, mark = clock.push, clock.pop, clock.mark
        phase = OTHER

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def training_step(*args: Any, **kwargs: Any) -> Any:
                nonlocal phase
                if get_ident() != training_thread_id[0]:
                    return original(*args, **kwargs)
                depth = push(OTHER if self.looks else phase)
                try:
                    return original(*args, **kwargs)
                finally:
                    pop(depth)
                    if self.looks:
                        self.looks -= 1
                        phase = OTHER if mark()[1][FORWARD] else FORWARD

            return training_step

        self.wrap(owner, name, make)

    def time_optimizer(self, owner: Any, name: str) -> None:
        """The `step` of an optimizer that is none of torch's."""
        recorder, clock = self.recorder, self.recorder.clock

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def step(*args: Any, **kwargs: Any) -> Any:
                if not recorder.here:
                    return original(*args, **kwargs)
                depth = clock.push(OPTIMIZER)
                try:
                    return original(*args, **kwargs)
                finally:
                    clock.pop(depth)
                    recorder.values[OPT_STEPS] += 1

            return step

        self.wrap(owner, name, make)

    def wrap(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Replace a method of a class, once however many objects of it are attached."""
        if (id(owner), name) not in self._wrapped:
            self._wrapped.add((id(owner), name))
            self.patches.replace(owner, name, make)

    def on_detach(self, target: Any, undo: Callable[[Any], None]) -> None:
        """Have `undo(target)` called at detach, unless the target is gone by then: we keep none alive."""
        alive = weakref.ref(target)

        def back() -> None:
            found = alive()
            if found is not None:
                undo(found)

        self.patches.on_undo(back)
