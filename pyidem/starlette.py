"""Starlette and FastAPI: answers to their clients for pyidem's errors.

    pyidem.starlette.install(app)

Idempotency itself is `idem.atomic(scope, await HttpCall.from_starlette(request))` in the endpoint, or around the whole
application `pyidem.asgi.IdempotencyMiddleware`.
"""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from pyidem._errors import IdempotencyError


def install(app: Starlette) -> None:
    """Answer requests whose endpoint raises one of pyidem's errors."""
    app.add_exception_handler(IdempotencyError, answer)


async def answer(request: Request, error: Exception) -> Response:  # noqa: ARG001 - the handler's signature
    """Return the answer to a client; what is none is raised again."""
    response = error.response if isinstance(error, IdempotencyError) else None
    if response is None:
        raise error
    return response.to_starlette()
