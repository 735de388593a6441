"""A large frozen teacher in eval mode, a small student; the teacher's softened answers are the targets."""

import torch
import torch.nn.functional as F
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def mlp(*sizes):
    layers = [part for a, b in zip(sizes, sizes[1:]) for part in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


def kd_loss(student, teacher, labels, T=4.0, alpha=0.9):
    soft = F.kl_div(F.log_softmax(student / T, 1), F.softmax(teacher / T, 1), reduction="batchmean") * T * T
    return alpha * soft + (1 - alpha) * F.cross_entropy(student, labels)


torch.manual_seed(34)
torch.set_num_threads(1)
truth = Truth()
teacher, student = mlp(128, 1024, 1024, 10).eval(), mlp(128, 128, 10)
for p in teacher.parameters():
    p.requires_grad = False
optimizer = torch.optim.Adam(student.parameters())
loader = DataLoader(TensorDataset(torch.randn(2048, 128), torch.randint(0, 10, (2048,))), batch_size=64)
for epoch in range(26):
    for x, y in loader:
        with torch.no_grad(), truth("forward"):
            t = teacher(x)
        with truth("forward"):
            s = student(x)
        loss = kd_loss(s, t, y)
        optimizer.zero_grad()
        with truth("backward"):
            loss.backward()
        with truth("optimizer"):
            optimizer.step()
        truth.step(len(x))
print(loss.item())
truth.tell(weights=student, epochs=26)
