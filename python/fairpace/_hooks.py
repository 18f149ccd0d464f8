"""Mistakes in subclasses that would go unnoticed: misspelt methods, and an ``__init__`` that leaves out the base's."""

from __future__ import annotations

import inspect
from difflib import get_close_matches


class Hooks:
    """A class whose methods are called by their names, with what its ``__init__`` sets, ``_set_by_init``."""

    _set_by_init: tuple[str, ...] = ()

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        known = [name for base in cls.__mro__[1:] for name in vars(base) if not name.startswith("_")]
        for name, value in vars(cls).items():
            if name in known and (inspect.iscoroutinefunction(value) or inspect.isgeneratorfunction(value)):
                raise TypeError(f"`{cls.__name__}.{name}` would do nothing when it is called: it has `async` or `yield`")
            if name.startswith("_") or name in known or not callable(value):
                continue
            if near := get_close_matches(name, [k for k in known if k.startswith("on_") or k == "start"], n=1, cutoff=0.8):
                raise TypeError(f"`{cls.__name__}.{name}` would never be called; did you mean `{near[0]}`?")

    def __getattr__(self, name: str) -> object:
        if name in self._set_by_init:
            raise AttributeError(f"`{type(self).__name__}` has no `{name}`: its `__init__` has to call `super().__init__(env)`")
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
