"""Three training steps on each of several meshes of eight devices, the last rows padding; prints what each saw."""

import json
import sys

import jax
import numpy as np

from workloads.models.sharding import make_mesh
from workloads.spec.job import JobSpec, MeshSpec, ModelSpec
from workloads.train.model import Trainer

ROWS, PADDED, CONTEXT = 8, 3, 16


def main() -> None:
    found = {}
    for data, tensor in ((1, 1), (8, 1), (4, 2), (1, 8)):
        model = ModelSpec(layers=2, width=64, heads=8, kv_heads=4, mlp_width=96, context=CONTEXT)
        job = JobSpec(name="a", pool="p", run="r1", steps=3, model=model, mesh=MeshSpec(data=data, tensor=tensor))
        trainer = Trainer(job, make_mesh(jax.devices()[: data * tensor], data, tensor))
        state, step = trainer.init(), trainer.train_step()
        lines = []
        for number in range(3):
            random = np.random.default_rng(number)
            tokens = random.integers(0, 256, (ROWS, CONTEXT + 1)).astype(np.int32)
            weight = (np.arange(ROWS) < ROWS - PADDED).astype(np.float32)
            slot = np.arange(ROWS, dtype=np.int32)
            state, seen = step(state, trainer.place({"tokens": tokens, "weight": weight, "slot": slot}))  # type: ignore[dict-item]
            lines.append({"loss": float(seen["loss"]), "rows": float(seen["rows"]), "hash": seen["hash"].tolist()})
        norms = {name: float(np.linalg.norm(value)) for name, value in jax.device_get(state.params).items()}
        found[f"{data}x{tensor}"] = {"lines": lines, "norms": norms}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
