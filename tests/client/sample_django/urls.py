"""One view, which joins the transaction that ATOMIC_REQUESTS opens for it."""

from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import path

from pyidem import Idem, IdempotencyError

idem = Idem(lambda: connection)


def place_order(request: HttpRequest) -> HttpResponse:
    """Insert an order, once for each key."""
    with idem.atomic("client:1", request.headers["Idempotency-Key"], on=connection, commit=False) as op:
        if op.started:
            with connection.cursor() as cursor:
                cursor.execute("insert into orders (name) values ('order') returning id")
                op.complete(201, {"id": cursor.fetchone()[0]})
    if "fail" in request.GET:
        raise ZeroDivisionError
    try:
        answer = op.response
    except IdempotencyError as error:
        return HttpResponse(status=error.status)
    return HttpResponse(answer.body, status=answer.status)


urlpatterns = [path("orders", place_order)]
