"""A worker process: reads requests for refunds, one JSON document on a line, and answers each in the same way."""

import json
import sys

from psycopg_pool import ConnectionPool

from pyidem import Idem, IdempotencyError
from pyidem.demo.crash.refunds import refund


def main() -> None:
    """Work until there is no more to do."""
    with ConnectionPool("", min_size=1, max_size=3) as pool:
        idem = Idem(pool)
        for line in sys.stdin:
            try:
                response = refund(idem, **json.loads(line))
                answer = {"status": response.status, "body": json.loads(response.body or b"null")}
            except IdempotencyError as error:
                answer = {"status": error.status, "code": error.code}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
