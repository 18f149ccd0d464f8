"""Whatever the scenario: the same bytes again, and three ways to read a table that agree."""

from __future__ import annotations

import csv
import io
import random
from concurrent.futures import Future, ThreadPoolExecutor

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



class AnyOrder:
    """An executor that takes up any of the tasks that wait, and not the oldest."""

    def __init__(self, pool: ThreadPoolExecutor, seed: int):
        self.pool, self.random, self.waiting = pool, random.Random(seed), []

    def submit(self, perform, task):
        future: Future[bytes] = Future()
        self.waiting.append((future, perform, task))
        self.pool.submit(self.one)
        return future

    def one(self):
        future, perform, task = self.waiting.pop(self.random.randrange(len(self.waiting)))
        future.set_result(perform(task))


@settings(max_examples=15, deadline=None)
@given(scenarios(), st.integers(1, 3), st.integers(1, 2), st.randoms(use_true_random=False))
def test_a_sweep_is_the_runs_of_its_points_in_whatever_order(scenario, seeds, batch, chance):
    rates = [f"{chance.randint(200, 5_000)} kbit/s" for _ in range(chance.randint(1, 3))]
    vary = {"path.rate": rates, "path.rtt": ["10 ms", "200 ms"]}
    found = fairpace.sweep(scenario, vary, seeds=seeds, batch=batch)
    assert len(found) == 2 * len(set(rates)) and found.complete and found.failed == []
    with ThreadPoolExecutor(1) as pool:
        executor = AnyOrder(pool, chance.randint(0, 99))
        again = fairpace.sweep(scenario, vary, seeds=seeds, batch=batch, executor=executor)
    assert again.groups.to_csv() == found.groups.to_csv() and again.links.to_csv() == found.links.to_csv()
    # The links of a point are those of a run of its scenario.
    point = chance.randrange(len(found))
    alone = fairpace.run(found.scenario(point), seeds=seeds)
    links = found.links
    points = list(dict.fromkeys(links["point"]))
    rows = [row for row, name in enumerate(links["point"]) if name == points[point]]
    assert [links["utilization"][row] for row in rows] == alone.links["utilization"]
    assert [links["seed"][row] for row in rows] == alone.links["seed"]
