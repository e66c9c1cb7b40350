"""Run the tests of the Python client in other surroundings: ``python -m tests.surroundings.run [NAME...]``.

Left out are those that look at one thing which the surroundings change on purpose.
"""

import os
import subprocess
import sys
from contextlib import ExitStack

from tests.support.database import ROOT
from tests.support.server import find_server
from tests.support.surroundings import SURROUNDINGS, german_locale, has_german_messages

FILES = ("answers", "atomic", "checkpoint", "claim", "consumer", "errors", "leased", "once", "requests", "run")


def main(names: list[str]) -> int:
    """Run them all, or those that are named, and return the exit status."""
    server = find_server()
    assert server is not None, "make has seen to it that there is one"
    failed = []
    for name in names or SURROUNDINGS:
        with ExitStack() as stack:
            if name == "german messages":
                if not has_german_messages(server.major):
                    print(f"{name}: left out, needs the package locales and the server's translations", flush=True)
                    continue
                stack.enter_context(german_locale())
            print(f"{name}:", flush=True)
            files = [f"tests/client/test_{file}.py" for file in FILES]
            command = [sys.executable, "-m", "pytest", "-q", "-n", "2", *files, "-m", "not own_surroundings"]
            if SURROUNDINGS[name].pooled:
                # asyncpg prepares statements, and so does psycopg what a test of the heartbeat itself repeats, which a
                # pooler in transaction mode does not keep for them
                command += ["-k", "not asyncpg and not heartbeat_pauses"]
            environment = {**os.environ, "PYIDEM_SURROUNDINGS": name}
            if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode != 0:
                failed.append(name)
    if failed:
        print(f"Failed: {', '.join(failed)}", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
