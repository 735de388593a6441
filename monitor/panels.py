"""PANELS: every chart over time, declared once.

The table is stored with the run's schema and travels to the page in it, and the HTML report draws from it
too: a new chart is one entry here. Its texts are translated like all that the hub says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from monitor.schema import PHASES

Kind = Literal["lines", "stack", "choose"]
Target = Literal["page", "report"]


@dataclass(frozen=True)
class Series:
    """One metric in a chart.

    Attributes:
        key: the metric's.
        label: its name in this chart's legend; "" takes the metric's title.
        limit: it bounds the others: drawn in grey, and the axis does not reach for it.
    """

    key: str
    label: str = ""
    limit: bool = False


@dataclass(frozen=True)
class Panel:
    """One chart.

    Attributes:
        id: its name in the page, in tests and in docs/architecture.md.
        title: its heading.
        kind: all series as lines, stacked, or one of them at a time.
        unit: of all its series; "share" is shown in percent.
        series: what it shows, in this order.
        targets: who draws it. A chart of the report has the series of one kind of stream; where there is
            one such stream for each rank or device, it has one series, and a line for each of them.
        most: the axis ends here at the latest.
        floating: the axis may begin above zero.
        outlier: how many times the rest a peak may reach before it is cut.
        bare: the title says the unit, so that values do not.
        user: the user's own numbers are among its series.
        gpu: shown only in runs that have a GPU, or only in those that have none; None is both.
    """

    id: str
    title: str
    kind: Kind
    unit: str
    series: tuple[Series, ...]
    targets: tuple[Target, ...] = ("page", "report")
    most: float | None = None
    floating: bool = False
    outlier: float = 3.0
    bare: bool = False
    user: bool = False
    gpu: bool | None = None


_PAGE: tuple[Target, ...] = ("page",)
_REPORT: tuple[Target, ...] = ("report",)

#: In the order in which they stand. Beside the ribbon the page has six at a time: waiting for data, which the
#: ribbon shows too, only where there is no GPU. Power, clock and memory of GPUs have rows of their own there.
PANELS: tuple[Panel, ...] = (
    Panel(
        "ribbon",
        "Where a step's time goes",
        "stack",
        "ms",
        tuple(Series(f"run_{phase}_ms") for phase in PHASES),
        _PAGE,
    ),
    Panel(
        "throughput",
        "Throughput",
        "choose",
        "1/s",
        (
            Series("steps_per_s", "steps"),
            Series("samples_per_s", "samples"),
            Series("tokens_per_s", "tokens"),
        ),
        _PAGE,
    ),
    Panel(
        "data",
        "Waiting for data",
        "lines",
        "share",
        (Series("data_share", "share of time"),),
        _PAGE,
        most=1.0,
        gpu=False,
    ),
    Panel(
        "step",
        "Step time",
        "lines",
        "ms",
        (Series("step_p50_ms", "p50"), Series("step_p95_ms", "p95"), Series("step_p99_ms", "p99")),
    ),
    Panel("step_rate", "Throughput", "lines", "steps/s", (Series("steps_per_s"),), _REPORT),
    Panel("data_share", "Share of time waiting for data", "lines", "", (Series("data_share"),), _REPORT),
    Panel(
        "memory",
        "Memory",
        "lines",
        "MB",
        (
            Series("rss_mb", "main process RSS"),
            Series("tree_pss_mb", "process tree PSS"),
            Series("memory_limit_mb", "limit", limit=True),
        ),
        _PAGE,
    ),
    Panel(
        "cpu",
        "CPU cores",
        "lines",
        "cores",
        (
            Series("main_cpu", "main process"),
            Series("workers_cpu", "workers"),
            Series("cpu_used", "all"),
            Series("cpu_usable", "usable", limit=True),
        ),
        _PAGE,
        bare=True,
    ),
    Panel(
        "loss", "Loss", "choose", "", (Series("run_loss", "loss"),), floating=True, outlier=25.0, user=True
    ),
    Panel("rank_step", "Step time by rank", "lines", "ms", (Series("step_ms"),), _REPORT),
    Panel("tree_memory", "Memory of the process tree", "lines", "MB", (Series("tree_pss_mb"),), _REPORT),
    Panel("resident_memory", "Resident memory", "lines", "MB", (Series("rss_mb"),), _REPORT),
    Panel("main_cpu", "CPU, main process", "lines", "cores", (Series("main_cpu"),), _REPORT),
    Panel("workers_cpu", "CPU, loader workers", "lines", "cores", (Series("workers_cpu"),), _REPORT),
    Panel(
        "gpu",
        "GPU utilisation",
        "lines",
        "%",
        (
            Series("gpu_util", "busy"),
            Series("gpu_sm_activity"),
            Series("gpu_tensor_activity"),
            Series("gpu_dram_activity"),
        ),
        _PAGE,
        most=100.0,
        gpu=True,
    ),
    Panel("gpu_util", "GPU utilisation", "lines", "%", (Series("gpu_util"),), _REPORT),
    Panel("gpu_memory", "GPU memory", "lines", "MB", (Series("gpu_memory_used_mb"),), _REPORT),
)


def drawn_by(target: Target) -> tuple[Panel, ...]:
    """The charts of the page or of the report."""
    return tuple(panel for panel in PANELS if target in panel.targets)


def with_panels(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A run's schema with the page's charts as plain data; one that has charts already keeps its own."""
    return {"panels": [asdict(panel) for panel in drawn_by("page")], **schema}
