"""FastAPI: a dependency that reads the request, says whose it is, and shows in OpenAPI what a client has to expect.

    app = FastAPI()
    install(app)
    protected = idempotency(AsyncIdem(async_sessionmaker(engine)), scope=client_id)


    @app.post("/refunds", status_code=201)
    async def create_refund(refund: Refund, request: Annotated[AsyncIdempotent[AsyncSession], Depends(protected)]):
        async with request.atomic() as op:
            if op.started:
                made = await issue_refund(op.session, refund)
                op.complete(201, made.as_dict())
        return op.response.to_starlette()

The block is in the endpoint: authentication and validation come before it, and it has committed before the answer goes
out.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Generic, TypeVar, overload

from fastapi import Depends, FastAPI, Header, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from pyidem._errors import (
    IdempotencyError,
    InProgress,
    KeyExpired,
    KeyInvalid,
    KeyMissing,
    KeyReused,
    OutcomeUnknown,
    ScopeMissing,
)
from pyidem._http import KEY_HEADER, HttpCall
from pyidem.aio import AsyncAtomicOp, AsyncIdem, AsyncLeasedOp
from pyidem.client import AtomicOp, Idem, LeasedOp
from pyidem.starlette import answer

H = TypeVar("H")

Key = Annotated[
    str | None,
    Header(
        alias=KEY_HEADER,
        description=(
            "Names the operation: a new random value for each, the same on every attempt at it. A repeated request gets"
            " the answer of the first one."
        ),
    ),
]


@dataclass(frozen=True, slots=True)
class _Request:
    """One request and whose it is."""

    call: HttpCall
    scope: str
    policy: str | None
    wait: timedelta | None


@dataclass(frozen=True, slots=True)
class AsyncIdempotent(_Request, Generic[H]):
    """What the dependency of an `AsyncIdem` is in an endpoint: a request that can be worked on once."""

    idem: AsyncIdem[H]

    def atomic(self) -> AbstractAsyncContextManager[AsyncAtomicOp[H]]:
        """Work in this database, in one transaction with the reservation and the answer: see `Idem.atomic`."""
        return self.idem.atomic(self.scope, self.call, policy=self.policy, wait=self.wait)

    def leased(
        self, *, state: Any = None, lease: timedelta | None = None, heartbeat: bool | timedelta = False
    ) -> AbstractAsyncContextManager[AsyncLeasedOp[H]]:
        """Work elsewhere, between the reservation and the answer: see `Idem.leased`."""
        return self.idem.leased(
            self.scope,
            self.call,
            state=state,
            lease=lease,
            policy=self.policy,
            heartbeat=heartbeat,
            wait=self.wait,
        )


@dataclass(frozen=True, slots=True)
class Idempotent(_Request, Generic[H]):
    """What the dependency of an `Idem` is in an endpoint that is no coroutine."""

    idem: Idem[H]

    def atomic(self) -> AbstractContextManager[AtomicOp[H]]:
        """Work in this database, in one transaction with the reservation and the answer: see `Idem.atomic`."""
        return self.idem.atomic(self.scope, self.call, policy=self.policy, wait=self.wait)

    def leased(
        self, *, state: Any = None, lease: timedelta | None = None, heartbeat: bool | timedelta = False
    ) -> AbstractContextManager[LeasedOp[H]]:
        """Work elsewhere, between the reservation and the answer: see `Idem.leased`."""
        return self.idem.leased(
            self.scope,
            self.call,
            state=state,
            lease=lease,
            policy=self.policy,
            heartbeat=heartbeat,
            wait=self.wait,
        )


@overload
def idempotency(
    idem: AsyncIdem[H], *, scope: Callable[..., Any], policy: str | None = None, wait: timedelta | None = None
) -> Callable[..., Awaitable[AsyncIdempotent[H]]]: ...
@overload
def idempotency(
    idem: Idem[H], *, scope: Callable[..., Any], policy: str | None = None, wait: timedelta | None = None
) -> Callable[..., Awaitable[Idempotent[H]]]: ...
def idempotency(
    idem: AsyncIdem[Any] | Idem[Any],
    *,
    scope: Callable[..., Any],
    policy: str | None = None,
    wait: timedelta | None = None,
) -> Callable[..., Awaitable[Any]]:
    """Make a dependency. `scope` is one as well: it returns whose request it is, and so authenticates it first.

    `policy` and `wait` are those of `idem.atomic`. Where `scope` returns None or an empty string, that is ScopeMissing.
    """

    async def protected(
        request: Request, owner: Annotated[Any, Depends(scope)], _key: Key = None
    ) -> AsyncIdempotent[Any] | Idempotent[Any]:
        if not owner:
            raise ScopeMissing("the dependency scope= did not say whose request this is")
        call = await HttpCall.from_starlette(request)
        if isinstance(idem, AsyncIdem):
            return AsyncIdempotent(call, owner, policy, wait, idem)
        return Idempotent(call, owner, policy, wait, idem)

    protected.__dict__[_MARK] = True
    return protected


class IdempotentRoute(APIRoute):
    """A route that documents what the dependency answers, and whose forms can be fingerprinted.

    FastAPI parses a form before any dependency runs, so that its bytes would be gone.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        if _is_protected(self.dependant):
            success = self.status_code or 200
            own = self.responses.get(success, {})
            replayed = {"headers": {**_REPLAYED, **own.get("headers", {})}}
            self.responses = {**RESPONSES, **self.responses, success: {**own, **replayed}}

    def get_route_handler(self) -> Callable[[Request], Any]:
        """Return a handler that has read the body before FastAPI does."""
        handle = super().get_route_handler()
        if not _is_protected(self.dependant):
            return handle

        async def read_and_handle(request: Request) -> Any:
            await request.body()
            return await handle(request)

        return read_and_handle


