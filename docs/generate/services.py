"""Write docs/services.md: what a service answers. Its tables of fields come from the classes that read the requests,
the Serve config of its examples from the function that makes it.

Run: `python docs/generate/services.py [--check]`.
"""

import json
import sys
from pathlib import Path

from docs.generate.engines import other_engines
from docs.generate.page import write_or_check
from infra.plan.autoscaling import UPSCALE_DELAY_S, VLLM_SEQUENCES
from workloads.serve.app import HEALTH_PERIOD_S, PING_TIMEOUT_S, STEP_TIMEOUT_S, WAITING_PER_SLOT
from workloads.serve.protocol import LABELS, REFUSED, ChatRequest, CompletionRequest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "services.md"

TEXT = """\
<!-- Written by docs/generate/services.py from workloads/serve/protocol.py. -->

# Services

Every entry of `tpu-ray:services` answers below its own path; `make up` prints the URLs. With the bundled engine, which
this page is about, and with vLLM it answers OpenAI's API. OpenAI's clients take `<url>/v1` as base URL and any text as
key. The other engines are [at the end](#other-engines).

| | |
|---|---|
| `GET /<name>/v1/models`, `GET /<name>/v1/models/<model>` | the one model, with `max_model_len` |
| `POST /<name>/v1/chat/completions` | needs a model with a chat template, else 400 |
| `POST /<name>/v1/completions` | text or token ids |
| `GET /<name>/health` | 200 `{{"status": "ok", "open_requests": 0, "steps": 0}}`, or 503 when the engine has stopped |

There is no access control: whoever reaches the port is served.

## Fields that are applied

| field | of | |
|---|---|---|
{applied}

## Fields that are refused

A field changes the answer, or the request is refused with 400 and the field in `error.param`, before it reaches the
engine. These are accepted only with the value that asks for nothing (or `null`):

| field | accepted |
|---|---|
{refused}

Taken and ignored, because they change no answer: {labels}. Any other field is refused.

## Errors

Every error is `{{"error": {{"message", "type", "param", "code"}}}}`. In a stream that has begun it is the last event,
and `[DONE]` does not follow.

| status | `code` | when |
|---|---|---|
| 400 | | a field has a wrong value; `param` names it |
| 400 | `context_length_exceeded` | prompt and `max_tokens` together are more than `engine.context` |
| 404 | `model_not_found`, `unknown_url` | |
| 405 | `method_not_allowed` | |
| 429 | `queue_full` | as many requests as are let in are there; `retry-after` is set |
| 500 | `internal_error` | a defect of the server |
| 503 | `engine_dead` | the slice's engine has stopped and the replica is being replaced; `retry-after` is set |

A client that leaves frees its place at the next step.

## How a replica takes its slice

1. It reads the model's tokenizer. A wrong `model` path or an `engine.context` beyond the model's own fails here and
   costs no slice.
2. It waits up to `reserve_timeout_s` for a free slice of its pool, and takes all hosts of one slice; while it waits,
   its request stays in Ray's queue, where an autoscaler sees it. When the time is over, the service fails and says what
   was wanted, what was found (who holds the slices), and what to do. It does not wait a second time while none of the
   service's replicas has started.
3. It starts one process per host with all its chips, checks that they are the hosts of one slice with every device,
   loads the model and compiles every shape of `engine`. Only then does it answer; nothing is compiled afterwards.

All hosts run the same steps in the same order and must give the same tokens; if they do not, the engine stops.

## Replicas that come and go

`replicas: {{min: 1, max: 3, idle_s: 300}}` keeps one replica and lets two more come while there is more to do than
fits. With the engines `jax` and `vllm`, on GKE on slices of one host ([why](gke.md#replicas-that-come-and-go)).

| | |
|---|---|
| one more comes | when for {upscale:g} s there were more requests than all work on together |
| one goes | when for `idle_s` fewer would have been enough; what it is answering it answers first |
| its slice goes | when for `idle_s` no replica took it; on one machine it stays, free for others |

- A replica works on `engine.max_slots` requests together; of vLLM on `max_num_seqs`, or {vllm} where that is not said.
- `min` is at least 1. With no replica nobody is answered, and the first request would wait for a slice, which takes
  minutes to come, and for a model to load.
- While a replica waits for its slice, the others go on answering. What they have no room for waits, or gets 429.
- A replica whose slice does not come within `reserve_timeout_s` is tried again, and again; the service stays up.
- `up` waits for `min` replicas. `tpu-ray status` shows `2/1 to 3`: two are there.

## What happens on failures

| | |
|---|---|
| a host process dies while it boots | the slice is given back, and another try is made |
| a host process dies later | open requests end with 503 within {health_period:g} s; a new replica takes a slice |
| a host answers nothing for {ping:g} s, or a step takes {step:g} s | the same |
| the service is changed or removed | the other services answer on; its slice is free when the replica has ended |
| a replica process dies | Ray gives its slice back, Serve starts another |

## Limits

- A replica decodes `engine.max_slots` requests together; {waiting} more per slot may wait, then 429.
- A prompt and its answer have at most `engine.context` tokens.
- One choice per request, no tools, no forced formats, no log probabilities of tokens that were not chosen.
- While no replica of a service is up (the only one is being replaced), requests to it wait; set a timeout.
- A request is not moved to another replica when its own dies: the client gets an error and may send it again.

{engines}"""


def page() -> str:
    """The whole page."""
    return TEXT.format(
        applied="\n".join(_applied()),
        refused="\n".join(f"| `{name}` | {_values(values)} |" for name, values in sorted(REFUSED.items())),
        labels=", ".join(f"`{name}`" for name in LABELS),
        health_period=HEALTH_PERIOD_S,
        ping=PING_TIMEOUT_S,
        step=STEP_TIMEOUT_S,
        waiting=WAITING_PER_SLOT,
        upscale=UPSCALE_DELAY_S,
        vllm=VLLM_SEQUENCES,
        engines=other_engines(),
    )


def _applied() -> list[str]:
    chat, plain = ChatRequest.model_fields, CompletionRequest.model_fields
    rows = []
    for name in dict.fromkeys([*chat, *plain]):
        # A field that both have in forms of their own gets one row per form.
        same = name in chat and name in plain and chat[name].description == plain[name].description
        forms = [("both", chat[name])] if same else [(of, f[name]) for of, f in _OWN.items() if name in f]
        rows += [f"| `{name}` | {of} | {field.description} |" for of, field in forms]
    return rows


_OWN = {"chat": ChatRequest.model_fields, "completions": CompletionRequest.model_fields}


def _values(values: tuple[object, ...]) -> str:
    return ", ".join(f"`{json.dumps(value)}`" for value in values) or "only `null`"


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page()))
