/* The endpoint POST /refunds. */
#ifndef REFUND_H
#define REFUND_H

#include "idem.h"

/* Answers one request; the scope is the client that asks, as the server knows it. */
idem_kind refund(PGconn *, const char *scope, const char *key_header, idem_bytes body, idem_answer *, idem_error *);

#endif
