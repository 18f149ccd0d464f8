"""Runs: the same numbers as the command's, tables that others read, progress, Ctrl-C."""

from __future__ import annotations

import os
import pickle
import signal
import threading

import fairpace
import polars
import pyarrow
import pytest


def test_the_same_scenario_and_seed_give_the_same_tables(scenario):
    one = fairpace.run(scenario, seeds=2, threads=1)
    two = fairpace.run(scenario, seeds=2, threads=2)
    assert one.tables == ["events", "flows", "link_series", "links", "series"]
    for name in one.tables:
        assert one.table(name).to_csv() == two.table(name).to_csv()


def test_three_libraries_read_one_result_alike(scenario):
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    series = fairpace.run(scenario, seeds=2).series
    frame = series.to_polars()
    table = series.to_arrow()
    plain = sum(x for x in series["throughput_bps"] if x is not None)
    assert plain > 0
    assert frame["throughput_bps"].sum() == pytest.approx(plain, rel=1e-12)
    import pyarrow.compute as pc

    assert pc.sum(table["throughput_bps"]).as_py() == pytest.approx(plain, rel=1e-12)
    assert series.to_pandas()["throughput_bps"].sum() == pytest.approx(plain, rel=1e-12)
    [(sum_of_it, flows)] = duckdb.sql("select sum(throughput_bps), count(distinct flow) from series").fetchall()
    assert sum_of_it == pytest.approx(plain, rel=1e-12)
    assert flows == 2
    assert frame["flow"].unique().sort().to_list() == ["file", "video"]
    assert len(series) == frame.height == table.num_rows


def test_a_library_reads_a_column_where_it_lies(scenario):
    series = fairpace.run(scenario).series

    def address(array):
        [*_, values] = array.buffers()
        return values.address

    once, again = (pyarrow.table(series)["throughput_bps"].chunk(0) for _ in range(2))
    assert address(once) == address(again)
    # polars hands on what it was handed.
    assert address(series.to_polars()["throughput_bps"].to_arrow(compat_level=polars.CompatLevel.newest())) == address(once)


def test_what_a_row_does_not_have_is_none(scenario):
    flows = fairpace.run(scenario).flows
    assert flows["flow"] == ["video", "file"]
    assert flows["timeouts"][0] is None
    assert flows["timeouts"][1] is not None
    assert flows["stopped"] == [None, None]
    with pytest.raises(KeyError, match="did you mean `throughput_bps`"):
        flows["throughput_bp"]


def test_means_come_with_intervals_over_the_seeds(scenario):
    results = fairpace.run(scenario, seeds=3)
    mean, (low, high) = results.mean("video", "throughput_bps")
    each = [bps for flow, bps in zip(results.flows["flow"], results.flows["throughput_bps"]) if flow == "video"]
    assert mean == pytest.approx(sum(each) / 3)
    assert low < mean < high
    with pytest.raises(fairpace.RunError, match="no group `vidio`"):
        results.mean("vidio", "throughput_bps")


def test_a_comparison_is_one_result_per_controller(scenario):
    both = fairpace.compare(scenario, ["rcs", "rap:fine_grain=on"], seeds=2)
    assert list(both) == ["rcs", "rap:fine_grain=on"]
    assert both["rcs"].flows["controller"][0] == "rcs"
    with pytest.raises(fairpace.ScenarioError):
        fairpace.compare(scenario, ["rcs", "nonsense"])


def test_a_folder_is_saved_with_its_report_and_not_overwritten(scenario, tmp_path):
    results = fairpace.run(scenario)
    report = results.save(tmp_path / "results")
    assert report.read_text().startswith("<!DOCTYPE html>")
    assert (tmp_path / "results" / "flows.csv").read_text() == results.flows.to_csv()
    other = fairpace.run(scenario.with_controller("rap"))
    with pytest.raises(fairpace.FolderError, match="is not empty"):
        other.save(tmp_path / "results")
    assert (tmp_path / "results" / "flows.csv").read_text() == results.flows.to_csv()
    other.save(tmp_path / "results", force=True)


def test_progress_is_told_and_what_it_raises_ends_the_run(scenario):
    seen = []
    fairpace.run(scenario, seeds=4, progress=lambda done, total, what: seen.append((done, total)))
    assert seen[-1] == (4, 4)

    def refuse(done, total, what):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        fairpace.run(scenario, seeds=200, progress=refuse)


def test_ctrl_c_ends_a_long_run(scenario):
    long = fairpace.Scenario(**{**scenario.to_dict(), "duration": "100000 s"})
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        fairpace.run(long, seeds=4)


def test_other_threads_run_meanwhile(scenario):
    longer = fairpace.Scenario(**{**scenario.to_dict(), "duration": "2000 s"})
    counted = 0
    done = threading.Event()

    def count():
        nonlocal counted
        while not done.wait(0.001):
            counted += 1

    thread = threading.Thread(target=count)
    thread.start()
    fairpace.run(longer, series=False, events=False)
    done.set()
    thread.join()
    assert counted > 5


