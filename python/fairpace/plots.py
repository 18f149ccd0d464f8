"""Figures with matplotlib, in the colours, dashes and marks of the reports. Each returns its figure and shows nothing."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ._fairpace import Results, colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKS = {"circle": "o", "square": "s", "triangle": "^", "diamond": "D", "cross": "x", "plus": "+"}
#: For names that have no fixed look.
_OTHERS = [
    ("#4a5560", [], "square"),
    ("#6d6f00", [6, 3], "triangle"),
    ("#2f7fae", [3, 2], "diamond"),
    ("#a8467f", [9, 3], "cross"),
    ("#a66f00", [10, 3, 2, 3], "circle"),
    ("#00785a", [2, 2], "square"),
]


def look(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The colour, dash and mark of each name, for matplotlib's `plot`: a controller's own, the others' in turn.

    >>> look(["rcs"])["rcs"]["color"]
    '#0067a5'
    """
    looks: dict[str, dict[str, Any]] = {}
    others = 0
    for name in names:
        if name in looks:
            continue
        found = colour(name) or colour(name.split(":")[0])
        if found is None:
            found = _OTHERS[others % len(_OTHERS)]
            others += 1
        hue, dash, mark = found
        # Dashes are CSS pixels at a line of 2 px; matplotlib's are in line widths.
        style = (0, [length / 2 for length in dash]) if len(dash) else "-"
        looks[name] = {"color": hue, "linestyle": style, "marker": _MARKS[mark]}
    return looks


def figure() -> tuple[Figure, Axes]:
    """An empty figure and its axes; Jupyter shows such a figure where it is a cell's last value, whatever the backend."""
    from matplotlib.figure import Figure

    class Shown(Figure):
        def _repr_png_(self) -> bytes:
            image = io.BytesIO()
            self.savefig(image, format="png", dpi=110)
            return image.getvalue()

    empty = Shown(figsize=(7, 4), layout="constrained")
    return empty, empty.subplots()


def _axes(ax: Axes | None) -> tuple[Figure, Axes]:
    return figure() if ax is None else (ax.get_figure(root=True), ax)


def rates(results: Results, *, seed: int | None = None, ax: Axes | None = None) -> Figure:
    """Each flow's throughput over time, of one seed: the first, if none is named."""
    shown, axes = _axes(ax)
    series = results.table("series")
    chosen = results.seeds[0] if seed is None else seed
    if chosen not in results.seeds:
        raise ValueError(f"seed {chosen} was not run; there are {results.seeds}")
    lines: dict[str, tuple[list[float], list[float]]] = {}
    for at, of, flow, bps in zip(
        series["t_s"], series["seed"], series["flow"], series["throughput_bps"], strict=True
    ):
        if of == chosen and bps is not None:
            times, values = lines.setdefault(flow, ([], []))
            times.append(at)
            values.append(bps / 1000)
    controllers = dict(zip(results.table("flows")["flow"], results.table("flows")["controller"], strict=True))
    looks = look(controllers[flow] for flow in lines)
    for flow, (times, values) in lines.items():
        style = {**looks[controllers[flow]], "marker": None}
        axes.plot(times, values, label=f"{flow} ({controllers[flow]})", **style)
    axes.set(xlabel="time [s]", ylabel="throughput [kbit/s]", title=f"{results.scenario.name}, seed {chosen}")
    axes.set_ylim(bottom=0)
    axes.legend()
    return shown


def compared(
    results: Mapping[str, Results], group: str, metric: str, *, label: str | None = None, ax: Axes | None = None
) -> Figure:
    """One number of a group under each of several controllers, the mean over the seeds with its 95 % interval."""
    shown, axes = _axes(ax)
    looks = look(results)
    for place, (name, result) in enumerate(results.items()):
        mean, interval = result.mean(group, metric)
        low, high = interval or (mean, mean)
        axes.errorbar(
            [mean], [place], xerr=[[mean - low], [high - mean]], color=looks[name]["color"],
            marker=looks[name]["marker"], capsize=4,
        )  # fmt: skip
    axes.set_yticks(range(len(results)), list(results))
    axes.invert_yaxis()
    axes.set(xlabel=label or metric, title=f"{group}: mean and 95 % interval over the seeds")
    return shown
