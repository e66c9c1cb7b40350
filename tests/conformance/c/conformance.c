/* Speaks the line protocol of the conformance suite: see ../README.md. */
#define _DEFAULT_SOURCE
#include "leased.h"
#include "refund.h"

#include <stdlib.h>
#include <string.h>

enum { BOOL = 16, BYTEA = 17, INT8 = 20, INT4 = 23 };

typedef struct session {
    char *name;
    PGconn *connection;
    struct session *next;
} session;

static session *sessions;

static void *fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static const char *text(const json_t *object, const char *name) {
    return json_string_value(json_object_get(object, name));
}

/* bytes */

static json_t *encoded(const unsigned char *bytes, size_t size) {
    char *digits = malloc(2 * size + 1);
    digits[0] = '\0';
    for (size_t i = 0; i < size; i++) sprintf(digits + 2 * i, "%02x", bytes[i]);
    json_t *value = json_pack("{s: s}", "bytes", digits);
    free(digits);
    return value;
}

/* Data is null for null; otherwise it is to be freed. */
static idem_bytes decoded(const json_t *value) {
    const char *digits = text(value, "bytes");
    if (!digits) return (idem_bytes){0};
    size_t size = strlen(digits) / 2;
    unsigned char *bytes = malloc(size + 1);
    for (size_t i = 0; i < size; i++) {
        char pair[] = {digits[2 * i], digits[2 * i + 1], '\0'};
        bytes[i] = (unsigned char)strtol(pair, NULL, 16);
    }
    return (idem_bytes){bytes, size};
}

/* arguments and rows */

static char *array(const json_t *texts) {
    size_t at, size = 3;
    json_t *one;
    json_array_foreach(texts, at, one) size += 2 * json_string_length(one) + 3;
    char *literal = malloc(size), *end = literal;
    *end++ = '{';
    json_array_foreach(texts, at, one) {
        if (at) *end++ = ',';
        *end++ = '"';
        for (const char *c = json_string_value(one); *c; c++) {
            if (*c == '"' || *c == '\\') *end++ = '\\';
            *end++ = *c;
        }
        *end++ = '"';
    }
    strcpy(end, "}");
    return literal;
}

static char *spelled(const json_t *value) {
    if (json_is_string(value)) return strdup(json_string_value(value));
    if (json_is_array(value)) return array(value);
    return json_dumps(value, JSON_ENCODE_ANY);
}

static json_t *cell(const PGresult *rows, int row, int column) {
    if (PQgetisnull(rows, row, column)) return json_null();
    const char *value = PQgetvalue(rows, row, column);
    switch (PQftype(rows, column)) {
    case BOOL:
        return json_boolean(value[0] == 't');
    case INT4:
    case INT8:
        return json_integer(strtoll(value, NULL, 10));
    case BYTEA: {
        size_t size;
        unsigned char *bytes = PQunescapeBytea((const unsigned char *)value, &size);
        json_t *found = encoded(bytes, size);
        PQfreemem(bytes);
        return found;
    }
    default:
        return json_string(value);
    }
}

/* answers */

static json_t *described(idem_kind kind, const idem_error *error) {
    static const char *const kinds[] = {
        [IDEM_KEY_INVALID] = "key_invalid",
        [IDEM_LOST_RESERVATION] = "lost_reservation",
        [IDEM_NO_SUCH_RESERVATION] = "no_such_reservation",
        [IDEM_WRONG_MODE] = "wrong_mode",
        [IDEM_NOT_COMPLETED] = "not_completed",
        [IDEM_NO_SUCH_POLICY] = "no_such_policy",
        [IDEM_LIMIT_EXCEEDED] = "limit_exceeded",
        [IDEM_POSTGRES] = NULL,
    };
    if (kind == IDEM_WORK) return json_pack("{s: b}", "failed", 1);
    const char *code = error->code[0] ? error->code : NULL, *named = kinds[kind];
    return json_pack("{s: {s: s, s: s?, s: s?}}", "error", "sqlstate", error->sqlstate, "code", code, "kind", named);
}

static json_t *answered(idem_kind kind, idem_answer *answer, const idem_error *error) {
    if (kind != IDEM_OK) return described(kind, error);
    json_t *headers = answer->headers ? json_incref(answer->headers) : json_null();
    json_t *body = answer->body ? encoded(answer->body, answer->size) : json_null();
    json_t *shown = json_pack("{s: i, s: o, s: o}", "status", answer->status, "headers", headers, "body", body);
    idem_clear(answer);
    return shown;
}

/* requests */

static json_t *opened(const char *name, const char *user) {
    const char *keys[] = {"user", NULL}, *values[] = {user, NULL};
    session *made = malloc(sizeof *made);
    *made = (session){strdup(name), PQconnectdbParams(keys, values, 0), sessions};
    if (PQstatus(made->connection) != CONNECTION_OK) fail(PQerrorMessage(made->connection));
    sessions = made;
    return json_object();
}

static session **find(const char *name) {
    session **place = &sessions;
    while (*place && strcmp((*place)->name, name)) place = &(*place)->next;
    return *place ? place : fail("no such session");
}

static void finish(session **place) {
    session *gone = *place;
    *place = gone->next;
    PQfinish(gone->connection);
    free(gone->name);
    free(gone);
}

static json_t *executed(PGconn *connection, const char *sql) {
    idem_error error = {0};
    PGresult *result = idem_checked(PQexec(connection, sql), &error);
    PQclear(result);
    return result ? json_object() : described(error.kind, &error);
}

