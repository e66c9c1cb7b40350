"""What `make soak` asks of the tests that can go on for long: for how long, and from which seed on."""

import os

SEED = int(os.environ.get("PYIDEM_SOAK_SEED") or "1")
MINUTES = float(os.environ.get("PYIDEM_SOAK_MINUTES") or "0")
"""0 where they are part of `make test`, and short."""
