"""The languages that take part: what a folder's language.toml says, what is missing for it, and how it is built."""

import fcntl
import glob
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BUILT = ROOT / ".conformance"
MAX_CLIENT_LINES = 149
MAX_EXAMPLE_LINES = 10

_BEGIN, _END = "ten lines:", "end of ten lines"


class BuildError(Exception):
    """A language could not be built; the text is what its commands said."""


@dataclass(frozen=True)
class Language:
    """One folder. `key` is its name in LANGUAGES, `name` the one for readers, `serve` its HTTP servers by framework.

    `leased` is its file for effects outside the database, where it has one.
    """

    key: str
    name: str
    driver: str
    client: str
    example: str
    run: tuple[str, ...]
    build: tuple[tuple[str, ...], ...]
    environment: Mapping[str, str]
    needs: Mapping[str, str]
    serve: Mapping[str, tuple[str, ...]]
    leased: str = ""

    @classmethod
    def read(cls, folder: Path) -> "Language":
        """Read a folder's language.toml."""
        entry = tomllib.loads((folder / "language.toml").read_text())
        commands = tuple(tuple(command) for command in entry.pop("build", []))
        environment, needs = entry.pop("environment", {}), entry.pop("needs", {})
        serve = {framework: tuple(command) for framework, command in entry.pop("serve", {}).items()}
        return cls(
            key=folder.name,
            build=commands,
            environment=environment,
            needs=needs,
            serve=serve,
            **entry | {"run": tuple(entry["run"])},
        )

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return HERE / self.key

    @property
    def built(self) -> Path:
        """The directory for what is built."""
        return BUILT / self.key

    def missing(self) -> dict[str, str]:
        """Return what it needs and this system lacks: the part, and the Debian package that has it."""
        return {part: package for part, package in self.needs.items() if not _is_there(part)}

    def lines(self) -> int:
        """Return how many lines its client has."""
        return len((self.folder / self.client).read_text().splitlines())

    def ten_lines(self) -> str:
        """Return the part of its example that stands between the marks."""
        lines = (self.folder / self.example).read_text().splitlines()
        (begin,) = [number for number, line in enumerate(lines) if _BEGIN in line]
        (end,) = [number for number, line in enumerate(lines) if _END in line]
        shown = lines[begin + 1 : end]
        margin = min(len(line) - len(line.lstrip()) for line in shown if line.strip())
        return "\n".join(line[margin:] for line in shown) + "\n"

    def prepare(self) -> None:
        """Build it, unless it was built from the same files; others that build it at the same time are waited for."""
        self.built.mkdir(parents=True, exist_ok=True)
        stamp = BUILT / f"{self.key}.stamp"
        with _locked(BUILT / f"{self.key}.lock"):
            if stamp.exists() and stamp.read_text() == self.digest:
                return
            stamp.unlink(missing_ok=True)
            for command in self.build:
                done = subprocess.run(
                    [self._placed(word) for word in command],
                    cwd=self.folder,
                    env=os.environ | self.settings,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                if done.returncode != 0:
                    raise BuildError(f"{self.name}: {' '.join(command)}\n{done.stdout}{done.stderr}")
            stamp.write_text(self.digest)

    @property
    def command(self) -> list[str]:
        """The program that speaks the protocol."""
        return [self._placed(word) for word in self.run]

    def serving(self, framework: str) -> list[str]:
        """Return the program that serves its example."""
        return [self._placed(word) for word in self.serve[framework]]

    @property
    def settings(self) -> dict[str, str]:
        """Its environment variables."""
        return {name: self._placed(value) for name, value in self.environment.items()}

    @cached_property
    def digest(self) -> str:
        """A digest of its files."""
        files = sorted(file for file in self.folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
        digest = hashlib.sha256()
        for file in files:
            content = file.read_bytes()
            digest.update(f"{file.relative_to(self.folder)} {len(content)}\n".encode() + content)
        return digest.hexdigest()

    def _placed(self, word: str) -> str:
        return word.replace("{build}", str(self.built)).replace("{python}", sys.executable)


def languages() -> list[Language]:
    """Return every language, by name."""
    found = [Language.read(file.parent) for file in HERE.glob("*/language.toml")]
    return sorted(found, key=lambda language: language.name.lower())


def chosen() -> list[Language]:
    """Return those that the environment variable LANGUAGES names, or all."""
    names = os.environ.get("LANGUAGES", "").split()
    known = {language.key: language for language in languages()}
    if unknown := sorted(set(names) - known.keys()):
        raise SystemExit(f"LANGUAGES names {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    return [language for language in languages() if not names or language.key in names]


def _is_there(part: str) -> bool:
    return bool(glob.glob(part)) if part.startswith("/") else shutil.which(part) is not None  # noqa: PTH207 - absolute


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
