"""Where in the program's loops something happens: whether two events are of one iteration.

A step is one iteration's optimizer steps together. Two optimizers that step one after the other belong to one
iteration where the program went forward between them, and to two where it went back to a loop's beginning or
into another loop. Both are read from the instructions' offsets in the frames that both events share.
"""

from __future__ import annotations

import dis
import os
import sys
from functools import lru_cache
from types import CodeType, FrameType

#: One frame of a position: its identity, its code, the offset of the instruction that runs.
Place = tuple[int, CodeType, int]
#: From the outermost frame inwards.
Position = tuple[Place, ...]

#: Frames that are looked at: a library's own loops lie a dozen or two calls above the optimizer.
FRAMES = 64
_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_BACK = frozenset(dis.hasjrel) | frozenset(dis.hasjabs)


def position(skip: int) -> Position:
    """Where the program is, from the outermost frame to the first outside the probe.

    Args:
        skip: frames above the caller that are known to be no part of it.
    """
    found: list[Place] = []
    frame: FrameType | None = sys._getframe(skip + 1)
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    while frame is not None and len(found) < FRAMES:
        found.append((id(frame), frame.f_code, frame.f_lasti))
        frame = frame.f_back
    found.reverse()
    return tuple(found)


def same_iteration(earlier: Position, later: Position, *, moved: bool = False) -> bool:
    """Whether the program went only forward from `earlier` to `later`: no loop began anew.

    Args:
        moved: it must have gone forward; else the very same place counts too, as for several optimizers
            that a loop of their own steps one after the other.
    """
    if not earlier or not later or earlier[0][:2] != later[0][:2]:
        return False
    for depth, (before, after) in enumerate(zip(earlier, later, strict=False), 1):
        # Not by the frame's identity: a new call often lies where the last one lay, and often not. A
        # function that was called anew from the same place goes on as if it had been called once.
        if before[1] is not after[1]:
            return not moved  # two calls made in the same place
        if before[2] != after[2]:
            around = [(low <= before[2] <= high, low <= after[2] <= high) for low, high in loops(before[1])]
            left = (True, False) in around or _in_a_loop(earlier[depth:])
            entered = (False, True) in around or _in_a_loop(later[depth:])
            return before[2] < after[2] and not (left and entered)  # one loop after another
    return not moved


def _in_a_loop(frames: Position) -> bool:
    return any(low <= at <= high for _, code, at in frames for low, high in loops(code))


@lru_cache(maxsize=1)
def _foreign() -> tuple[str, ...]:
    torch = os.path.dirname(str(sys.modules["torch"].__file__))
    return _OURS, torch + os.sep


def calling_line(skip: int) -> tuple[int, int]:
    """Identity of the code, and offset, of the first caller outside torch and the probe, `skip` calls above.

    A code object itself as a key would be hashed anew each time, with all of its constants.
    """
    frame, foreign = sys._getframe(skip + 1), _foreign()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(foreign):
        frame = frame.f_back
    return id(frame.f_code), frame.f_lasti


@lru_cache(maxsize=512)
def loops(code: CodeType) -> tuple[tuple[int, int], ...]:
    """The loops of a function: (first offset, offset of the jump back) of each."""
    return tuple(
        (int(instruction.argval), instruction.offset)
        for instruction in dis.get_instructions(code)
        if instruction.opcode in _BACK and int(instruction.argval) < instruction.offset
    )
