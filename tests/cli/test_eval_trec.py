"""``apsvm eval --qrels --run``: trec_eval's published averages, and what goes wrong with its files."""

from __future__ import annotations

import json

import pytest

USUAL = {
    "AP": "map", "nDCG": "ndcg", "nDCG@10": "ndcg_cut_10", "P@5": "P_5", "P@10": "P_10", "R@100": "recall_100",
    "RR": "recip_rank", "Rprec": "Rprec", "bpref": "bpref",
}  # fmt: skip


@pytest.fixture
def files(trec_samples):
    return "--qrels", trec_samples / "qrels.test", "--run", trec_samples / "results.test"


def test_published_figures(files, trec_samples, run):
    found = json.loads(run("eval", *files, "--per-query", "--json").stdout)
    published = {(q, m): v for m, q, v in map(str.split, (trec_samples / "out.test.aq").read_text().splitlines())}
    assert list(found["metrics"]) == list(USUAL)
    for ours, theirs in USUAL.items():
        assert f"{found['metrics'][ours]:.4f}" == published["all", theirs]
        for query in ("301", "302", "303"):
            assert f"{found['per_query'][query][ours]:.4f}" == published[query, theirs]
    assert (found["positives"], found["queries"], found["ties"]) == (561, 3, "docno")


def test_bad_files(files, run, tmp_path):
    (tmp_path / "q").write_text("1 0 a 1\n1 0 b x\n")
    assert f"{tmp_path / 'q'}:2: " in run("eval", "--qrels", tmp_path / "q", *files[2:], code=65).stderr
    (tmp_path / "r").write_text("1 Q0 a 1 1 t\n1 Q0 a 1 1 t\n")
    assert "r:2: document 'a'" in run("eval", *files[:2], "--run", tmp_path / "r", code=65).stderr
    (tmp_path / "r").write_text("1 Q0 a 1 1 t\n")
    assert "none of its 1 queries" in run("eval", *files[:2], "--run", tmp_path / "r", code=65).stderr
    run("eval", *files[:2], "--run", tmp_path / "nowhere", code=66)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--qrels", "q"),
        ("--run", "r"),
        ("--qrels", "q", "--run", "r", "--model", "m"),
        ("--qrels", "q", "--run", "r", "--ties", "file"),
        ("--qrels", "-", "--run", "-"),
        ("--qrels", "q", "--run", "r", "--compare"),
    ],
    ids=" ".join,
)
def test_bad_options(arguments, run):
    assert "error: " in run("eval", *arguments, code=2).stderr


def test_a_run_of_other_documents(run, tmp_path):
    """A run that calls its documents otherwise has figures of 0, and is not passed over in silence."""
    (tmp_path / "q").write_text("1 0 a 1\n1 0 b 0\n2 0 a 1\n")
    files = ("--qrels", tmp_path / "q", "--run", tmp_path / "r")
    for documents in ("12", "xy"):
        lines = [f"{query} Q0 {name} 1 {-at}.5 t\n" for query in (1, 2, 9) for at, name in enumerate(documents)]
        (tmp_path / "r").write_text("".join(lines))
        done = run("eval", *files, "-m", "AP")
        assert "none of the 4 documents" in done.stderr
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


def documents_of(run, data, model, **more):
    done = run("predict", data, model, "--trec-run", "t", **more)
    return [tuple(line.split()[::2][:2]) for line in done.stdout.splitlines()]


def test_documents_that_comments_do_not_name(run, letor_model, tmp_path):
    path, numbers, text = tmp_path / "data", {("10", "1"), ("10", "2"), ("7", "3"), ("7", "4")}, "".join(LETOR)
    for old, new in (("#DOCID=", "#"), ("GX2", "GX029-35-5894638")):
        path.write_text(text.replace(old, new))
        assert set(documents_of(run, path, letor_model)) == numbers
    assert set(documents_of(run, "-", letor_model, input=text.encode())) == numbers
