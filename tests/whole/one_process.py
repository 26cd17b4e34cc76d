"""`python -m tests.whole.one_process FOLDER PROMPT_IDS N`: greedy tokens of the bundled engine on one device."""

import json
import sys

from workloads.serve.engine import Sampling
from workloads.serve.jax_engine import JaxEngine
from workloads.spec import EngineSpec


def main(folder: str, prompt: str, count: int) -> None:
    """Print the token ids as one JSON list."""
    engine = JaxEngine(folder, EngineSpec(max_slots=1, context=128, prefill_buckets=(128,)))
    engine.add("one", json.loads(prompt), Sampling(max_tokens=count))
    made: list[int] = []
    while engine.stats().running + engine.stats().waiting:
        made += [emitted.token for emitted in engine.step() if emitted.token is not None]
    print(json.dumps(made))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
