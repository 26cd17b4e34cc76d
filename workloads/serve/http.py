"""The HTTP side of one replica: OpenAI's API under /v1, and /health."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from workloads.models.tokenizer import ChatTemplateError, Tokenizer
from workloads.serve.errors import ApiError, refuse
from workloads.serve.loop import EngineLoop, Ticket
from workloads.serve.protocol import ChatRequest, CompletionRequest
from workloads.serve.reply import Json, Reply
from workloads.serve.text import Piece, pieces

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Served:
    """What one replica serves."""

    name: str
    created: int
    """Unix time in seconds."""
    fingerprint: str
    """Names model and settings: equal ones give equal answers."""
    mark: str
    """`ServiceLaunch.mark` of what is served."""
    context: int
    """Tokens of prompt and answer together."""
    tokenizer: Tokenizer
    loop: EngineLoop


def make_app(served: Served) -> FastAPI:
    """The ASGI application."""
    app = FastAPI(title=served.name, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.exception_handler(ApiError)(_api_error)
    app.exception_handler(HTTPException)(_http_error)
    app.exception_handler(Exception)(_server_error)
    card = {
        "id": served.name,
        "object": "model",
        "created": served.created,
        "owned_by": "tpu-ray",
        "max_model_len": served.context,
    }

    @app.get("/health")
    async def health() -> Response:
        dead = served.loop.dead
        if dead is not None:
            return JSONResponse(dead.envelope(), dead.status)
        loop = served.loop
        told = {"status": "ok", "mark": served.mark, "open_requests": loop.open_requests, "steps": loop.steps}
        return JSONResponse(told)

    @app.get("/v1/models")
    async def models() -> Json:
        return {"object": "list", "data": [card]}

    @app.get("/v1/models/{model:path}")
    async def model(model: str) -> Json:
        _check_model(served, model)
        return card

    @app.post("/v1/chat/completions")
    async def chat(http: Request) -> Response:
        request = ChatRequest.parse(await http.body())
        _check_model(served, request.model)
        if not served.tokenizer.has_chat_template:
            refuse("messages", f"model {served.name} has no chat template; use /v1/completions")
        try:
            messages = [message.plain() for message in request.messages]
            prompt = await asyncio.to_thread(served.tokenizer.apply_chat_template, messages)
        except ChatTemplateError as error:
            refuse("messages", str(error))
        return await _generate(served, http, request, prompt, "messages")

    @app.post("/v1/completions")
    async def completions(http: Request) -> Response:
        request = CompletionRequest.parse(await http.body())
        _check_model(served, request.model)
        single = request.single_prompt
        # In a thread, as a long text takes seconds, and this loop carries every stream of the replica.
        prompt = await asyncio.to_thread(served.tokenizer.encode, single) if isinstance(single, str) else single
        wrong = [token for token in prompt if not 0 <= token < served.tokenizer.vocab_size]
        if wrong:
            refuse("prompt", f"prompt: {wrong[0]} is no token id; they go from 0 to {served.tokenizer.vocab_size - 1}")
        return await _generate(served, http, request, prompt, "prompt")

    return app


async def _generate(
    served: Served, http: Request, request: ChatRequest | CompletionRequest, prompt: list[int], param: str
) -> Response:
    chat = isinstance(request, ChatRequest)
    sampling = request.sampling(_budget(served, request, prompt, param), served.tokenizer.eos_token_ids)
    reply = Reply(
        chat=chat,
        model=served.name,
        fingerprint=served.fingerprint,
        prompt=prompt,
        logprobs=request.logprobs is True if chat else request.logprobs is not None,
        token_ids=bool(request.return_token_ids),
        include_usage=request.include_usage,
    )
    ticket = served.loop.submit(prompt, sampling)
    parts = pieces(aiter(ticket), served.tokenizer, request.stops, sampling.stop_token_ids)
    if request.stream:
        return _EventStream(_events(served.loop, ticket, parts, reply))
    try:
        done = await _unless_gone(http.receive, _collect(parts))
    finally:
        served.loop.cancel(ticket)
    # 499 is what proxies log for a client that left; nobody reads this answer.
    return Response(status_code=499) if done is None else JSONResponse(reply.whole(done))


def _budget(served: Served, request: ChatRequest | CompletionRequest, prompt: list[int], param: str) -> int:
    """Tokens that the answer may have."""
    room = served.context - len(prompt)
    wanted = request.wanted_tokens
    if not prompt:
        refuse(param, f"{param}: it holds no token")
    if room < 1 or (wanted or 0) > room:
        asked = f"{len(prompt)} in the {param}" + (f", {wanted} in the completion" if wanted else "")
        refuse(
            param,
            f"This model's maximum context length is {served.context} tokens. However, you requested "
            f"{len(prompt) + (wanted or 1)} tokens ({asked}). Please reduce the length of the {param} or completion.",
            "context_length_exceeded",
        )
    return room if wanted is None else wanted


def _check_model(served: Served, name: str) -> None:
    if name != served.name:
        raise ApiError(
            404, f"The model `{name}` does not exist; `{served.name}` does", param="model", code="model_not_found"
        )


async def _collect(parts: AsyncGenerator[Piece, None]) -> list[Piece]:
    async with aclosing(parts):
        return [piece async for piece in parts]


async def _events(
    loop: EngineLoop, ticket: Ticket, parts: AsyncGenerator[Piece, None], reply: Reply
) -> AsyncGenerator[str, None]:
    """The server-sent events of one answer. However it ends, the request's place is free afterwards."""
    try:
        for event in _present(reply.first()):
            yield event
        async with aclosing(parts):
            async for piece in parts:
                for event in _present(*reply.part(piece)):
                    yield event
        for event in _present(reply.last()):
            yield event
        yield "data: [DONE]\n\n"
    except ApiError as error:
        yield f"data: {json.dumps(error.envelope())}\n\n"
    finally:
        loop.cancel(ticket)


def _present(*chunks: Json | None) -> Iterable[str]:
    return (f"data: {json.dumps(chunk)}\n\n" for chunk in chunks if chunk is not None)


class _EventStream(Response):
    """Sends events until they end or the client leaves; then closes their source at once."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[str, None]) -> None:
        super().__init__(headers={"cache-control": "no-cache"})
        del self.headers["content-length"]
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._events):
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await _unless_gone(receive, self._send(send))

    async def _send(self, send: Send) -> bool:
        async for event in self._events:
            await send({"type": "http.response.body", "body": event.encode(), "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        return True


async def _unless_gone(receive: Receive, work: Awaitable[_Result]) -> _Result | None:
    """The work's result, or None when the client left first; then the work is cancelled."""
    running = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait((running, gone), return_when=asyncio.FIRST_COMPLETED)
        return running.result() if running.done() else None
    finally:
        for task in (running, gone):
            task.cancel()
        await asyncio.gather(running, gone, return_exceptions=True)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _api_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    headers = {"retry-after": "1"} if error.status in (429, 503) else None
    return JSONResponse(error.envelope(), error.status, headers)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message, code = str(error.detail), None
    if error.status_code == 404:
        message, code = f"Unknown request URL: {request.method} {request.url.path}", "unknown_url"
    elif error.status_code == 405:
        message, code = f"Not allowed method: {request.method} {request.url.path}", "method_not_allowed"
    answer = ApiError(error.status_code, message, code=code).envelope()
    return JSONResponse(answer, error.status_code, dict(error.headers or {}))


async def _server_error(_: Request, error: Exception) -> Response:
    answer = ApiError(500, f"internal error: {type(error).__name__}", "server_error", code="internal_error")
    return JSONResponse(answer.envelope(), 500)
