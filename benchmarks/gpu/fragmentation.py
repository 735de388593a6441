"""Memory is torn: requests grow, and a small piece stays in each segment left (`memory_fragmentation`)."""

import torch
from loop import Loop, made_there, perceptron, regress

MB = 2**20
#: The piece that stays, and by how much each request is larger than the one before.
SMALL, GROWTH = 3 * MB, 4 * MB
loop = Loop(__doc__)
torch.set_float32_matmul_precision("high")


def room(size: int) -> torch.Tensor:
    """So many bytes on the device."""
    return torch.empty(size, dtype=torch.uint8, device=loop.device)


def tear(count: int, whole: int) -> list[torch.Tensor]:
    """So many segments, of so many bytes together, each held by a piece at its end."""
    kept = []
    for number in range(count):
        size = (whole // count - GROWTH * count // 2) // (2 * MB) * 2 * MB + GROWTH * number
        room(size)  # a new segment: no earlier one is as large
        rest = room(size - SMALL)  # fits in that one only, and leaves just what the small piece takes
        kept.append(room(SMALL))
        del rest
    return kept


total = 256 * MB if loop.small else torch.cuda.get_device_properties(0).total_memory
kept = tear(loop.size(40, 3), total // 2)
regress(loop, perceptron(loop, 2048, 8), made_there(loop, 2048, 2048, batches=8), half=True)
loop.done(kept=len(kept))
