"""Makes `tables.py` of the declarations: ``python -m fairpace._declare > fairpace/tables.py``; a test compares.

``python -m fairpace._declare --stub`` prints what stands of them in `_fairpace.pyi`, in the class `Scenario`; a test looks for it there.
"""

from __future__ import annotations

import json
import sys
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
    lines += [f"    {field}" for field in attributes(table)]
    return "\n".join(lines)


def attributes(table: dict) -> list[str]:
    """A table's fields, each with its types and None, which leaves it to its default."""
    lines = []
    for field in table["fields"]:
        types = list(dict.fromkeys(kind.replace("Spec", "") for kind in field["types"]))
        attribute = field["name"] + ("_" if field["name"] in KEYWORDS else "")
        lines.append(f"{attribute}: {' | '.join([*types, 'None'])} = None")
    return lines


def stub() -> str:
    """The constructor of a scenario, whose arguments are the tables and fields of a file."""
    [scenario] = [table for table in json.loads(declarations())["tables"] if not table["at"]]
    lines = ["def __new__(", "    cls,", "    *,", *(f"    {field}," for field in attributes(scenario)), ") -> Scenario: ..."]
    return textwrap.indent("\n".join(lines), "    ") + "\n"


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
    print(stub() if sys.argv[1:] == ["--stub"] else text(), end="")
