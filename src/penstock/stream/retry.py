"""Asking again: a storage or a catalog that does not answer for a while does not end a stream.

What is missing is asked for again a few times at once, because a directory may vanish between two List calls. What may
come back (a connection, a server that is busy) is asked for with longer and longer waits, and said each time. What
asking again cannot mend (no permission, a table that is damaged) is an error at once.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import TypeVar

from penstock.errors import CLIENT_ERRORS, LakeError, MissingError, PenstockError, PenstockWarning, StorageError
from penstock.storage.redaction import one_line

T = TypeVar("T")
_LONGEST_WAIT, _MISSING_WAIT, _MISSING_AGAIN = 30.0, 0.1, 5
_FINAL = ("access_denied", "access denied", "accessdenied", "permission denied", "invalidaccesskeyid",
          "status 403", "403 forbidden", "signaturedoesnotmatch", "nosuchbucket", "no_such_bucket",
          "not a directory")  # fmt: skip
_BUSY = ("OperationalError", "ServerError", "ServiceUnavailableError", "RESTError")


def retried(work: Callable[[], T], what: str, seconds: float, wait: Callable[[float], None] = time.sleep) -> T:
    """Do something, again and again for so many seconds while it fails for a reason that may pass."""
    deadline = time.monotonic() + seconds
    pause, missing = 0.5, 0
    while True:
        try:
            return work()
        except CLIENT_ERRORS as error:
            is_missing = isinstance(error, MissingError)
            missing += is_missing
            again = missing <= _MISSING_AGAIN if is_missing else may_pass(error)
            rest = _MISSING_WAIT if is_missing else pause
            if not again or time.monotonic() + rest > deadline:
                raise
            if not is_missing:
                warnings.warn(f"{what}: {one_line(error)}; asked again in {pause:g} s", PenstockWarning, stacklevel=2)
                pause = min(_LONGEST_WAIT, 2 * pause)
        wait(rest)


def may_pass(error: BaseException) -> bool:
    """Whether asking again may help."""
    if isinstance(error, MissingError):
        return False
    if isinstance(error, LakeError) and error.__cause__ is not None:
        return may_pass(error.__cause__)
    if isinstance(error, PenstockError) and not isinstance(error, StorageError):
        return False
    if isinstance(error, FileNotFoundError | PermissionError | NotADirectoryError):
        return False
    if isinstance(error, OSError):
        return not any(word in str(error).lower() for word in _FINAL)
    return any(type(error).__name__ == name for name in _BUSY)
