"""Django: atomic blocks in the view, in a transaction of their own or in that of ATOMIC_REQUESTS."""

import json
import os

import django
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse
from django.urls import path
from psycopg.conninfo import conninfo_to_dict

from pyidem import HttpCall, Idem
from tests.web.apps.shop import DSN, INSERT, SCOPE_HEADER, answer_of

_server = conninfo_to_dict(DSN)
settings.configure(
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    SECRET_KEY=os.urandom(16).hex(),
    MIDDLEWARE=["pyidem.django.ProblemMiddleware"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "ATOMIC_REQUESTS": True,
            **{name.upper(): value for name, value in _server.items() if name in {"user", "password", "host", "port"}},
            "NAME": _server["dbname"],
        }
    },
)
django.setup()
idem = Idem(lambda: connection)


def insert(name: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(INSERT, [name])
        return int(cursor.fetchone()[0])


@transaction.non_atomic_requests
def create_order(request: HttpRequest) -> HttpResponse:
    call = HttpCall.from_django(request)
    with idem.atomic(request.headers[SCOPE_HEADER], call) as op:
        if op.started:
            number = insert(call.json()["name"])
            links = [("Link", "</a>; rel=a"), ("Link", "</b>; rel=b")]
            cookies = [("Set-Cookie", "a=1; Path=/x; HttpOnly; SameSite=Strict"), ("Set-Cookie", "b=2")]
            op.complete(201, answer_of(number), headers=[("Location", f"/orders/{number}"), *links, *cookies])
    return op.response.to_django()


def join_request(request: HttpRequest) -> HttpResponse:
    """Work in the transaction of the request."""
    call = HttpCall.from_django(request)
    with idem.atomic(request.headers[SCOPE_HEADER], call, on=connection, commit=False) as op:
        if op.started:
            number = insert(call.json()["name"])
            op.complete(json.loads(request.body).get("status", 201), answer_of(number))
    return op.response.to_django()


@transaction.non_atomic_requests
def raise_for_outcome(request: HttpRequest) -> HttpResponse:
    """Answer by an exception instead."""
    with idem.atomic(request.headers[SCOPE_HEADER], HttpCall.from_django(request)) as op:
        op.raise_for_outcome()
        if op.started:
            op.complete(201)
    return op.response.to_django()


urlpatterns = [path("orders", create_order), path("joined", join_request), path("raising", raise_for_outcome)]
application = get_wsgi_application()
asgi_application = get_asgi_application()
