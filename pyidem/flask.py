"""Flask: answers to its clients for pyidem's errors.

    pyidem.flask.install(app)

Idempotency itself is `idem.atomic(scope, HttpCall.from_flask(request))` in the view, or around the whole application
`app.wsgi_app = pyidem.wsgi.IdempotencyMiddleware(app.wsgi_app, ...)`.
"""

from flask import Blueprint, Flask, Response

from pyidem._errors import IdempotencyError


def install(app: Flask | Blueprint) -> None:
    """Answer requests whose view raises one of pyidem's errors."""
    app.register_error_handler(IdempotencyError, answer)


def answer(error: IdempotencyError) -> Response:
    """Return the answer to a client; what is none is raised again."""
    response = error.response
    if response is None:
        raise error
    return response.to_flask()
