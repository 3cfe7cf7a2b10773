"""The warning for public names and options that will be removed.

    deprecated("Coalesce(tuples_per_file=…)", since="0.2", removed_in="0.4", instead="record_bytes=")

How long a deprecated name works is the policy in docs/deprecation.md. `removed_in` is not only text: a test fails when
the version of the package reaches it, so that the code behind it is removed in time.
"""

import warnings


def deprecated(name: str, *, since: str, removed_in: str, instead: str) -> None:
    """Warn, at the line that called the function that calls this, that `name` will be removed."""
    message = f"{name} is deprecated since {since} and will be removed in {removed_in}; use {instead}"
    warnings.warn(message, DeprecationWarning, stacklevel=3)
