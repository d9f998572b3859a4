"""``apsvm bench`` prints its tables, by a clock of the test's own."""

from __future__ import annotations

import itertools
import json
import types

import pytest


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Looks at it are 0.2 s apart, 0.3 s, 0.4 s, …: of several calls the first is the fastest."""
    looks = itertools.accumulate(itertools.count(1))
    monkeypatch.setattr("apsvm.cli.benchmarks.time", types.SimpleNamespace(perf_counter=lambda: next(looks) / 10))


HEADING = (
    "loss ap, 1 thread(s); milliseconds a call (times faster than greedy)\n"
    "      P         N   np.sort                greedy               search               select        search-select"
    "                   qs               bucket    r <= P   differ\n"
)
OF_TWO_SHIFTS = f"""\
normal scores, the positives' shifted by 1
{HEADING}\
      5        40   200.000     800.000 (   1.0x)   1400.000 (   0.6x)   2000.000 (   0.4x)   2600.000 (   0.3x\
)   3200.000 (   0.3x)   3800.000 (   0.2x)        16
      5        60  4400.000    5000.000 (   1.0x)   5600.000 (   0.9x)   6200.000 (   0.8x)   6800.000 (   0.7x\
)   7400.000 (   0.7x)   8000.000 (   0.6x)        21
normal scores, the positives' shifted by 5
{HEADING}\
      5        40  8600.000    9200.000 (   1.0x)   9800.000 (   0.9x)  10400.000 (   0.9x)  11000.000 (   0.8x\
)  11600.000 (   0.8x)  12200.000 (   0.8x)         1
      5        60 12800.000   13400.000 (   1.0x)  14000.000 (   1.0x)  14600.000 (   0.9x)  15200.000 (   0.9x\
)  15800.000 (   0.8x)  16400.000 (   0.8x)         2
"""


def without_differences(table):
    """The lines without what the last column says, which is rounding."""
    for line in table.splitlines():
        if line[:7].strip().isdigit():
            assert 0.0 <= float(line[-8:]) < 1e-12
            line = line[:-8]
        yield f"{line.rstrip()}\n"


def test_oracle(run, tmp_path):
    sizes = ("--positives", 5, "--negatives", 40, "--negatives", 60, "--shift", 1, "--shift", 5)
    printed = run("bench", "oracle", *sizes, "--json", tmp_path / "t.json").stdout
    assert "".join(without_differences(printed)) == OF_TWO_SHIFTS
    text = (tmp_path / "t.json").read_text()
    timings = json.loads(text)["timings"]
    assert text == json.dumps({"timings": timings}, indent=1) + "\n"
    assert timings[0] == {
        "oracle": "greedy", "loss": "ap", "threads": 1, "n_pos": 5, "n_neg": 40, "seconds": pytest.approx(0.8),
        "violating": 16, "shift": 1.0,
    }  # fmt: skip
    assert [(timing["shift"], timing["n_neg"], timing["violating"]) for timing in timings[::6]] == [
        (1.0, 40, 16), (1.0, 60, 21), (5.0, 40, 1), (5.0, 60, 2),
    ]  # fmt: skip
    alone = json.loads(run("bench", "oracle", *sizes, "--threads", 2, "--seed", 1, "--json", "-").stdout)["timings"]
    assert {timing["threads"] for timing in alone} == {2}
    assert [timing["violating"] for timing in alone[::6]] != [16, 21, 1, 2]


def test_oracle_on_data(cancer, trained, run, tmp_path):
    model = trained(cancer)
    printed = run("bench", "oracle", "--data", cancer.path, "--model", model, "--json", tmp_path / "t.json").stdout
    *heading, line = printed.splitlines(keepends=True)
    timings = json.loads((tmp_path / "t.json").read_text())["timings"]
    assert "".join(heading) == HEADING
    assert (line.split()[:2], line.split()[-2]) == (["212", "357"], str(timings[0]["violating"]))
    assert [(timing["n_pos"], timing["n_neg"]) for timing in timings] == [(212, 357)] * 6
    said = run("bench", "oracle", "--data", cancer.path, code=2).stderr
    assert said.endswith("\nError: --data and --model go together\n")


TRAINED = """\
{}: 80 x 4, 6 positive; {} thread(s)
  method                      C  test AP   seconds  / LinearSVC  iterations
  LinearSVC                   1   0.1797    0.8000         1.00
  LogisticRegression        100   0.1773    2.2000         2.75
  apsvm                     100   0.1773    2.8000         3.50           7
  apsvm cutting-plane        10   0.1773    3.6000         4.50          14
"""


def test_train(digits, run, write_rows, tmp_path):
    few = write_rows(tmp_path / "few.svm", digits.X[:120, 2:6], digits.labels[:120])
    printed = run("bench", "train", few, *digits.options).stdout
    assert [line.rstrip() for line in printed.splitlines()] == TRAINED.format(few, 1).splitlines()
    (tmp_path / "d").write_text("1 1:1\n" * 2 + "-1 1:2\n" * 3)
    said = run("bench", "train", tmp_path / "d", code=2).stderr
    assert said.endswith("\nError: a split needs at least three rows of each class\n")
    (tmp_path / "d").write_text("1 1:1\n" * 3 + "-1 1:2\n" * 3)
    assert (
        f"{tmp_path}/d: 4 x 1, 2 positive; 2 thread(s)\n"
        in run("bench", "train", tmp_path / "d", "--threads", 2).stdout
    )


def test_parse(cancer, run):
    megabytes = cancer.path.stat().st_size / 1e6
    assert run("bench", "parse", cancer.path).stdout == (
        f"{cancer.path}: {megabytes:.1f} MB\n"
        "  reader                     seconds     MB/s  times faster\n"
        f"  scikit-learn                 0.200 {megabytes / 0.2:>8.1f}           1.0\n"
        f"  apsvm, 1 thread(s)           0.400 {megabytes / 0.4:>8.1f}           0.5\n"
        f"  apsvm, 2 thread(s)           1.000 {megabytes / 1.0:>8.1f}           0.2\n"
    )
