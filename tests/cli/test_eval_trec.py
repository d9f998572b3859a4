"""``apsvm eval --qrels --run``: trec_eval's published averages, and what goes wrong with its files."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path

import numpy as np
import pytest
from over import over

PUBLISHED = Path(__file__).parents[1] / "metrics" / "trec_eval"
FILES = ("--qrels", PUBLISHED / "qrels.test", "--run", PUBLISHED / "results.test")
USUAL = {
    "AP": "map", "nDCG": "ndcg", "nDCG@10": "ndcg_cut_10", "P@5": "P_5", "P@10": "P_10", "R@100": "recall_100",
    "RR": "recip_rank", "Rprec": "Rprec", "bpref": "bpref",
}  # fmt: skip


def test_published_figures(run):
    found = json.loads(run("eval", *FILES, "--per-query", "--json").stdout)
    published = {(q, m): v for m, q, v in map(str.split, (PUBLISHED / "out.test.aq").read_text().splitlines())}
    assert list(found["metrics"]) == list(USUAL)
    for ours, theirs in USUAL.items():
        assert f"{found['metrics'][ours]:.4f}" == published["all", theirs]
        for query in ("301", "302", "303"):
            assert f"{found['per_query'][query][ours]:.4f}" == published[query, theirs]
    assert (found["positives"], found["queries"], found["ties"]) == (561, 3, "docno")


def test_text_of_two_runs(run, tmp_path):
    """The second run has the first's documents of two queries, and one that nobody judged."""
    lines = (PUBLISHED / "results.test").read_text().splitlines()
    other = tmp_path / "other"
    other.write_text("\n".join([line for line in lines if not line.startswith("303")] + ["9 Q0 x 1 1 t"]) + "\n")
    options = ("--run", other, "--compare", "--confidence", "0.9", "-m", "AP", "-m", "P@10")
    text = run("eval", *FILES, *options).stdout
    assert "AP           +0.000000" in text
    # The means of the summary are over other queries than those of the comparison.
    both = json.loads(run("eval", *FILES, *options, "--json", "--per-query").stdout)["systems"]
    there = both[str(other)]["metrics"]["AP"]
    assert there != pytest.approx(both[str(FILES[-1])]["metrics"]["AP"])
    assert "other against" in text
    assert "over the queries that both have" in text
    (line,) = (line for line in text.splitlines() if line.startswith("AP") and "+0.000000" in line)
    assert line.split()[-3:] == ["2", f"{there:.6f}", f"{there:.6f}"]
    assert both[str(other)]["against_first"]["AP"]["queries"] == 2
    assert "other: 2 averaged; 1 missing, 1 not judged" in text
    assert "results.test: 3 averaged; 0 missing, 0 not judged" in text
    assert "rule: docno" in text
    complete = json.loads(run("eval", *FILES, "--run", other, "--complete", "-m", "AP", "--json").stdout)["systems"]
    usual = json.loads(run("eval", *FILES, "--run", other, "-m", "AP", "--json").stdout)["systems"]
    assert complete[str(other)]["metrics"]["AP"] == pytest.approx(usual[str(other)]["metrics"]["AP"] * 2 / 3, rel=1e-12)
    assert complete[str(FILES[-1])] == usual[str(FILES[-1])]


def test_ties_and_grades(run, tmp_path):
    (tmp_path / "q").write_text("1 0 a 2\n1 0 b 0\n1 0 c 1\n")
    (tmp_path / "r").write_text("1 Q0 a 1 1.0 t\n1 Q0 b 2 1.0 t\n")
    files = ("--qrels", tmp_path / "q", "--run", tmp_path / "r", "-m", "RR", "-m", "R@2", "--json")
    for ties, expected in ((None, 1 / 2), ("docno", 1 / 2), ("block", 3 / 4), ("pessimistic", 1 / 2)):
        found = json.loads(run("eval", *files, *(("--ties", ties) if ties else ())).stdout)
        assert found["metrics"] == pytest.approx({"RR": expected, "R@2": 1 / 2})
    found = json.loads(run("eval", *files, "--relevant-from", 2).stdout)
    assert found["metrics"]["R@2"] == 1.0


def test_bad_files(run, tmp_path):
    (tmp_path / "q").write_text("1 0 a 1\n1 0 b x\n")
    done = run("eval", "--qrels", tmp_path / "q", "--run", PUBLISHED / "results.test", code=65)
    assert done.stderr == f"apsvm: error: {tmp_path / 'q'}:2: expected an integer grade, found 'x'\n"
    (tmp_path / "r").write_text("1 Q0 a 1 1 t\n1 Q0 a 1 1 t\n")
    done = run("eval", "--qrels", PUBLISHED / "qrels.test", "--run", tmp_path / "r", code=65)
    assert "r:2: document 'a' is retrieved twice for query '1', first on line 1" in done.stderr
    (tmp_path / "r").write_text("1 Q0 a 1 1 t\n")
    done = run("eval", "--qrels", PUBLISHED / "qrels.test", "--run", tmp_path / "r", code=65)
    assert done.stderr.endswith(f": none of its 1 queries is among the 3 of {PUBLISHED / 'qrels.test'}\n")
    done = run("eval", "--qrels", PUBLISHED / "qrels.test", "--run", tmp_path / "nowhere", code=66)
    assert "cannot read" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--qrels", "q"),
        ("--run", "r"),
        ("--qrels", "q", "--run", "r", "--model", "m"),
        ("--qrels", "q", "--run", "r", "--ties", "file"),
        ("--qrels", "q", "--run", "r", "-k", "3"),
        ("--qrels", "-", "--run", "-"),
        ("--qrels", "q", "--run", "r", "--compare"),
    ],
    ids=" ".join,
)
def test_bad_options(arguments, run):
    assert "Error: " in run("eval", *arguments, code=2).stderr


