#include "leased.h"

#include <stdlib.h>
#include <string.h>

static const char *value(const PGresult *row, const char *column) {
    int at = PQfnumber(row, column);
    return PQgetisnull(row, 0, at) ? NULL : PQgetvalue(row, 0, at);
}

static idem_kind execute(PGconn *connection, const char *statement, idem_error *error) {
    PGresult *done = idem_checked(PQexec(connection, statement), error);
    PQclear(done);
    return done ? IDEM_OK : error->kind;
}

static void give_up(PGconn *connection, const idem_argument owned[3]) {
    idem_error ignored = {0}; /* where it fails, the lease ends by itself */
    if (PQtransactionStatus(connection) != PQTRANS_IDLE) execute(connection, "rollback", &ignored);
    if (owned[1].text) PQclear(idem_call(connection, "defer", 3, owned, &ignored));
}

static idem_kind complete(PGconn *connection, const idem_argument owned[3], idem_answer *answer, idem_error *error) {
    char status[12], *headers = answer->headers ? json_dumps(answer->headers, 0) : NULL;
    snprintf(status, sizeof status, "%d", answer->status);
    PGresult *ended = idem_call(connection, "http_complete", 6, (idem_argument[]){
        owned[0], owned[1], owned[2], {"status", status, {0}}, {"headers", headers, {0}},
        {"body", NULL, {answer->body, answer->size}}}, error);
    free(headers);
    if (!ended) return error->kind;
    const char *ending = strcmp(PQgetvalue(ended, 0, 0), "repeated") ? "commit" : "rollback";
    PQclear(ended);
    return execute(connection, ending, error);
}

idem_kind idem_leased(
    PGconn *connection, const idem_request *r, idem_effect *effect, idem_work *work, void *context, idem_answer *answer,
    idem_error *error) {
    char token[37];
    idem_new_token(token);
    *answer = (idem_answer){0};
    PGresult *row = idem_call(connection, "http_reserve", 9, (idem_argument[]){
        {"scope", r->scope, {0}}, {"key_header", r->key_header, {0}}, {"method", r->method, {0}},
        {"path", r->path, {0}}, {"content_type", r->content_type, {0}}, {"policy", r->policy, {0}},
        {"mode", "leased", {0}}, {"token", token, {0}}, {"body", NULL, r->body}}, error);
    if (!row) return error->kind;
    idem_kind kind = IDEM_OK;
    if (value(row, "status")) {
        const char *headers = value(row, "headers"), *body = value(row, "body");
        answer->status = atoi(value(row, "status"));
        answer->headers = headers ? json_loads(headers, 0, NULL) : NULL;
        answer->body = body ? PQunescapeBytea((const unsigned char *)body, &answer->size) : NULL;
    } else {
        const idem_argument owned[] = {
            {"scope", r->scope, {0}}, {"key", value(row, "key"), {0}}, {"token", value(row, "token"), {0}}};
        kind = effect(value(row, "downstream_key"), context, error);
        if (kind == IDEM_OK) kind = execute(connection, "begin isolation level read committed", error);
        if (kind == IDEM_OK) kind = work(connection, context, answer, error);
        if (kind == IDEM_OK) kind = complete(connection, owned, answer, error);
        if (kind != IDEM_OK) give_up(connection, owned);
    }
    if (kind != IDEM_OK) idem_clear(answer);
    PQclear(row);
    return kind;
}
