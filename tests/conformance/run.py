"""Play every scenario in every language and race them all: ``python -m tests.conformance.run``.

A run of all languages in which everything passes writes the table of README.md anew.
"""

import os
import sys

import pytest

from tests.conformance import page, results
from tests.conformance.languages import HERE, chosen, languages


def main() -> int:
    """Run the tests of this folder, the race in its full size; return the exit status."""
    os.environ["CI"] = "true"  # nothing may be skipped
    os.environ.setdefault("CONFORMANCE_ATTEMPTS", "10000")
    os.environ.setdefault("CONFORMANCE_KEYS", "1000")
    results.forget()
    options = ["-q", "-s", "--timeout=1800", f"--ignore={HERE / 'test_page.py'}", *sys.argv[1:]]
    status = pytest.main([str(HERE), *options])
    found = results.noted()
    for language in chosen():
        result = found.get(language.key)
        print(f"{language.name}: {f'{result.passed} of {result.played} scenarios' if result else 'not played'}")
    if status == pytest.ExitCode.OK and chosen() == languages() and not sys.argv[1:]:
        page.README.write_text(page.written(found))
        print("The table in tests/conformance/README.md is current.")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
