"""torch-rechub: CTRTrainer.fit on a DeepFM, validation by its own evaluate."""

import json
import os
import tempfile

os.environ["TQDM_DISABLE"] = "1"
import numpy as np
import torch
from torch_rechub.basic.features import DenseFeature, SparseFeature
from torch_rechub.models.ranking import DeepFM
from torch_rechub.trainers import CTRTrainer
from torch_rechub.utils.data import DataGenerator

torch.manual_seed(0)
np.random.seed(0)
torch.set_num_threads(1)
n = 3000
x = {f"c{i}": np.random.randint(0, 50, n) for i in range(6)} | {"d": np.random.randn(n).astype("float32")}
y = (x["c0"] % 2).astype("float32")
sparse = [SparseFeature(f"c{i}", vocab_size=50, embed_dim=8) for i in range(6)]
train, valid, _ = DataGenerator(x, y).generate_dataloader(
    split_ratio=[0.8, 0.1], batch_size=50, num_workers=0
)
model = DeepFM(
    [DenseFeature("d")], sparse, mlp_params={"dims": [128, 64], "dropout": 0.1, "activation": "relu"}
)
trainer = CTRTrainer(model, n_epoch=10, earlystop_patience=99, device="cpu", model_path=tempfile.mkdtemp())
trainer.fit(train, valid)
print(
    json.dumps({"steps": len(train) * 10, "samples": len(train.dataset) * 10, "epochs": 10, "findings": []})
)
