"""Makes `tables.py` of the declarations: ``python -m fairpace._declare > fairpace/tables.py``; a test compares."""

from __future__ import annotations

import json
import textwrap

from ._fairpace import declarations

HEAD = '''"""The tables of a scenario as classes: each field with its effect, its range and its default.

Made by `python -m fairpace._declare` from the declarations that check scenarios. A field that is not given is left to its
default. Times, sizes and rates are text with their unit, as in a scenario file: ``"550 ms"``, ``"2 Mbit/s"``.

>>> Path(rate="2 Mbit/s", rtt="550 ms")
Path(rate='2 Mbit/s', rtt='550 ms')
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ._table import _json, _Table  # noqa: F401
'''


#: Names that a field cannot have in Python: `class` is `class_`.
KEYWORDS = {"class", "from", "in", "is"}


def class_name(schema: str) -> str:
    """The class of a table: `FlowSpec` is `Flow`."""
    return schema.removesuffix("Spec")


def sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def described(field: dict) -> str:
    default = "must be given" if field.get("needed") else f"default {field['default']}" if field["default"] else "optional"
    symbol = f"{field['symbol']}: " if field["symbol"] else ""
    return f"{symbol}{field['doc']}; {field['allowed']}; {default}"


def class_of(table: dict) -> str:
    lines = ["", "", "@dataclass(kw_only=True, repr=False)", f"class {class_name(table['schema'])}(_Table):"]
    doc = [f'"""{sentence(table["doc"])}', ""]
    for field in table["fields"]:
        text = f"{field['name']}: {described(field)}"
        doc += textwrap.wrap(text, 110, subsequent_indent="    ", break_long_words=False)
    lines += textwrap.indent("\n".join([*doc, '"""']), "    ", lambda line: line.strip() != "").splitlines()
    lines.append("")
    for field in table["fields"]:
        types = list(dict.fromkeys(kind.replace("Spec", "") for kind in field["types"]))
        attribute = field["name"] + ("_" if field["name"] in KEYWORDS else "")
        lines.append(f"    {attribute}: {' | '.join([*types, 'None'])} = None")
    return "\n".join(lines)


def parameters(controllers: list[dict]) -> str:
    """Every controller's parameters, as a dictionary of dictionaries."""
    lines = ["", "", "#: Each controller's parameters: `parameters` of a `Flow`.", "PARAMETERS: dict[str, dict[str, str]] = {"]
    for controller in controllers:
        lines.append(f"    {controller['name']!r}: {{".replace("'", '"'))
        for field in controller["parameters"]:
            lines.append(f"        {json.dumps(field['name'])}: {json.dumps(described(field), ensure_ascii=False)},")
        lines.append("    },")
    return "\n".join([*lines, "}"])


def text() -> str:
    declared = json.loads(declarations())
    tables = [class_of(table) for table in declared["tables"] if table["at"]]
    return HEAD + "\n".join([*tables, parameters(declared["controllers"])]) + "\n"


if __name__ == "__main__":
    print(text(), end="")
