"""Run a program that ends with its parent, as another user where asked.

Executed by path in a fresh interpreter (``python -I -S _launch.py PARENT UID GID PROGRAM [ARGUMENT...]``), so that the
process that asks for it need not run Python code between fork and exec, and so that the dropped user need not be able
to read the interpreter.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # from <linux/prctl.h>


def main(parent: int, uid: int, gid: int, command: list[str]) -> None:
    """Drop to ``uid``, ask the kernel for SIGINT when ``parent`` dies, and become ``command``.

    SIGINT is a fast shutdown for Postgres. The order matters: a change of user clears the request. Other systems than
    Linux have no such request; there the caller's own stop is all there is.
    """
    if uid != os.getuid():
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
        if os.getppid() != parent:  # it died before the request was made
            sys.exit(1)
    os.execv(command[0], command)  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
