"""See to it that the languages are installed and built: ``python -m tests.conformance.provision``.

Installs Debian packages where it may. Where it may not, it says what is missing and ends well: the tests of these
languages are skipped then, which counts as a failure with CI=true. So does a language that cannot be built, whose tests
say why.
"""

import shutil
from collections.abc import Sequence
from contextlib import suppress

from tests.conformance.languages import BuildError, Language, chosen
from tests.support.provision import install


def main() -> None:
    """Install and build what the chosen languages lack."""
    provide([language for language in chosen() if language.missing()])
    for language in chosen():
        if not language.missing():
            with suppress(BuildError):
                language.prepare()


def provide(lacking: Sequence[Language]) -> None:
    """Install what these languages lack, or say what it is."""
    packages = sorted({package for language in lacking for package in language.missing().values()})
    if not packages:
        return
    problem = "There is no apt-get here." if shutil.which("apt-get") is None else install(packages)
    still = {language.name: language.missing() for language in lacking if language.missing()}
    for name, parts in still.items():
        print(f"Missing for {name}: {', '.join(f'{part} (Debian package {one})' for part, one in parts.items())}")
    if still:
        print(problem or "They are missing although their packages were installed.")


if __name__ == "__main__":
    main()
