/* Idempotency keys decided in Postgres, for libpq and jansson. Copy this file into your project, and define
   IDEM_IMPLEMENTATION before one of its inclusions. */
#ifndef IDEM_H
#define IDEM_H

#include <jansson.h>
#include <libpq-fe.h>

/* What went wrong: the SQLSTATE was IK001 to IK007, in this order, or another one; or it was the work that failed. */
typedef enum {
    IDEM_OK, IDEM_KEY_INVALID, IDEM_LOST_RESERVATION, IDEM_NO_SUCH_RESERVATION, IDEM_WRONG_MODE, IDEM_NOT_COMPLETED,
    IDEM_NO_SUCH_POLICY, IDEM_LIMIT_EXCEEDED, IDEM_POSTGRES, IDEM_WORK
} idem_kind;
typedef struct { idem_kind kind; char sqlstate[6], code[40], message[200], hint[200]; } idem_error;

/* Without data it is null. An argument has a text, bytes, or neither: then it is null, too. */
typedef struct { const void *data; size_t size; } idem_bytes;
typedef struct { const char *name, *text; idem_bytes bytes; } idem_argument;

/* One attempt: what it does not have is null. The answer's headers, an array of pairs, and its body may be null. */
typedef struct {
    const char *scope, *key_header, *method, *path, *content_type, *policy;
    idem_bytes body;
} idem_request;
typedef struct { int status; json_t *headers; unsigned char *body; size_t size; } idem_answer;

/* Writes in the open transaction, sets the answer and returns IDEM_OK. After anything else it is rolled back. */
typedef idem_kind idem_work(PGconn *, void *context, idem_answer *, idem_error *);

/* Makes reservation, work and answer one transaction, and begins it again where Postgres asks for that (40001). */
idem_kind idem_atomic(PGconn *, const idem_request *, idem_work *, void *context, idem_answer *, idem_error *);
void idem_clear(idem_answer *);
/* Makes the random UUID by which one attempt is known. */
void idem_new_token(char token[37]);
/* Calls a function of schema idem with up to 12 arguments and returns its rows, or null. */
PGresult *idem_call(PGconn *, const char *function, int count, const idem_argument *, idem_error *);
/* Returns a good result as it is; of a bad one it makes an error, and returns null. */
PGresult *idem_checked(PGresult *, idem_error *);

#ifdef IDEM_IMPLEMENTATION
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *idem_value(const PGresult *row, const char *column) {
    int at = PQfnumber(row, column);
    return PQgetisnull(row, 0, at) ? NULL : PQgetvalue(row, 0, at);
}

static idem_kind idem_attempt(
    PGconn *connection, const idem_request *r, idem_work *work, void *context, idem_answer *answer, idem_error *error) {
    char token[37], status[12], *headers;
    idem_new_token(token);
    PGresult *row = idem_call(connection, "http_reserve", 8, (idem_argument[]){
        {"scope", r->scope, {0}}, {"key_header", r->key_header, {0}}, {"method", r->method, {0}},
        {"path", r->path, {0}}, {"content_type", r->content_type, {0}}, {"policy", r->policy, {0}},
        {"token", token, {0}}, {"body", NULL, r->body}}, error), *ended = NULL;
    if (!row) return error->kind;
    idem_kind kind = IDEM_OK;
    const char *found = idem_value(row, "status");
    if (found) {
        const char *pairs = idem_value(row, "headers"), *body = idem_value(row, "body");
        answer->status = atoi(found);
        answer->headers = pairs ? json_loads(pairs, 0, NULL) : NULL;
        answer->body = body ? PQunescapeBytea((const unsigned char *)body, &answer->size) : NULL;
    } else if ((kind = work(connection, context, answer, error)) == IDEM_OK) {
        headers = answer->headers ? json_dumps(answer->headers, 0) : NULL;
        snprintf(status, sizeof status, "%d", answer->status);
        ended = idem_call(connection, "http_complete", 6, (idem_argument[]){
            {"scope", r->scope, {0}}, {"key", idem_value(row, "key"), {0}}, {"token", idem_value(row, "token"), {0}},
            {"status", status, {0}}, {"headers", headers, {0}}, {"body", NULL, {answer->body, answer->size}}}, error);
        if (ended && strcmp(PQgetvalue(ended, 0, 0), "rollback") && strcmp(PQgetvalue(ended, 0, 0), "repeated")) {
            PQclear(ended);
            ended = idem_checked(PQexec(connection, "commit"), error);
        }
        kind = ended ? IDEM_OK : error->kind;
        PQclear(ended);
        free(headers);
    }
    PQclear(row);
    return kind;
}

