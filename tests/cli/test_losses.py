"""``--loss`` by any name, a user's own, grades, and what makes rows positive or queries heavy."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from apsvm import load_model

#: For what is about the hinge, or needs some model quickly: by default the bound is chosen.
HINGE = ("--bound", "hinge")

OWN = """
import numpy as np

class Mine:
    def weights(self, n_pos):
        return np.arange(1, n_pos + 1) / n_pos

    def discount(self, n):
        return 1.0 / np.arange(1, n + 1)

class Wavy(Mine):
    def discount(self, n):
        return 1.0 + np.sin(np.arange(n))
"""


@pytest.fixture
def graded(rng, tmp_path):
    """600 rows in 30 queries, grades 0..3."""
    groups = np.repeat(np.arange(30), 20)
    X = np.round(rng.normal(size=(600, 5)), 2)
    grades = np.clip(np.round(X[:, 0] + rng.normal(size=600)), 0, 3)
    path = tmp_path / "graded.svm"
    dump_svmlight_file(X, grades, str(path), zero_based=False, query_id=groups)
    return path


def test_ndcg_is_the_default_of_queries_with_grades(graded, run, tmp_path):
    named, default = tmp_path / "named", tmp_path / "default"
    run("train", *HINGE, "--loss", "ndcg", graded, named)
    assert "queries with grades: --loss ndcg" in run("train", *HINGE, graded, default).stderr
    assert np.array_equal(load_model(named).coef, load_model(default).coef)
    said = run("cv", *HINGE, "-C", 1, "--folds", 2, graded).stderr
    assert ": queries with grades: --metric 'nDCG(exp)@10' --loss ndcg\n" in said


def test_sizes_of_queries_beside_the_data(graded, run, tmp_path):
    """As LightGBM keeps them: DATA.query."""
    lines = graded.read_text().splitlines()
    qid = [line.split()[1] for line in lines]
    data = tmp_path / "rank.train"
    data.write_text("".join(line.replace(f" {query}", "") + "\n" for line, query in zip(lines, qid, strict=True)))
    sizes = [len(list(rows)) for _, rows in groupby(qid)]
    (tmp_path / "rank.train.query").write_text("\n".join(map(str, sizes)))
    said = run("train", *HINGE, data, tmp_path / "beside").stderr
    assert f"its queries are those of {data}.query" in said
    run("convert", data, tmp_path / "folder")
    for source, model in ((graded, "within"), (tmp_path / "folder", "converted")):
        run("train", *HINGE, source, tmp_path / model)
        assert np.array_equal(load_model(tmp_path / "beside").coef, load_model(tmp_path / model).coef)
    # Beside each of several files: the second part begins at a query.
    rows, cut = data.read_text().splitlines(keepends=True), sum(sizes[:3])
    for part, of_rows, of_sizes in (("part-1", rows[:cut], sizes[:3]), ("part-2", rows[cut:], sizes[3:])):
        (tmp_path / f"{part}.svm").write_text("".join(of_rows))
        (tmp_path / f"{part}.svm.query").write_text("\n".join(map(str, of_sizes)))
    run("train", *HINGE, tmp_path / "part-*.svm", tmp_path / "parts")
    assert np.array_equal(load_model(tmp_path / "beside").coef, load_model(tmp_path / "parts").coef)
    said = run("convert", tmp_path / "part-?.svm", tmp_path / "joined").stderr
    assert "part-1.svm.query: it is not used: where several files become one folder, queries stand in the rows" in said


def test_query_weights(graded, run, tmp_path):
    file = tmp_path / "weights"

    def coef(text, *more):
        file.write_text(text or "0 1\n")
        run(
            "train",
            "-q",
            *HINGE,
            graded,
            tmp_path / "m",
            "--relevant-from",
            1,
            "--query-weights",
            file,
            "-e",
            1e-6,
            *more,
        )
        return load_model(tmp_path / "m").coef

    plain = coef("3 1 # as all the others\n")
    doubled = coef("".join(f"{q} 2\n" for q in range(30)))
    first = coef("".join(f"qid:{q} {int(q == 0)}\n" for q in range(30)))
    np.testing.assert_allclose(plain, doubled, atol=1e-3)
    assert not np.allclose(plain, first, atol=1e-2)
    more = ("--oracle", "appx", "-B", 1)
    assert not np.allclose(coef("", *more), coef("".join(f"{q} {int(q == 0)}\n" for q in range(30)), *more), atol=1e-2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2\n3\n", "weights:2: expected a qid and a weight of at least 0, found '3'"),
        ("1 -2\n", "weights:1: expected a qid"),
        ("1 nan\n", "weights:1: expected a qid"),
        ("x 1\n", "weights: expected qids of"),
        ("1 1\n1 2\n", "weights:2: qid 1 has a weight already"),
        ("1 0\n", ": expected lines 'qid weight', at least one weight above 0, found none"),
        ("", ": expected lines 'qid weight', at least one weight above 0, found none"),
    ],
)
def test_bad_query_weights(graded, text, message, run, tmp_path):
    file = tmp_path / "weights"
    file.write_text(text)
    done = run("train", graded, tmp_path / "m", "--relevant-from", 1, "--query-weights", file, code=65)
    assert message in done.stderr
    assert not (tmp_path / "m").exists()


@pytest.mark.slow
def test_a_loss_of_ones_own(cancer, script, tmp_path):
    (tmp_path / "my_losses.py").write_text(OWN)
    script("train", "-q", *HINGE, cancer.path, tmp_path / "own", "--loss", "my_losses:Mine", "-C", 10, cwd=tmp_path)
    script("train", "-q", *HINGE, cancer.path, tmp_path / "ap", "-C", 10)
    own, ap = load_model(tmp_path / "own"), load_model(tmp_path / "ap")
    assert own.header.loss == "my_losses:Mine"
    # The same loss, by an oracle that may not bisect over ranks.
    assert own.header.certificate.primal == pytest.approx(ap.header.certificate.primal, rel=1e-3)
    done = script("train", cancer.path, tmp_path / "m", "--loss", "my_losses:Wavy", cwd=tmp_path, code=2)
    assert "the discount is increasing at position 1" in done.stderr
    assert "my_losses:Mine" in script(
        "train", cancer.path, tmp_path / "m", "--loss", "my_losses:Mien", cwd=tmp_path, code=2
    ).stderr  # fmt: skip
