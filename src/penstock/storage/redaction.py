"""What is a secret, and texts without any: whatever a library says is shown through this module.

The value of a property is a secret by the property's name. Only properties that are known to be harmless are ever
written down (`storable`); everything else is taken to be a credential.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

_WORDS = ("secret", "token", "key", "password", "credential")
_FROM_ENVIRONMENT = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_LOGIN = re.compile(r"(?<=://)[^/\s@]+@")
_SHORTEST_SECRET, _LONGEST_TEXT = 4, 300


def is_secret(name: str) -> bool:
    """Whether the value of a property must not be shown or kept."""
    return any(word in name.lower() for word in _WORDS)


def one_line(error: BaseException | str, properties: Mapping[str, Any] | None = None) -> str:
    """What an error says, in one line that is not too long, without the secrets among the properties."""
    text = " ".join(str(error).split())
    for name, value in (properties or {}).items():
        if value and is_secret(name):
            text = text.replace(str(value), "***")
    return text[:_LONGEST_TEXT]


def without_configured_secrets(text: str) -> str:
    """A text without any secret of the configuration, and without logins in URLs."""
    for secret in sorted(_configured_secrets(), key=len, reverse=True):
        text = text.replace(secret, "***")
    return _LOGIN.sub("***@", text)


def storable(properties: Mapping[str, str], harmless: Collection[str]) -> dict[str, str]:
    """The properties that may be written to a file: harmless by their names, and no address with a login in it."""
    return {name: value for name, value in properties.items() if name in harmless and not _has_user(value)}


def _has_user(value: str) -> bool:
    """Whether an address names a user, or has parameters: either may be a secret."""
    parts = urlsplit(value)
    return "@" in value or bool(parts.query or parts.fragment)


def _configured_secrets() -> set[str]:
    """The secrets of all catalogs that PyIceberg is configured with, and those that Amazon's libraries read."""
    from pyiceberg.utils.config import Config

    secrets = {os.environ.get(name, "") for name in _FROM_ENVIRONMENT}
    waiting: list[Any] = []
    with suppress(Exception):  # a file that cannot be read has told nobody a secret
        waiting.append(Config().config)
    while waiting:
        for name, value in waiting.pop().items():
            if isinstance(value, Mapping):
                waiting.append(value)
            elif is_secret(str(name)):
                secrets |= {str(value), str(value).rpartition(":")[2]}  # `credential` is an id, a colon and a secret
    return {secret for secret in secrets if len(secret) >= _SHORTEST_SECRET}
