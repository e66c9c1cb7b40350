"""Flask: atomic blocks in the view."""

from typing import Any

import psycopg
from flask import Flask, Response, request
from psycopg_pool import ConnectionPool

from pyidem import HttpCall, Idem
from pyidem.flask import install
from tests.web.apps.shop import DSN, INSERT, SCOPE_HEADER, answer_of

app = Flask(__name__)
install(app)
idem = Idem(ConnectionPool[psycopg.Connection[Any]](DSN, min_size=1, max_size=4, open=True))


@app.post("/orders")
def create_order() -> Response:
    call = HttpCall.from_flask(request)
    with idem.atomic(request.headers[SCOPE_HEADER], call) as op:
        if op.started:
            (number,) = op.connection.execute(INSERT, [request.get_json()["name"]]).fetchone()
            op.complete(201, answer_of(number), headers=[("Location", f"/orders/{number}")])
    return op.response.to_flask()


@app.post("/raising")
def raise_for_outcome() -> Response:
    """Answer by an exception instead."""
    with idem.atomic(request.headers[SCOPE_HEADER], HttpCall.from_flask(request)) as op:
        op.raise_for_outcome()
        if op.started:
            op.complete(201)
    return op.response.to_flask()