static json_t *begun(PGconn *connection, const char *isolation) {
    char sql[64];
    snprintf(sql, sizeof sql, "begin%s%s", isolation ? " isolation level " : "", isolation ? isolation : "");
    return executed(connection, sql);
}

static json_t *called(PGconn *connection, const json_t *asked) {
    idem_argument given[12];
    int count = 0;
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(asked, "arguments"), name, value) {
        int plain = !json_is_null(value) && !json_is_object(value);
        given[count++] = (idem_argument){name, plain ? spelled(value) : NULL, decoded(value)};
    }
    idem_error error = {0};
    PGresult *rows = idem_call(connection, text(asked, "function"), count, given, &error);
    for (int i = 0; i < count; i++) free((void *)given[i].text), free((void *)given[i].bytes.data);
    if (!rows) return described(error.kind, &error);
    json_t *found = json_array();
    for (int row = 0; row < PQntuples(rows); row++) {
        json_t *columns = json_object();
        for (int i = 0; i < PQnfields(rows); i++) json_object_set_new(columns, PQfname(rows, i), cell(rows, row, i));
        json_array_append_new(found, columns);
    }
    PQclear(rows);
    return json_pack("{s: o}", "rows", found);
}

/* What work and effect are given. */
typedef struct {
    PGconn *connection;
    const json_t *asked;
} task;

static idem_kind happen(PGconn *connection, const json_t *what, const char *key, idem_error *error) {
    char sql[1000];
    const char *given = text(what, "sql"), *place = key ? strstr(given, "{key}") : NULL;
    if (place) snprintf(sql, sizeof sql, "%.*s%s%s", (int)(place - given), given, key, place + strlen("{key}"));
    PGresult *result = idem_checked(PQexec(connection, place ? sql : given), error);
    PQclear(result);
    if (!result) return error->kind;
    return json_is_true(json_object_get(what, "fail")) ? IDEM_WORK : IDEM_OK;
}

static idem_kind effect(const char *key, void *context, idem_error *error) {
    task *given = context;
    return happen(given->connection, json_object_get(given->asked, "effect"), key, error);
}

static idem_kind work(PGconn *connection, void *context, idem_answer *answer, idem_error *error) {
    const json_t *what = json_object_get(((task *)context)->asked, "work");
    idem_kind kind = happen(connection, what, NULL, error);
    if (kind != IDEM_OK) return kind;
    json_t *headers = json_object_get(what, "headers");
    idem_bytes body = decoded(json_object_get(what, "body"));
    answer->status = (int)json_integer_value(json_object_get(what, "status"));
    answer->headers = json_is_array(headers) ? json_incref(headers) : NULL;
    answer->body = (unsigned char *)body.data;
    answer->size = body.size;
    return IDEM_OK;
}

static json_t *answer_once(PGconn *connection, const json_t *asked) {
    const json_t *given = json_object_get(asked, "request");
    idem_request request = {
        text(given, "scope"), text(given, "key_header"), text(given, "method"), text(given, "path"),
        text(given, "content_type"), text(given, "policy"), decoded(json_object_get(given, "body"))};
    idem_answer answer;
    idem_error error = {0};
    task given_to = {connection, asked};
    idem_kind kind = strcmp(text(asked, "do"), "leased")
        ? idem_atomic(connection, &request, work, &given_to, &answer, &error)
        : idem_leased(connection, &request, effect, work, &given_to, &answer, &error);
    free((void *)request.body.data);
    return answered(kind, &answer, &error);
}

static json_t *refunded(PGconn *connection, const json_t *asked) {
    idem_bytes body = decoded(json_object_get(asked, "body"));
    idem_answer answer;
    idem_error error = {0};
    idem_kind kind = refund(connection, text(asked, "scope"), text(asked, "key_header"), body, &answer, &error);
    free((void *)body.data);
    return answered(kind, &answer, &error);
}

static json_t *performed(const json_t *asked) {
    const char *what = text(asked, "do"), *name = text(asked, "session");
    char token[37];
    if (!strcmp(what, "token")) return idem_new_token(token), json_pack("{s: s}", "token", token);
    if (!strcmp(what, "open")) return opened(name, text(asked, "user"));
    session **place = find(name);
    PGconn *connection = (*place)->connection;
    if (!strcmp(what, "close")) return finish(place), json_object();
    if (!strcmp(what, "begin")) return begun(connection, text(asked, "isolation"));
    if (!strcmp(what, "commit") || !strcmp(what, "rollback")) return executed(connection, what);
    if (!strcmp(what, "execute")) return executed(connection, text(asked, "sql"));
    if (!strcmp(what, "call")) return called(connection, asked);
    if (!strcmp(what, "atomic") || !strcmp(what, "leased")) return answer_once(connection, asked);
    if (!strcmp(what, "refund")) return refunded(connection, asked);
    return fail(what);
}

int main(void) {
    char *line = NULL;
    for (size_t size = 0; getline(&line, &size, stdin) > 0;) {
        json_error_t error;
        json_t *asked = json_loads(line, 0, &error);
        if (!asked) fail(error.text);
        json_t *answer = performed(asked);
        json_dumpf(answer, stdout, JSON_COMPACT);
        putchar('\n');
        fflush(stdout);
        json_decref(answer);
        json_decref(asked);
    }
    free(line);
    while (sessions) finish(&sessions);
    return 0;
}
