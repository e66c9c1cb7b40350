/* For an effect outside the database: it happens under a key of its own, between the commit of the reservation and the
   transaction that the work and its answer share. What fails once it may have happened leaves the outcome unknown,
   which the policy of the key decides. */
#ifndef LEASED_H
#define LEASED_H

#include "idem.h"

/* What happens elsewhere. The key is null where nothing protects the request. The context is that of the work, too. */
typedef idem_kind idem_effect(const char *downstream_key, void *context, idem_error *);

idem_kind idem_leased(
    PGconn *, const idem_request *, idem_effect *, idem_work *, void *context, idem_answer *, idem_error *);

#endif
