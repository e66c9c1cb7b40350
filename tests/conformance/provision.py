"""See to it that the languages are installed: ``python -m tests.conformance.provision``.

Installs Debian packages where it may. Where it may not, it says what is missing and ends well: the tests of these
languages are skipped then, which counts as a failure with CI=true.
"""

import shutil

from tests.conformance.languages import chosen
from tests.support.provision import install


def main() -> None:
    """Install what the chosen languages lack."""
    missing = {language.name: language.missing() for language in chosen() if language.missing()}
    if not missing:
        return
    packages = sorted({package for parts in missing.values() for package in parts.values()})
    problem = "There is no apt-get here." if shutil.which("apt-get") is None else install(packages)
    still = {language.name: language.missing() for language in chosen() if language.missing()}
    for name, parts in still.items():
        print(f"Missing for {name}: {', '.join(f'{part} (Debian package {one})' for part, one in parts.items())}")
    if still:
        print(problem or "They are missing although their packages were installed.")


if __name__ == "__main__":
    main()
