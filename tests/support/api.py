"""The refunds API of the demonstration, as `make demo ARGS=--serve` runs it."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.database import ROOT

_READY = re.compile(r"Refunds API at (\S+);")


@contextmanager
def served() -> Iterator[str]:
    """Serve it on a free port, and yield where."""
    command = [sys.executable, "-m", "pyidem.demo", "--serve", "--port", "0", "--workers", "2"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = next((match[1] for line in process.stdout if (match := _READY.match(line))), None)
        try:
            assert url is not None, "it has ended"
            yield url
        finally:
            process.terminate()
            assert process.wait(60) == 0