idem_kind idem_atomic(
    PGconn *connection, const idem_request *r, idem_work *work, void *context, idem_answer *answer, idem_error *error) {
    for (int tried = 1;; tried++) {
        *answer = (idem_answer){0};
        PGresult *begun = idem_checked(PQexec(connection, "begin"), error);
        PQclear(begun);
        idem_kind kind = begun ? idem_attempt(connection, r, work, context, answer, error) : error->kind;
        if (PQtransactionStatus(connection) != PQTRANS_IDLE) PQclear(PQexec(connection, "rollback"));
        if (kind == IDEM_OK) return kind;
        idem_clear(answer);
        if (kind != IDEM_POSTGRES || strcmp(error->sqlstate, "40001") || tried == 5) return kind;
    }
}

void idem_clear(idem_answer *answer) {
    json_decref(answer->headers);
    PQfreemem(answer->body);
    *answer = (idem_answer){0};
}

void idem_new_token(char token[37]) {
    unsigned char b[16];
    if (getentropy(b, sizeof b) != 0) abort();
    b[6] = (b[6] & 0x0f) | 0x40, b[8] = (b[8] & 0x3f) | 0x80;
    for (int i = 0; i < 16; i++) token += sprintf(token, i > 3 && i < 11 && i % 2 == 0 ? "-%02x" : "%02x", b[i]);
}

PGresult *idem_call(PGconn *connection, const char *function, int count, const idem_argument *a, idem_error *error) {
    const char *values[12];
    int lengths[12], binary[12], end;
    Oid types[12];
    char text[1024];
    end = snprintf(text, sizeof text, "select * from idem.%s(", function);
    for (int i = 0; i < count; i++) {
        end += snprintf(text + end, sizeof text - end, "%s%s => $%d", i ? ", " : "", a[i].name, i + 1);
        binary[i] = a[i].bytes.data != NULL;
        types[i] = binary[i] ? 17 : 0; /* bytea, or what the function has */
        values[i] = binary[i] ? a[i].bytes.data : a[i].text;
        lengths[i] = (int)a[i].bytes.size;
    }
    snprintf(text + end, sizeof text - end, ")");
    return idem_checked(PQexecParams(connection, text, count, types, values, lengths, binary, 0), error);
}

PGresult *idem_checked(PGresult *result, idem_error *error) {
    if (PQresultStatus(result) == PGRES_COMMAND_OK || PQresultStatus(result) == PGRES_TUPLES_OK) return result;
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE); /* null: the connection is lost */
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
    const char *hint = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT), *code = NULL;
    snprintf(error->sqlstate, sizeof error->sqlstate, "%s", state ? state : "08006");
    error->kind = strncmp(error->sqlstate, "IK00", 4) ? IDEM_POSTGRES : (idem_kind)(error->sqlstate[4] - '0');
    json_t *facts = detail && error->kind != IDEM_POSTGRES ? json_loads(detail, 0, NULL) : NULL;
    json_unpack(facts, "{s:s}", "code", &code);
    snprintf(error->code, sizeof error->code, "%s", code ? code : "");
    snprintf(error->message, sizeof error->message, "%s", message ? message : PQresultErrorMessage(result));
    snprintf(error->hint, sizeof error->hint, "%s", hint ? hint : "");
    json_decref(facts);
    PQclear(result);
    return NULL;
}
#endif
#endif
