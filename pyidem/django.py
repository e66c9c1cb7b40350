"""Django: answers to its clients, and the middleware that sends them for pyidem's errors.

    MIDDLEWARE = [..., "pyidem.django.ProblemMiddleware"]

Idempotency itself is `idem.atomic(scope, HttpCall.from_django(request))` in the view, or around the whole application
`pyidem.wsgi.IdempotencyMiddleware`.
"""

from typing import Any

from django.http import HttpRequest, HttpResponse  # type: ignore[import-untyped]
from django.utils.deprecation import MiddlewareMixin  # type: ignore[import-untyped]

from pyidem._errors import IdempotencyError
from pyidem._types import Response


class ProblemMiddleware(MiddlewareMixin):  # type: ignore[misc]
    """Answers a request whose view raises one of pyidem's errors, where that is an answer to a client.

    Under ATOMIC_REQUESTS the view's transaction is rolled back before.
    """

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:  # noqa: ARG002
        """Return the answer, or None for what is no answer to a client."""
        response = exception.response if isinstance(exception, IdempotencyError) else None
        return None if response is None else response_of(response)


def response_of(response: Response) -> Any:
    """Return the same as a response of Django."""
    answer = HttpResponse(response.wire_body, status=response.status)
    del answer["Content-Type"]
    for name, value in response.native_headers:
        if name.lower() == "set-cookie":
            answer.cookies.load(value)
        elif answer.has_header(name):
            answer[name] = f"{answer[name]}, {value}"
        else:
            answer[name] = value
    return answer
