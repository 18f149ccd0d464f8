"""Whatever the scenario: the same bytes again, and three ways to read a table that agree."""

from __future__ import annotations

import csv
import io

import fairpace
from hypothesis import given, settings
from hypothesis import strategies as st


@st.composite
def scenarios(draw) -> fairpace.Scenario:
    controller = st.sampled_from(["auto", "rcs", "rap", "tfrc", "aimd", "lda"])
    return fairpace.Scenario(
        seed=draw(st.integers(1, 2**31)),
        duration=f"{draw(st.integers(1, 8))} s",
        path={
            "rate": f"{draw(st.integers(100, 10_000))} kbit/s",
            "rtt": f"{draw(st.integers(0, 600))} ms",
            "loss": {"kind": "random", "p": draw(st.floats(0, 0.3))},
            "queue": {"kind": "drop-tail", "capacity": f"{draw(st.integers(1, 200))} pkt"},
        },
        flows=[{"name": f"flow {i}", "controller": draw(controller)} for i in range(draw(st.integers(1, 3)))],
    )


@settings(max_examples=40, deadline=None)
@given(scenarios())
def test_a_run_repeats_to_the_byte_and_its_tables_read_alike(scenario):
    results = fairpace.run(scenario)
    again = fairpace.run(fairpace.Scenario.parse(scenario.toml))
    for name in results.tables:
        table = results.table(name)
        assert table.to_csv() == again.table(name).to_csv()
        frame = table.to_polars()
        rows = list(csv.DictReader(io.StringIO(table.to_csv())))
        assert len(rows) == len(table) == frame.height
        for column in table.columns:
            kept = table[column]
            assert frame[column].to_list() == kept
            assert [row[column] != "" for row in rows] == [cell is not None for cell in kept]
    # The fastest link of them has 10 Mbit/s.
    assert all(0 <= bps <= 10.1e6 for bps in results.flows["throughput_bps"])
