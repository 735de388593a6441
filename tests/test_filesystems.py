"""Which file system a path lies on."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.filesystems import NETWORK, kind, on_network

MOUNTS = """/dev/vda / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
tmpfs /home/me/scratch tmpfs rw 0 0
/dev/sdb /home/me/local\\040disk xfs rw 0 0
fileserver /mnt/a\\040b\\134c cifs rw 0 0
lake /mnt/lake lustre rw 0 0
damaged
"""


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    path = tmp_path / "mounts"
    path.write_text(MOUNTS)
    return path


@pytest.mark.parametrize(
    ("place", "network"),
    [
        ("/", False),
        ("/var/run", False),
        ("/home/me", True),
        ("/home/me/runs", True),
        ("/home/me/scratch/x", False),
        ("/home/me/local disk/runs", False),
        ("/homestead", False),
        ("/mnt/a b\\c/d", True),
        ("/mnt/lake", True),
    ],
)
def test_network_file_system(mounts: Path, place: str, network: bool) -> None:
    """The innermost mount decides; what a line cannot hold is written in octal there."""
    assert on_network(Path(place), mounts) is network


def test_the_last_of_several_mounts_on_one_point(mounts: Path) -> None:
    """It hides the others."""
    mounts.write_text("a /data ext4 rw 0 0\nb /data nfs rw 0 0\n")
    assert kind(Path("/data/x"), mounts) == "nfs"


def test_no_mounts(tmp_path: Path) -> None:
    """Where nothing is known of mounts, the disk is taken for a local one."""
    assert not on_network(tmp_path, tmp_path / "absent")


def test_a_link_leads_to_its_target(tmp_path: Path, mounts: Path) -> None:
    """What a link points to decides, not where the link lies."""
    mounts.write_text(f"a / ext4 rw 0 0\nb {tmp_path / 'far'} nfs rw 0 0\n")
    (tmp_path / "near").symlink_to(tmp_path / "far")
    assert on_network(tmp_path / "near" / "runs", mounts)


@pytest.mark.parametrize(
    "name", ["nfs4", "fuse.ceph", "fuse.s3fs", "virtiofs", "panfs", "orangefs", "beegfs"]
)
def test_types(name: str) -> None:
    """One list for tapes and for stores: there were two, one without seven of these."""
    assert name in NETWORK


def test_this_machine() -> None:
    """/proc is one."""
    assert kind(Path("/proc/self")) == "proc"
