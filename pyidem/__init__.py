"""Idempotency keys decided in Postgres: an operation takes effect once, however often it is retried."""

__version__ = "0.1.0.dev0"
