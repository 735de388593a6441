"""What the driver reports is told by what it means; the traces of cleaning up are no error."""

from __future__ import annotations

from typing import Any

import pytest
from devices import SAMPLE, gpu_rank, half, on_gpu
from windows import event, samples

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.gpu.gpu_error import detect


def found(*events: dict[str, Any], **gpu: Any) -> Finding | None:
    return detect(on_gpu(events=list(events), gpu=gpu))


def xid(number: int) -> dict[str, Any]:
    return event("gpu_error", gpu="0", xid=number, error=f"Xid {number}")


@pytest.mark.parametrize(
    ("number", "cause", "severity"),
    [
        (79, "the device was lost", "critical"),
        (48, "Xid 48", "critical"),
        (95, "Xid 95", "critical"),
        (119, "Xid 119", "critical"),
        (31, "a kernel did something illegal", "warning"),
        (13, "a kernel did something illegal", "warning"),
        (61, "Xid 61", "warning"),
    ],
)
def test_an_xid_is_told_by_its_meaning(number: int, cause: str, severity: str) -> None:
    """The hardware's are critical, a program's own and unknown ones are not."""
    one = found(xid(number))
    assert one is not None
    assert (one.cause, one.severity, one.gain) == (cause, severity, None)
    assert one.evidence["xids"] == str(number)
    assert one.evidence["gpu"] == "0"


def test_cleaning_up_is_no_error() -> None:
    """A killed program leaves them, and they add nothing to another one."""
    assert found(xid(43), xid(45)) is None
    one = found(xid(31), xid(43))
    assert one is not None
    assert one.evidence["xids"] == "31"


def test_the_gravest_counts() -> None:
    """A program's error that follows a broken device is not the cause."""
    one = found(xid(31), xid(48), xid(79))
    assert one is not None
    assert (one.cause, one.evidence["xids"]) == ("the device was lost", "31, 48, 79")


def test_a_lost_device() -> None:
    """As the driver's answers tell it, without an Xid."""
    one = found(event("gpu_error", gpu="0", lost=True, error="NVMLError_GpuIsLost: GPU is lost"))
    assert one is not None
    assert (one.cause, one.severity) == ("the device was lost", "critical")
    assert "GpuIsLost" in one.evidence["error"]


def test_memory_that_loses_data_during_the_run() -> None:
    """Counted from the run's beginning: what was there before is not this run's. Corrected ones are fine."""
    one = found(gpu_ecc_uncorrected=half(7, 5), gpu_ecc_corrected=half(900, 1))
    assert one is not None
    assert (one.severity, one.evidence["uncorrected_errors"]) == ("critical", 2)
    assert found(gpu_ecc_uncorrected=5, gpu_ecc_corrected=half(900, 1)) is None
    assert found(gpu_ecc_uncorrected=half(0, 5)) is None, "a driver that was loaded anew counts from 0"


def test_a_value_that_cannot_be_read_is_no_error() -> None:
    """Many devices do not have all of them."""
    assert found(event("gpu_unread", gpu="0", call="power", error="NVMLError_NotSupported")) is None
    assert found(event("gpu_error", gpu="0", xid="odd")) is None


def test_a_device_that_no_rank_uses_may_fail() -> None:
    """Somebody else's is lost: not this run's business. Where nobody can tell whose it is, it is told."""
    other = event("gpu_error", gpu="3", lost=True, error="NVMLError_GpuIsLost")
    unknown = gpu_rank(cuda={"uuid": None})
    two = on_gpu(unknown, events=[other], gpus={"here/1": samples(21, 1.0, **SAMPLE)})
    assert found(other) is None
    assert detect(two) is not None
    assert found(event("gpu_error", gpu=None, xid=79, error="Xid 79")) is not None


def test_an_error_of_the_board_is_its_parts() -> None:
    """The driver reports it of the board, the rank uses a part."""
    part = samples(21, 1.0, **SAMPLE)
    mine = gpu_rank(cuda={"uuid": "MIG-7"})
    seen = on_gpu(mine, gpus={"here/2.1": part}, listed=[{"gpu": "2.1", "uuid": "MIG-7"}], events=[
        event("gpu_error", gpu="2", xid=79, error="Xid 79")])  # fmt: skip
    assert detect(seen) is not None
