"""The check at start: whether the database can serve this client, and if not, what to run.

Only the answer of `idem.version()` decides about versions. A database may be a release ahead, since it is upgraded
before the programs that use it.
"""

import re
import shlex

from psycopg.conninfo import make_conninfo

from pyidem import _calls
from pyidem._adapters import Source
from pyidem._drivers import Flow
from pyidem._errors import AccessMissing, DatabaseTooNew, DatabaseTooOld, NotInstalled, NotReady, sqlstate_of
from pyidem._transactions import single_call

_INSUFFICIENT_PRIVILEGE = "42501"


def checked(source: Source) -> Flow[str]:
    """Return the version of the database, or raise NotReady."""
    from pyidem import __version__ as needed  # noqa: PLC0415 - which is set after everything is imported

    try:
        found = yield from single_call(source, _calls.readiness())
    except Exception as error:
        refused = sqlstate_of(error) == _INSUFFICIENT_PRIVILEGE
        if not refused and not isinstance(error, NotReady):
            raise
        here = yield from single_call(source, _calls.whereabouts())
        raise _access_missing(here.role) if refused else _not_installed(here.database) from error
    verdict = compared(found.version, needed)
    if verdict < 0:
        raise DatabaseTooOld(
            f"database {found.database} has pyidem {found.version}, this client is {needed}",
            command=_upgrade(found.database),
        )
    if verdict > 0:
        raise DatabaseTooNew(
            f"database {found.database} has pyidem {found.version}, this client is {needed}",
            command=f"pip install 'pyidem=={'.'.join(map(str, _release(found.version)))}.*'",
        )
    if not found.allowed:
        raise _access_missing(found.role)
    return found.version


def compared(installed: str, needed: str) -> int:
    """Tell whether a database is too old for a client (-1), too new (1) or right (0).

    It may be newer within a major version; within 0, where each minor version may break something, by one.
    """
    (major, minor), (needed_major, needed_minor) = _release(installed), _release(needed)
    if (major, minor) < (needed_major, needed_minor):
        return -1
    if major > needed_major or (major == 0 and minor > needed_minor + 1):
        return 1
    return 0


def _release(version: str) -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (-1, -1)


def _not_installed(database: str) -> NotInstalled:
    return NotInstalled(f"pyidem is not installed in database {database}", command=_upgrade(database))


def _access_missing(role: str) -> AccessMissing:
    quoted = role.replace("'", "''")
    return AccessMissing(
        f"role {role} may not call pyidem; its owner can grant it", command=f"select idem.grant_client('{quoted}');"
    )


def _upgrade(database: str) -> str:
    return f"pyidem upgrade --dsn {shlex.quote(make_conninfo(dbname=database))}"
