"""What every class of `tables` has, and how values become what a scenario file would have."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any


class _Table:
    def __repr__(self) -> str:
        given = [f"{name}={value!r}" for name, value in _given(self).items()]
        return f"{type(self).__name__}({', '.join(given)})"


def _given(table: _Table) -> dict[str, Any]:
    """The fields that have a value, by their names in a scenario."""
    values = ((field.name.rstrip("_"), getattr(table, field.name)) for field in fields(table))  # type: ignore[arg-type]
    return {name: value for name, value in values if value is not None}


def _json(value: Any) -> str:
    """A value as a scenario file would have it, in JSON."""
    return json.dumps(value, default=_plain)


def _text(value: Any) -> str:
    """A value as the command takes it: text is left as it is, anything else is written in TOML."""
    return value if isinstance(value, str) else _toml(json.loads(_json(value)))


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {_toml(field)}" for name, field in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if value is None:
        raise TypeError("None is nothing that a scenario can hold")
    # Strings, numbers, true and false are in TOML what they are in JSON.
    return json.dumps(value, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, _Table):
        return _given(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    if callable(item := getattr(value, "item", None)):
        # A number of NumPy.
        return item()
    raise TypeError(f"{value!r} is nothing that a scenario can hold")
