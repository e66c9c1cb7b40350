#define _DEFAULT_SOURCE
#define IDEM_IMPLEMENTATION
#include "refund.h"

static const char INSERT[] = "insert into refunds (\"order\", amount) values ($1, $2) returning id";

static unsigned char *copied(const char *text, size_t *size) {
    *size = strlen(text);
    return (unsigned char *)strdup(text);
}

/* Fills in the answer, or returns what went wrong. */
static idem_kind insert(
    PGconn *connection, const char *order, json_int_t amount, idem_answer *answer, idem_error *error) {
    char digits[24], location[48];
    snprintf(digits, sizeof digits, "%" JSON_INTEGER_FORMAT, amount);
    const char *values[] = {order, digits};
    PGresult *made = idem_checked(PQexecParams(connection, INSERT, 2, NULL, values, NULL, NULL, 0), error);
    if (!made) return error->kind;
    const char *id = PQgetvalue(made, 0, 0);
    snprintf(location, sizeof location, "/refunds/%s", id);
    answer->status = 201;
    answer->headers = json_pack("[[s, s], [s, s]]", "Location", location, "Content-Type", "application/json");
    json_t *body = json_pack("{s: I, s: s, s: I}", "id", (json_int_t)atoll(id), "order", order, "amount", amount);
    char *text = json_dumps(body, 0);
    answer->body = copied(text, &answer->size);
    free(text);
    json_decref(body);
    PQclear(made);
    return IDEM_OK;
}

/* ten lines: */
static idem_kind work(PGconn *connection, void *context, idem_answer *answer, idem_error *error) {
    const char *order;
    double amount;
    if (json_unpack(context, "{s: s, s: F}", "order", &order, "amount", &amount)) return IDEM_WORK;
    if (amount > 0) return insert(connection, order, (json_int_t)amount, answer, error);
    answer->status = 422;
    answer->body = copied("{\"error\": \"amount\"}", &answer->size);
    return IDEM_OK;
}
/* end of ten lines */

idem_kind refund(
    PGconn *connection, const char *scope, const char *key, idem_bytes body, idem_answer *answer, idem_error *error) {
    json_t *asked = json_loadb(body.data, body.size, 0, NULL);
    idem_request request = {scope, key, "POST", "/refunds", "application/json", NULL, body};
    idem_kind kind = idem_atomic(connection, &request, work, asked, answer, error);
    json_decref(asked);
    return kind;
}
