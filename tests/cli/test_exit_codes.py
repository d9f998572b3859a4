"""Message and exit code of each failure; no file is lost."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command import OLD_MODEL
from over import over
from pages import ROOT

from apsvm import load_model
from apsvm.cli import shared

GOOD = "1 1:1 2:1\n-1 1:2\n1 1:1.5\n-1 1:1.2 2:3\n"


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data"
    path.write_text(GOOD)
    return path


@pytest.fixture(scope="session")
def small(run, folder):
    data, model = folder / "small.svm", folder / "small.model"
    data.write_text(GOOD)
    run("train", "-q", data, model)
    return data, model


#: Options that are refused, and the words of the refusal that matter.
REFUSED = {
    "-C 0": "above 0",
    "-C nan": "'nan'",
    "-e 0": "epsilon",
    "--time-limit -1": "'-1'",
    "--max-iterations 0": "0",
    "--keep-easy 100.5": "100.5",
    "--bias inf": "'inf'",
    "--positive-label nan": "'nan'",
    f"--threads {10**20}": f"{10**20}",
    "--max-features 0": "0",
    "--seed -1": "-1",
    "--loss map": "instead: --loss ap",
    "--loss rbp(2)": "0 < rho < 1",
    "--loss ndcg@ten": "'ten'",
    "-C 1,2": "apsvm cv",
    "--features cubes": "cubes",
    "--log-ranks": "--log-ranks needs --log",
    "--loss nowhere:Loss": "cannot import 'nowhere'",
    "--loss zero-one --query-weights weights": "--query-weights",
    "--positive-label 1 --relevant-from 1": "--relevant-from",
    "--oracle brute-force": "'brute-force'",
    "--qp simplex": "'simplex'",
    "--dtype float16": "'float16'",
    "--loss zero-one --oracle qs": "--oracle qs",
    "--loss zero-one --oracle appx": "--oracle appx",
}


def test_bad_options(data, run, tmp_path):
    """Exit code 2, and a line that names the option or its value; no file is written."""
    for options, words in REFUSED.items():
        done = run("train", data, "m", *options.split(), code=2)
        assert done.stderr.startswith("apsvm: error: ")
        assert (words in done.stderr, done.stderr.count("\n")) == (True, 1), options
        assert (done.stdout, os.listdir(tmp_path)) == ("", ["data"])
    assert run("trian", data, code=2).stderr == "apsvm: error: No such command 'trian'. Did you mean 'train'?\n"
    for words in ("nope", "train", "predict x", "export m"):
        assert "error: " in run(*words.split(), code=2).stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code"), [("predict {data} {model}", 0), ("train", 2), ("train {model}", 2), ("train nowhere", 66)]
)
def test_the_console_script_exits_as_the_command_ended(words, code, small, script, tmp_path):
    script(*words.format(data=small[0], model=small[1]).split(), code=code, cwd=tmp_path)


@over(
    "arguments",
    [
        ("train", "data", "data"),
        ("train", "data", "link"),
        ("train", "data", "m", "--log", "data"),
        ("train", "data", "new", "--log", "new"),
        ("train", "data", "new", "--log", "./new"),
        ("train", "data", "m", "--log", "link-to-m"),
        ("train", "data", "c.toml", "--config", "c.toml"),
        ("train", "data", "new", "--config", "c.toml", "--log", "c.toml"),
        ("train", "data", "-", "--log", "-"),
        ("train", "-"),
        ("predict", "data", "m", "data"),
        ("predict", "data", "m", "./m"),
        ("export", "m", "m", "--format", "liblinear"),
    ],
    ids=" ".join,
)
def test_an_output_that_is_another_file_of_the_run(arguments, small, run, tmp_path):
    contents = {"data": small[0].read_bytes(), "m": small[1].read_bytes(), "c.toml": b"C = 2\n"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "link").symlink_to("data")
    (tmp_path / "link-to-m").symlink_to("m")
    run(*arguments, code=2, cwd=tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in contents} == contents
    assert sorted(os.listdir(tmp_path)) == sorted([*contents, "link", "link-to-m"])


@pytest.mark.parametrize(
    ("options", "state", "iterations"),
    [
        (("--max-iterations", "2"), "iteration limit", 2),
        (("--time-limit", "0"), "time limit", 1),
    ],
    ids=["iterations", "time"],
)
def test_stopped_early_with_a_model(options, state, iterations, cancer, run, tmp_path):
    model = tmp_path / "m"
    done = run("train", cancer.path, model, *options, code=3)
    header = load_model(model).header
    assert header.state == state
    assert header.iterations == iterations
    assert header.certificate.gap > header.certificate.tolerance
    assert f"apsvm: {state} after" in done.stderr


@over(
    "content, place, words",
    [
        (b"1 1:1\n-1 1:x\n", ":2:6: ", "'x'"),
        (b"1 1:1\n-1 1:1e999\n", ":2:6: ", "overflow"),
        (b"1 1:1\n-1 2:1 1:2\n", ":2:8: ", "increasing order"),
        (b"1 1:1\n\n# x\nyes 1:2\n", ":4:1: ", "'yes'"),
        (b"1 qid:1 1:1\n-1 1:2\n", ":2:4: ", "expected qid"),
        (b"1 1:1\0\n", ":1:6: ", "NUL"),
        (b"", ": ", "the file is empty"),
        (b"a,b,label\n", ": ", "below the names"),
        (b"1 1:1\n", ": ", "no negative rows"),
        (b"1 1:1\n-1 99999999999:2\n", ": ", "stray index"),
        (b"1 1:1e308 2:1e308\n-1 1:-1e308\n1 2:1e308\n-1 2:-1e308\n", ": ", "too large"),
        (b"\x1f\x8b\x08junk", ": ", "gzip"),
        (b"PK\x03\x04...", ": ", "zip archive"),
    ],
)
def test_bad_data(content, place, words, run, tmp_path):
    data, model = tmp_path / "data", tmp_path / "m"
    data.write_bytes(content)
    model.write_text(OLD_MODEL)
    done = run("train", "-q", data, model, code=65)
    assert done.stderr.startswith(f"apsvm: error: {data}{place}")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert model.read_text() == OLD_MODEL


def one_bit(content):
    at = len(content) // 2
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


@over(
    "arguments, damage",
    [
        (("predict", "{data}", "{bad}"), one_bit),
        (("predict", "{data}", "{bad}"), lambda content: content[:-1]),
        (("eval", "{data}", "--model", "{bad}"), one_bit),
        (("info", "{bad}"), lambda content: b""),
        (("info", "{bad}"), one_bit),
        (("export", "{bad}", "--format", "liblinear"), one_bit),
        (("export", "{bad}", "--format", "liblinear"), lambda content: GOOD.encode()),
    ],
)
def test_damaged_model(arguments, damage, small, run, tmp_path):
    bad = tmp_path / "bad"
    bad.write_bytes(damage(small[1].read_bytes()))
    done = run(*(word.format(data=small[0], bad=bad) for word in arguments), code=65)
    assert done.stderr.startswith(f"apsvm: error: {bad}: ")
    assert "not an apsvm model" in done.stderr
    assert done.stdout == ""


@over(
    "arguments",
    [
        ("train", "nowhere"),
        ("train", ".", "m"),
        ("predict", "nowhere", "{model}"),
        ("predict", "{data}", "nowhere"),
        ("eval", "{data}", "--scores", "nowhere"),
        ("info", "nowhere"),
    ],
)
def test_no_input(arguments, small, run, tmp_path):
    data, model = small
    done = run(*(word.format(data=data, model=model) for word in arguments), code=66, cwd=tmp_path)
    assert done.stderr.startswith(f"apsvm: error: cannot read {'.' if '.' in arguments else 'nowhere'}: ")
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@over(
    "what, out",
    [
        *((what, out) for what in ("model", "log") for out in ("missing/x", "file/x", "folder", "/dev/full")),
        ("scores", "missing/x"),
        ("scores", "/dev/full"),
        ("export", "folder"),
        ("export", "/dev/full"),
    ],
)
def test_cannot_write(what, out, small, run, tmp_path):
    data, model = small
    (tmp_path / "file").write_text("a file")
    (tmp_path / "folder").mkdir()
    arguments = {
        "model": ("train", "-q", data, out),
        "log": ("train", "-q", data, "m", "--log", out),
        "scores": ("predict", data, model, out),
        "export": ("export", model, out, "--format", "liblinear"),
    }[what]
    done = run(*arguments, code=74, cwd=tmp_path)
    assert done.stderr.startswith(f"apsvm: error: cannot write {out}: ")
    assert done.stderr.count("\n") == 1
    # The model of a run whose log has no room may be written or not.
    assert sorted({*os.listdir(tmp_path)} - ({"m"} if what == "log" else set())) == ["file", "folder"]


def test_an_error_is_one_line(run, tmp_path):
    assert "cannot read no\\nsuch: " in run("train", "no\nsuch", code=66, cwd=tmp_path).stderr


def test_an_unwritable_place_is_found_out_before_reading(run, tmp_path):
    bad = tmp_path / "bad"
    bad.write_text("not data\n")
    run("train", bad, tmp_path / "missing" / "m", code=74)
    run("train", bad, tmp_path / "m", "--log", tmp_path / "missing" / "log", code=74)
    run("predict", bad, tmp_path / "no model", tmp_path / "missing" / "scores", code=74)
    run("train", bad, tmp_path / ("m" * 256), code=74)


@over("name", ["ünï ☃.svm", "m" * 249, "two\nlines.svm", "--help", os.fsdecode(b"\xff.svm")])
def test_strange_names(name, small, run, tmp_path):
    (tmp_path / name).write_bytes(small[0].read_bytes())
    run("train", "--", name, cwd=tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted([name, f"{name}.model"])
    assert load_model(tmp_path / f"{name}.model").header.state == "converged"


def commands(data: Path, model: Path) -> dict[str, list[str]]:
    """A command for each way to write to standard output."""
    return {
        "predict": ["predict", str(data), str(model)],
        "info": ["info", str(model)],
        "verify": ["verify", str(model), str(data)],
        "train": ["train", "-q", str(data), "-"],
        "log": ["train", "-q", str(data), os.devnull, "--log", "-"],
        "help": ["--help"],
    }


OUTPUTS = list(commands(Path(), Path()))


@pytest.mark.slow
@pytest.mark.parametrize("name", OUTPUTS)
def test_nobody_reads_standard_output(name, small, script):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = script(*commands(*small)[name], stdout=writer, code=141)
    finally:
        os.close(writer)
    assert done.stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", OUTPUTS)
def test_standard_output_is_full(name, small, script):
    with open("/dev/full", "wb") as full:
        done = script(*commands(*small)[name], stdout=full, code=74)
    assert done.stderr.startswith("apsvm: error: cannot write ")
    assert done.stderr.count("\n") == 1


def shell(redirection, command, *arguments, **more):
    """The command with a standard stream closed."""
    line = ["sh", "-c", f'exec "$@" {redirection}', "sh", *command, *map(str, arguments)]
    return subprocess.run(line, check=False, capture_output=True, timeout=60, encoding="utf-8", **more)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["predict", "info", "train", "log"])
def test_standard_output_is_closed(name, small, command, environment):
    done = shell(">&-", command, *commands(*small)[name], env=environment())
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr
    assert done.returncode == 74


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [("train", "-", "m"), ("info", "-"), ("eval", "{data}", "--scores", "-"), ("predict", "-", "{model}")],
    ids=" ".join,
)
def test_standard_input_is_closed(arguments, small, command, environment, tmp_path):
    data, model = small
    words = [word.format(data=data, model=model) for word in arguments]
    done = shell("<&-", command, *words, env=environment(), cwd=tmp_path)
    assert done.returncode == 66, done.stderr
    assert "standard input" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_nobody_reads_standard_error(redirection, small, command, environment, tmp_path):
    data, model = small
    ours = tmp_path / "m"
    assert shell(redirection, command, "train", data, ours, env=environment()).returncode == 0
    assert ours.read_bytes() == model.read_bytes()
    assert shell(redirection, command, "train", tmp_path / "nowhere", ours, env=environment()).returncode == 66
    done = shell(redirection, command, "train", "-C", "0", data, ours, env=environment())
    assert (done.returncode, done.stdout) == (2, "")


def test_the_end_of_the_process_leaves_nothing_undone():
    """It ends at once, and yet what is registered for the end is done, and what was printed arrives."""
    script = (
        "import atexit, sys; from apsvm.cli import main; "
        "atexit.register(print, 'registered'); sys.stdout.write('printed '); "
        "sys.argv = ['apsvm', *sys.argv[1:]]; main()"
    )
    for arguments, code in ((["--version"], 0), (["nonsense"], 2)):
        done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == code
        assert done.stdout.startswith("printed ")
        assert done.stdout.endswith("registered\n")
        assert (code == 0) == (done.stderr == "")


def test_as_a_module():
    done = subprocess.run([sys.executable, "-m", "apsvm", "nothing"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("apsvm: error: No such command 'nothing'.")


def test_the_page_says_what_every_code_means():
    text = (ROOT / "docs" / "training.md").read_text(encoding="utf-8").partition("| exit code | |")[2]
    rows = re.findall(r"^\| ([\d, ]+) \|", text, re.MULTILINE)
    codes = {int(code) for row in rows for code in row.split(",")}
    assert codes == {0, 2, *(value for name, value in vars(shared).items() if name.isupper() and type(value) is int)}


@over(
    "arguments, word",
    [
        (("--eval_at", "5"), "ndcg@10"),
        (("--n_estimators", "9"), "rules"),
        (("--objective", "lambdarank"), "--loss ndcg"),
        (("--loss", "lambdarank"), "--loss ndcg"),
        (("--valid", "v.svm"), "apsvm eval"),
        (("--positive-label", "1", "--relevant-from", "1"), "--positive-label does not go with --relevant-from"),
        (("--los", "ap"), "did you mean --loss?"),
        (("--label-colum", "y"), "did you mean --label-column?"),
    ],
)
def test_words_of_other_programs_and_pairs_of_options(arguments, word, cancer, run, tmp_path):
    assert word in run("train", cancer.path, tmp_path / "m", *arguments, code=2).stderr.splitlines()[-1]


def test_a_log_spares_a_model(cancer, trained, run, tmp_path):
    content = trained(cancer).read_bytes()
    assert "is a model" in run("train", cancer.path, tmp_path / "m", "--log", trained(cancer), code=2).stderr
    assert trained(cancer).read_bytes() == content
