"""File systems: which one a path lies on, as /proc/mounts tells. Elsewhere than on Linux nothing is known."""

from __future__ import annotations

import re
from pathlib import Path

#: Types on which locks, memory maps and SQLite's write-ahead log cannot be relied on: the memory that those
#: share between processes is not shared between machines.
NETWORK = frozenset(
    "nfs nfs4 cifs smb3 smbfs lustre gpfs beegfs ceph glusterfs afs 9p pvfs2 orangefs panfs wekafs virtiofs "
    "fuse.sshfs fuse.ceph fuse.glusterfs fuse.s3fs fuse.gcsfuse fuse.juicefs".split()
)
MOUNTS = Path("/proc/mounts")

#: How spaces, tabs, line breaks and backslashes of a mount point are written there (getmntent(3)).
_OCTAL = re.compile(r"\\([0-7]{3})")


def on_network(path: Path, mounts: Path = MOUNTS) -> bool:
    """Whether `path`, which need not be there, lies on a network file system; False where nobody knows."""
    return kind(path, mounts) in NETWORK


def kind(path: Path, mounts: Path = MOUNTS) -> str:
    """Type of the file system that `path` lies on, by its innermost mount; "" where nobody knows."""
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    resolved, best, found = f"{path.resolve()}/", "", ""
    for line in lines:
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = _OCTAL.sub(lambda code: chr(int(code[1], 8)), fields[1]).rstrip("/") + "/"
        # Of several mounts on one point the last is the one that is seen.
        if resolved.startswith(point) and len(point) >= len(best):
            best, found = point, fields[2]
    return found