def install(app: FastAPI) -> None:
    """Answer requests whose endpoint raises one of pyidem's errors, and document the routes declared from now on.

    For a router of its own that is `APIRouter(route_class=IdempotentRoute)`.
    """
    app.add_exception_handler(IdempotencyError, answer)
    app.router.route_class = IdempotentRoute


_MARK = "pyidem_protected"

_PROBLEM: dict[str, Any] = {
    "title": "Problem",
    "type": "object",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
    },
}
_MISMATCH: dict[str, Any] = {
    **_PROBLEM,
    "properties": {
        **_PROBLEM["properties"],
        "mismatched": {"type": "array", "items": {"type": "string"}, "description": "What differs, by JSON pointer."},
        "mismatched_count": {"type": "integer"},
    },
}
_INVALID_BODY: dict[str, Any] = {
    "title": "HTTPValidationError",
    "type": "object",
    "properties": {"detail": {"type": "array", "items": {"type": "object"}}},
}
_UNREADABLE_BODY: dict[str, Any] = {
    "title": "HTTPException",
    "type": "object",
    "properties": {"detail": {"type": "string"}},
}
_RETRY_AFTER = {
    "Retry-After": {"description": "Seconds to wait before the next attempt.", "schema": {"type": "integer"}}
}
_REPLAYED = {
    "Idempotency-Replayed": {
        "description": "`true` where this is the answer of an earlier attempt.",
        "schema": {"type": "string"},
    }
}


def _documented(*errors: type[Any], schema: dict[str, Any] = _PROBLEM, **more: Any) -> dict[str, Any]:
    codes = [f"`{error.code}`" for error in errors]
    return {
        "description": ", ".join(codes),
        "content": {"application/problem+json": {"schema": schema}},
        **more,
    }


RESPONSES: dict[int | str, dict[str, Any]] = {
    400: _documented(KeyMissing, KeyInvalid),
    409: _documented(InProgress, OutcomeUnknown, headers=_RETRY_AFTER),
    410: _documented(KeyExpired),
    422: _documented(KeyReused, schema=_MISMATCH),
}
"""What a protected route answers besides its own: for `responses=`, where it is no `IdempotentRoute`."""

# FastAPI documents its own 422 only where there is no other, and its 400 nowhere
RESPONSES[422]["content"]["application/json"] = {"schema": _INVALID_BODY}
RESPONSES[422]["description"] += ", or the request is not valid"
RESPONSES[400]["content"]["application/json"] = {"schema": _UNREADABLE_BODY}
RESPONSES[400]["description"] += ", or the body cannot be read"


def _is_protected(dependant: Dependant) -> bool:
    return getattr(dependant.call, _MARK, False) or any(_is_protected(inner) for inner in dependant.dependencies)
