"""The API by itself, for whoever wants to call it by hand."""

import asyncio
import sys
from collections.abc import Callable

from pyidem.demo.interrupt import run_until_interrupted
from pyidem.demo.stage import Report, stage

_INTRODUCTION = """
Refunds API at {url}; its description at {url}/openapi.json. Ctrl-C ends it. In another terminal:

  key() {{ python3 -c 'import uuid; print(uuid.uuid4())'; }}
  post() {{ curl -si {url}$1 -H 'Authorization: Bearer north' -H "Idempotency-Key: $2" --json "$3"; echo; }}

The first call does the work; the same once more is a replay; with another amount it is refused (422):
  k=$(key)
  post /refunds/credit $k '{{"order": "A-17", "amount": 500}}'
  post /refunds/credit $k '{{"order": "A-17", "amount": 500}}'
  post /refunds/credit $k '{{"order": "A-17", "amount": 900}}'
While an attempt is at work (the provider takes its time for orders that begin with "slow") it is a 409:
  k=$(key)
  post /refunds/card $k '{{"order": "slow-17", "amount": 500}}' &
  sleep 0.5; post /refunds/card $k '{{"order": "slow-17", "amount": 500}}'; wait
Without a key, or with something that is none, it is a 400:
  post /refunds/credit '' '{{"order": "A-17", "amount": 500}}'
  post /refunds/credit 'no key' '{{"order": "A-17", "amount": 500}}'
A quote is good for two seconds; then its key is over (410):
  k=$(key)
  post /quotes $k '{{"amount": 500}}'; sleep 2; post /quotes $k '{{"amount": 500}}'
A worker that dies when the provider has answered, and the attempt that goes on from there:
  k=$(key)
  curl -si {url}/refunds/card -H 'Authorization: Bearer north' -H "Idempotency-Key: $k" \\
    -H 'Fate: die-after-provider' --json '{{"order": "A-18", "amount": 500}}'
  sleep 5; post /refunds/card $k '{{"order": "A-18", "amount": 500}}'
The same with a bank transfer, which nobody takes over: its outcome is unknown (409) until somebody has found out:
  k=$(key)
  curl -si {url}/refunds/bank -H 'Authorization: Bearer north' -H "Idempotency-Key: $k" \\
    -H 'Fate: die-after-provider' --json '{{"order": "A-19", "amount": 500}}'
  sleep 5; post /refunds/bank $k '{{"order": "A-19", "amount": 500}}'
  export PYIDEM_DSN='{dsn}'
  '{python}' -m pyidem list; '{python}' -m pyidem show shop-north $k
"""


def serve(workers: int, port: int, report: Report, tell: Callable[[str], None]) -> None:
    """Serve until interrupted; `tell` is told how to call it."""
    run_until_interrupted(_serve(workers, port, report, tell))


async def _serve(workers: int, port: int, report: Report, tell: Callable[[str], None]) -> None:
    async with stage(workers, report, port=port) as site:
        tell(_INTRODUCTION.format(url=f"http://127.0.0.1:{site.port}", dsn=site.shop, python=sys.executable))
        await site.watch(asyncio.get_running_loop().create_future())
