"""Rows as machines read them: maps are objects, whatever their keys are."""

from __future__ import annotations

import json
from typing import Any


def as_json(value: Any, indent: int | None = None) -> str:
    """A value with rows in it.

    >>> as_json({"m": {1: {None: 2.5}}})
    '{"m": {"1": {"None": 2.5}}}'
    """
    return json.dumps(_plain(value), indent=indent, default=str)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
