"""Train a small CNN on scikit-learn's handwritten digits, with the monitor attached.

Every image is turned, shifted and stretched in Python each time it is read, by the training process
itself (`num_workers=0`). That is how many first versions of a training script look, and the model
waits for it: open the printed address and see. Then start it again with `--workers 2`.
"""

from __future__ import annotations

import argparse
import signal
import time
from typing import Any

import numpy as np
import torch
from scipy.ndimage import affine_transform, gaussian_filter, map_coordinates
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

import monitor

SIZE = 32


class Digits(Dataset[tuple[Tensor, int]]):
    """The digits at 32 x 32 pixels, a little different each time when `augment` is on."""

    def __init__(self, images: np.ndarray, labels: np.ndarray, augment: bool) -> None:
        self.images = images.repeat(4, axis=1).repeat(4, axis=2) / 16.0
        self.labels, self.augment = labels, augment

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = self.images[index]
        if self.augment:
            image = distort(image)
        return torch.from_numpy(image).float()[None], int(self.labels[index])


def distort(image: np.ndarray) -> np.ndarray:
    """Turn by up to 15 degrees, scale by up to 10 %, shift by up to a pixel, then bend."""
    angle, scale = np.radians(np.random.uniform(-15, 15)), np.random.uniform(0.9, 1.1)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) * scale
    centre = (SIZE - 1) / 2
    offset = centre - turn @ np.full(2, centre) + np.random.uniform(-1, 1, 2)
    image = affine_transform(image, turn, offset, order=3)
    bend = [gaussian_filter(np.random.uniform(-1, 1, (SIZE, SIZE)), 4) * 8 for _ in range(2)]
    return map_coordinates(image, np.indices((SIZE, SIZE)) + bend, order=3)


def make_model() -> nn.Sequential:
    """Three convolutions and a linear layer, 10 classes."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * (SIZE // 8) ** 2, 10),
    )  # fmt: skip


class Stop:
    """True once Ctrl-C was pressed or the time is over. A second Ctrl-C ends at once.

    The time runs from the first epoch on, so that a slow start takes nothing of the training.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds, self.pressed = seconds, False
        self.until: float | None = None
        signal.signal(signal.SIGINT, self.press)
        signal.signal(signal.SIGTERM, self.press)

    def press(self, number: int, frame: Any) -> None:
        self.pressed = True
        signal.signal(number, signal.SIG_DFL)

    def __bool__(self) -> bool:
        if self.until is None:
            self.until = time.monotonic() + self.seconds
        return self.pressed or time.monotonic() > self.until


def train(seconds: float, workers: int) -> None:
    stop = Stop(seconds)
    torch.manual_seed(0)
    torch.set_num_threads(1)  # enough for a model of this size, and it leaves CPUs to the loader's workers
    digits = load_digits()
    images, labels = digits.images, digits.target
    train_loader = DataLoader(
        Digits(images[360:], labels[360:], augment=True),
        batch_size=32,
        shuffle=True,
        num_workers=workers,
        persistent_workers=workers > 0,
    )
    test_loader = DataLoader(Digits(images[:360], labels[:360], augment=False), batch_size=360)
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    session = monitor.attach(model, name="digits")
    print(f"\n    Dashboard: {session.url or 'none (MONITOR_DASHBOARD is off)'}\n", flush=True)

    epoch = 0
    while not stop:
        epoch += 1
        for x, y in train_loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if stop:
                break
        print(f"epoch {epoch}: test accuracy {accuracy(model, test_loader):.3f}", flush=True)

    session.detach()
    summarise(session.report())


@torch.no_grad()
def accuracy(model: nn.Module, loader: DataLoader[Any]) -> float:
    """Share of images that get their own digit."""
    model.eval()
    right = total = 0
    for x, y in loader:
        right += int((model(x).argmax(1) == y).sum())
        total += len(y)
    model.train()
    return right / total


def summarise(report: dict[str, Any]) -> None:
    """What the monitor found, in a few lines."""
    if not report:
        return
    print(f"\n{report['steps']} steps, {report['throughput']['steps_per_s'] or 0:.1f} a second")
    for finding in report["findings"]:
        print(f"{finding['severity']}: {finding['title']} ({finding['cause']})\n    {finding['advice']}")
        if finding["snippet"]:
            print(f"    {finding['snippet']}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--seconds", type=float, default=float("inf"), help="end after so long")
    options.add_argument("--workers", type=int, default=0, help="num_workers of the loader")
    chosen = options.parse_args()
    train(chosen.seconds, chosen.workers)


if __name__ == "__main__":
    main()