def test_jupyter_shows_scenarios_results_and_claims(scenario):
    assert "controller = &quot;" not in scenario._repr_html_() and 'controller = "rcs"' in scenario._repr_html_()
    results = fairpace.run(scenario)
    assert results._repr_html_().count("<tr>") == 1 + min(10, len(results.metrics))
    claims = fairpace.reproduce("lossy.fig3", quick=True)
    assert claims._repr_html_().startswith("<p>&lt;Reproduction: ") and "<table>" in claims._repr_html_()
    with pytest.raises(ValueError, match="`seeds` is 0"):
        fairpace.reproduce("lossy.fig3", seeds=0)
    with pytest.raises(ValueError, match="give `seeds` or `quick`"):
        fairpace.reproduce("lossy.fig3", seeds=3, quick=True)


def test_seeds_without_bound_are_refused(scenario):
    with pytest.raises(ValueError, match="at most 100000"):
        fairpace.run(scenario, seeds=10**12)


def test_no_seeds_are_refused(scenario):
    with pytest.raises(ValueError, match="`seeds` is 0"):
        fairpace.run(scenario, seeds=0)


def test_a_figure_of_a_paper_is_reproduced():
    result = fairpace.reproduce("rcs.fig12", quick=True)
    assert len(result.claims) > 0
    assert set(result.claims["verdict"]) <= {"holds", "fails", "not decided"}
    assert len(result.points) > 0
    with pytest.raises(fairpace.RunError) as refused:
        fairpace.reproduce("rcs.fig999")
    assert "fairpace list experiments" in refused.value.hint
    assert ("rcs.fig12", dict(fairpace.experiments())["rcs.fig12"]) in fairpace.experiments()


def test_figures_are_there_without_an_import_of_their_own():
    assert callable(fairpace.plots.rates)
    with pytest.raises(AttributeError, match="no attribute 'plot'"):
        fairpace.plot  # noqa: B018


def test_an_argument_of_another_kind_is_named_with_what_to_write(scenario):
    with pytest.raises(TypeError, match=r"'geo.toml' is no fairpace.Scenario: .*Scenario.load"):
        fairpace.run("geo.toml")
    with pytest.raises(TypeError, match="is no fairpace.Scenario"):
        fairpace.sweep({"duration": "5 s"}, {"path.rate": ["1 Mbit/s"]})
    with pytest.raises(TypeError, match="write a list of names"):
        fairpace.compare(scenario, "rcs")
    with pytest.raises(TypeError, match="names no column: a column is had by its name"):
        fairpace.run(scenario).flows[0:2]


@pytest.mark.parametrize("given", [{"seeds": -1}, {"threads": -1}])
def test_a_count_below_zero_is_refused_in_words(scenario, given):
    with pytest.raises(ValueError, match="-1 is no count: write a whole number from 0 on"):
        fairpace.run(scenario, **given)


def test_a_table_goes_to_another_process_and_results_say_how(scenario):
    results = fairpace.run(scenario, seeds=2)
    for name in results.tables:
        table = results.table(name)
        there = pickle.loads(pickle.dumps(table))
        assert there.to_csv() == table.to_csv()
        assert there.to_arrow().equals(table.to_arrow())
    with pytest.raises(TypeError, match="results are neither pickled nor copied: take a table"):
        pickle.dumps(results)


def test_the_rate_of_tpba_is_on_the_wire_as_in_the_command():
    # TCP fills the bottleneck of 400 kbit/s with segments of 552 B, 512 of them payload, and UDP goes on at that rate in packets of 104 B, 64 of
    # them payload. Were the rate TCP's stream, it would be 371 kbit/s.
    scenario = fairpace.Scenario(
        name="unit",
        duration="9 s",
        safety="paper",
        sample="1 s",
        ack_size="40 B",
        path={"rate": "400 kbit/s", "rtt": "20 ms", "queue": {"kind": "drop-tail", "capacity": "40 pkt"}},
        flows=[
            {
                "name": "media",
                "controller": "tpba",
                "parameters": {"t_tcp": "1 s", "epsilon": "1 Gbit/s", "t_running": "1 min"},
                "packet_size": "104 B",
                "source": {"kind": "adus", "packets": 1},
                "tcp": {"max_window": 16, "segment_size": "552 B"},
            }
        ],
    )
    series = fairpace.run(scenario).series
    states, rates, came = (series[name][-4:] for name in ("state", "target_rate_bps", "throughput_bps"))
    assert states == ["running"] * 4
    assert rates == pytest.approx([397_440] * 4, rel=0.01)
    assert sum(came) / 4 == pytest.approx(rates[0], rel=0.02)