def test_a_run_of_other_documents(run, tmp_path):
    """A run that calls its documents otherwise has figures of 0, and is not passed over in silence."""
    (tmp_path / "q").write_text("1 0 a 1\n1 0 b 0\n2 0 a 1\n")
    files = ("--qrels", tmp_path / "q", "--run", tmp_path / "r")
    for documents, question in (("12", "row numbers?"), ("xy", "alike?")):
        lines = [f"{query} Q0 {name} 1 {-at}.5 t\n" for query in (1, 2, 9) for at, name in enumerate(documents)]
        (tmp_path / "r").write_text("".join(lines))
        done = run("eval", *files, "-m", "AP")
        assert f"none of the 4 documents that {tmp_path / 'r'} retrieved for the queries of" in done.stderr
        assert question in done.stderr
        assert "documents    4 retrieved, 4 not judged" in done.stdout
    (tmp_path / "r").write_text("1 Q0 a 1 1 t\n1 Q0 c 1 2 t\n")
    done = run("eval", *files, "-m", "AP")
    assert done.stderr == ""
    assert "documents    2 retrieved, 1 not judged" in done.stdout


LETOR = [
    "2 qid:10 1:.5 2:.1 #docid = GX029-35-5894638 inc = 0.01 prob = 0.13\n",
    "0 qid:10 1:.1 2:.4 # docid = GX2\n",
    "# only a comment, docid = nobody\n",
    "1 qid:7 1:.4 2:.2 #DOCID=ä3\n",
    "0 qid:7 1:.2 #judge docid=GX2\n",
]


@pytest.fixture
def letor_model(run, tmp_path):
    (tmp_path / "letor").write_text("".join(LETOR))
    run("train", tmp_path / "letor", tmp_path / "m", "--loss", "ndcg", "-q")
    return tmp_path / "m"


def documents_of(run, data, model, expected, **more):
    done = run("predict", data, model, "--trec-run", "t", **more)
    source = "<stdin>" if data == "-" else data
    assert done.stderr == f"apsvm: {source}: documents are called by {expected}\n"
    return [tuple(line.split()[::2][:2]) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("compress", [bytes, gzip.compress, lzma.compress])
def test_documents_of_letor(compress, run, letor_model, tmp_path):
    path = tmp_path / "data"
    path.write_bytes(compress("".join(LETOR).encode()))
    found = documents_of(run, path, letor_model, "the docid of their comments")
    assert set(found) == {("10", "GX029-35-5894638"), ("10", "GX2"), ("7", "ä3"), ("7", "GX2")}
    top = run("predict", path, letor_model, "--top", "2").stdout
    assert [tuple(line.split("\t")[:2]) for line in top.splitlines()] == found


def test_documents_that_comments_do_not_name(run, letor_model, tmp_path):
    path, numbers = tmp_path / "data", {("10", "1"), ("10", "2"), ("7", "3"), ("7", "4")}
    called, text = "their rows' numbers, from 1", "".join(LETOR)
    for old, new, why in (
        ("#DOCID=", "#", "not every row has a comment # docid = …"),
        ("GX2", "GX029-35-5894638", "in a query two of their docids are the same"),
    ):
        path.write_text(text.replace(old, new))
        assert set(documents_of(run, path, letor_model, f"{called}: {why}")) == numbers
    why = "comments (# docid = …) are read of files alone"
    assert set(documents_of(run, "-", letor_model, f"{called}: {why}", input=text.encode())) == numbers


def test_documents_that_are_bags(run, tmp_path):
    """Of a bag that its best row decides the docid is that row's; of a pooled one there is none."""
    rng = np.random.default_rng(2)
    lines = [
        f"{bag % 2} qid:{bag // 4} bag:{bag} 1:{rng.normal(bag % 2):.3f} # docid = D{bag}_{row}\n"
        for bag in range(16)
        for row in range(3)
    ]
    data, options = tmp_path / "bags", ("-q", "--bound", "hinge", "-C", "1")
    data.write_text("".join(lines))
    run("train", data, tmp_path / "latent", "--latent", "--start", "bag-means", *options)
    found = dict(map(reversed, documents_of(run, data, tmp_path / "latent", "the docid of their comments")))
    deciding = [
        int(line.split()[1]) for line in run("predict", data, tmp_path / "latent", "--which").stdout.splitlines()
    ]
    assert found == {f"D{bag}_{row - 1 - 3 * bag}": str(bag // 4) for bag, row in enumerate(deciding)}
    run("train", data, tmp_path / "pooled", "--pool", "mean", *options)
    called = "their bags' numbers, as bag:INT"
    numbers = documents_of(run, data, tmp_path / "pooled", f"{called}: they are bags, and comments are of rows")
    assert {name for _, name in numbers} == {f"bag:{bag}" for bag in range(16)}


@over("query", ["q\x1b[31m", "q\x1b]0;title\x07", "q\x9b31m", "q\u202e"])
def test_queries_of_foreign_files_move_no_cursor(query, run, tmp_path):
    (tmp_path / "qrels").write_text(f"{query} 0 a 1\n{query} 0 b 0\n")
    (tmp_path / "run").write_text(f"{query} Q0 a 1 2 tag\n{query} Q0 b 2 1 tag\n")
    files = ("--qrels", tmp_path / "qrels", "--run", tmp_path / "run", "--per-query")
    for options in ((), ("--json",)):
        text = run("eval", *files, *options).stdout
        assert all(character.isprintable() or character == "\n" for character in text)
    assert list(json.loads(text)["per_query"]) == [query]
