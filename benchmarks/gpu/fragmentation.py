"""Memory is torn: half of the device lies in segments that one small piece holds (`memory_fragmentation`)."""

import torch
from loop import Loop, made_there, perceptron, regress

MB = 2**20
SMALL = 3 * MB
loop = Loop(__doc__)
torch.set_float32_matmul_precision("high")


def tear(count: int, size: int) -> list[torch.Tensor]:
    """So many segments of so many bytes, each with a piece in use and the rest free."""
    whole = [torch.empty(size, dtype=torch.uint8, device=loop.device) for _ in range(count)]
    whole.clear()
    kept, rest = [], []
    for _ in range(count):
        kept.append(torch.empty(SMALL, dtype=torch.uint8, device=loop.device))
        # What is left of the segment is taken, so that the next small piece tears the next one.
        rest.append(torch.empty(size - SMALL, dtype=torch.uint8, device=loop.device))
    rest.clear()
    return kept


total = 64 * MB if loop.small else torch.cuda.get_device_properties(0).total_memory
count = loop.size(200, 4)
kept = tear(count, total // 2 // count // MB * MB)
regress(loop, perceptron(loop, 2048, 8), made_there(loop, 2048, 2048, batches=8), half=True)
loop.done(kept=len(kept))
