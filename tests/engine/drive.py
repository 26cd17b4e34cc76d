"""Drive an engine until it is idle. As a program it prints the tokens of a fixed set of requests as JSON."""

import json
import sys
from collections.abc import Mapping, Sequence

from workloads.serve.engine import Emitted, Engine, Sampling
from workloads.spec.service import EngineSpec

SPEC = EngineSpec(max_slots=3, context=300, prefill_buckets=(16, 32))
Requests = Mapping[str, tuple[Sequence[int], Sampling]]


def mixed(vocab: int) -> Requests:
    """Greedy and sampled requests with prompts of one to four chunks; more than there are slots."""
    return {
        str(i): (
            [(7 * i + j * j) % vocab for j in range(5 + i * 23)],
            Sampling(max_tokens=10, temperature=0.8 * (i % 2), top_k=20, top_p=0.9, seed=i),
        )
        for i in range(5)
    }


def finish(engine: Engine, requests: Requests) -> dict[str, list[Emitted]]:
    """Add all, run until idle; what each request got."""
    for name, (prompt, sampling) in requests.items():
        engine.add(name, prompt, sampling)
    got: dict[str, list[Emitted]] = {name: [] for name in requests}
    while engine.stats().running + engine.stats().waiting:
        for emitted in engine.step():
            got[emitted.request_id].append(emitted)
    return got


def tokens(got: Mapping[str, Sequence[Emitted]]) -> dict[str, list[int | None]]:
    return {name: [emitted.token for emitted in all_of_it] for name, all_of_it in got.items()}


if __name__ == "__main__":
    import jax

    from workloads.serve.jax_engine import JaxEngine

    if len(sys.argv) > 2:
        jax.distributed.initialize(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    engine = JaxEngine(sys.argv[1], SPEC)
    engine.warm_up()
    compiled = engine.stats().compiles
    made = tokens(finish(engine, mixed(engine.config.vocab)))
    late = engine.stats().compiles - compiled
    print(json.dumps({"mesh": dict(engine.mesh.shape), "tokens": made, "late_compiles": late}))
