"""Asks every detector about one window. Never raises."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

from monitor.diagnosis import detectors
from monitor.diagnosis.core import needs
from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.messages import message, pair_of
from monitor.diagnosis.core.window import Window
from monitor.diagnosis.signals.facts import lost_signals

Detect = Callable[[Window], Finding | None]


@dataclass(frozen=True)
class Detector:
    """One file below `detectors/`.

    Attributes:
        code: the finding code it speaks for (its CODE).
        needs: names from `needs.NEEDS` (its NEEDS).
        detect: window -> finding or None; pure.
        curve: origin and key of the metric that shows what it finds (its CURVE); None where none does.
        explains: codes that are mere consequences of this finding, and so are held back while it
            stands (its EXPLAINS; empty where it has none).
    """

    code: str
    needs: frozenset[str]
    detect: Detect
    explains: frozenset[str] = frozenset()
    curve: tuple[str, str] | None = None


@dataclass(frozen=True)
class Examination:
    """What one look at a window brought.

    Attributes:
        findings: what was found, in order of code.
        not_checked: {"code", "why"} of every check that could not run, and of every signal that could not be
            measured (its name is the code), in order of code; with "i18n" (see `message`) where the reason
            has parameters.
    """

    findings: list[Finding]
    not_checked: list[dict[str, Any]]


@cache
def modules() -> tuple[ModuleType, ...]:
    """Every module below `detectors/`, in order of code."""
    found = pkgutil.walk_packages(detectors.__path__, f"{detectors.__name__}.")
    imported = [importlib.import_module(entry.name) for entry in found if not entry.ispkg]
    return tuple(sorted(imported, key=lambda module: str(module.CODE)))


@cache
def unchecked() -> dict[str, str]:
    """Code -> why nothing here can tell it: of modules with UNCHECKED in place of a detector."""
    return {module.CODE: module.UNCHECKED for module in modules() if hasattr(module, "UNCHECKED")}


@cache
def discover() -> tuple[Detector, ...]:
    """Every detector, in order of code."""
    return tuple(
        Detector(
            module.CODE,
            module.NEEDS,
            module.detect,
            getattr(module, "EXPLAINS", frozenset()),
            getattr(module, "CURVE", None),
        )
        for module in modules()
        if module.CODE not in unchecked()
    )


@cache
def curves() -> dict[str, tuple[str, str]]:
    """Code -> origin and key of the metric that shows what was found, where one does."""
    return {detector.code: detector.curve for detector in discover() if detector.curve is not None}


def examine(window: Window, using: tuple[Detector, ...] | None = None) -> Examination:
    """Ask every detector. One that cannot run, or breaks, is named under `not_checked`, never as fine."""
    found: dict[str, Finding] = {}
    absent: dict[str, str] = dict(unchecked()) if using is None else {}
    absent.update({signal: needs.not_measured(why) for signal, why in lost_signals(window).items()})
    asked = discover() if using is None else using
    for detector in asked:
        try:
            why = needs.absent(detector.needs, window)
            finding = None if why else detector.detect(window)
        except Exception as error:  # noqa: BLE001 a broken check must not take the others with it
            why, finding = (
                message("the check failed: {error}", error=f"{type(error).__name__}: {error}"),
                None,
            )
        if why:
            absent[detector.code] = why
        elif finding is not None:
            found[detector.code] = finding
    return Examination(
        list(_without_consequences(found, asked).values()),
        [_reason(code, why) for code, why in sorted(absent.items())],
    )


def _reason(code: str, why: str) -> dict[str, Any]:
    pair = pair_of(why)
    return {"code": code, "why": why} if pair is None else {"code": code, "why": why, "i18n": pair}


def _without_consequences(found: Mapping[str, Finding], asked: tuple[Detector, ...]) -> dict[str, Finding]:
    """Drop what a graver finding explains; information explains nothing away."""
    explained = {
        code for detector in asked
        if detector.code in found and found[detector.code].severity != "info"
        for code in detector.explains
    }  # fmt: skip
    return {code: found[code] for code in sorted(found) if code not in explained}
