"""What all candidates do: the work, the answer that is stored, and the pattern that everybody writes by hand."""

from hashlib import sha256

FINGERPRINT = sha256(b"request").digest()
WORK = "insert into orders (amount, note) values (%s, %s)"
ANSWER = b'{"id": 1234567, "amount": 1}'
HEADERS = [("content-type", "application/json")]
STORED_HEADERS = '[["content-type", "application/json"]]'
RESERVE_BY_HAND = (
    "insert into hand (scope, key, fingerprint) values (%s, %s, %s) on conflict do nothing returning created_at"
)
COMPLETE_BY_HAND = (
    "update hand set completed_at = now(), status = %s, headers = %s, body = %s where scope = %s and key = %s"
)
READ_BY_HAND = "select fingerprint, status, headers, body from hand where scope = %s and key = %s"
STORED = 10000
BATCH = 100


def stored(name: str) -> str:
    """Return one of the keys that are completed already."""
    return f"stored-{hash(name) % STORED + 1}"
