"""Bags on the command line: what is refused, what --pool makes of them, and what a model of bags does with rows."""

import shutil

import numpy as np
import pytest

from apsvm import load_any_model, load_model
from apsvm.selection import references

HINGE = ("--bound", "hinge")


def write(path, rows):
    lines = [f"{label} bag:{bag} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(x)) for label, bag, x in rows]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """40 bags of 1 to 6 rows, shuffled, the mean of whose first feature is higher where they are positive; and the rows
    as (label, bag, values), and the means (40, 3) in the order of the bags' first rows with the labels."""
    rng = np.random.default_rng(5)
    rows = []
    for bag in range(40):
        shift = np.array([1.0 * (bag % 2), 0, 0])
        rows += [(bag % 2, 100 - bag, (rng.normal(size=3) + shift).tolist()) for _ in range(rng.integers(1, 7))]
    rows = [rows[i] for i in rng.permutation(len(rows))]
    bags = list(dict.fromkeys(bag for _, bag, _ in rows))
    means = [np.mean([x for _, other, x in rows if other == bag], axis=0) for bag in bags]
    path = write(tmp_path_factory.mktemp("bags") / "rows.svm", rows)
    return path, rows, np.array(means), np.array([100 - bag for bag in bags]) % 2 == 1


@pytest.mark.parametrize("of_mean", [True, False])
def test_cv_chooses_between_the_ways(of_mean, run, tmp_path, rng, monkeypatch):
    """Where the mean of a bag tells its label a pool wins, and where one row does the best row."""
    monkeypatch.setattr(references, "_references", lambda *_: iter(()))
    rows = []
    for bag in range(120):
        X = rng.normal(size=(6, 3))
        if bag % 2:
            X += [0.8, 0.0, 0.0] if of_mean else np.outer(np.arange(6) == 2, [2.5, 2.5, 2.5])
        rows += [(2 * (bag % 2) - 1, bag, values) for values in X.tolist()]
    path = write(tmp_path / "rows.svm", rows)
    done = run("cv", path, "-o", tmp_path / "m", "-j", 1)
    assert "trying 14 combinations" in done.stderr
    pool = load_any_model(tmp_path / "m").header.features.pool
    assert (pool is not None) == of_mean


def test_any_door_for_bags(made, run, scored, tmp_path):
    """The token, a folder, a matrix and --bags: the same model."""
    path, rows, _, _ = made
    run("train", "-q", *HINGE, path, tmp_path / "m", "--pool", "mean,max")
    expected = load_model(tmp_path / "m").coef
    run("convert", "-q", path, tmp_path / "folder")
    np.save(tmp_path / "X.npy", np.array([x for _, _, x in rows]))
    (tmp_path / "y").write_text("".join(f"{label}\n" for label, _, _ in rows))
    (tmp_path / "bags").write_text("".join(f"{bag}\n" for _, bag, _ in rows))
    for source, more in (
        ("folder", ()),
        ("X.npy", ("--labels", tmp_path / "y", "--bags", tmp_path / "bags")),
    ):
        run("train", "-q", *HINGE, tmp_path / source, tmp_path / "n", "--pool", "mean,max", *more)
        np.testing.assert_allclose(load_model(tmp_path / "n").coef, expected, rtol=1e-9)  # dense sums go another way
    of_matrix = run("predict", tmp_path / "X.npy", tmp_path / "m", "--bags", tmp_path / "bags").stdout
    np.testing.assert_allclose(scored(of_matrix), scored(run("predict", path, tmp_path / "m").stdout), rtol=1e-9)


def test_files_of_scores_a_line_a_bag_or_a_row(made, run, tmp_path):
    path, rows, _, _ = made
    run("train", "-q", *HINGE, path, tmp_path / "m", "--pool", "mean")
    run("predict", path, tmp_path / "m", tmp_path / "scores")
    by_file = run("eval", path, "--scores", tmp_path / "scores").stdout
    assert by_file == run("eval", path, "--model", tmp_path / "m").stdout
    (tmp_path / "of_rows").write_text("".join(f"{x[0]}\n" for _, _, x in rows))
    assert f"{len(rows)} (" in run("eval", path, "--scores", tmp_path / "of_rows").stdout
    (tmp_path / "short").write_text("1\n2\n")
    assert run("eval", path, "--scores", tmp_path / "short", code=65).stderr.endswith(", found 2\n")


@pytest.mark.parametrize("options", [("--pool", "mean"), ("--latent", "--start", "bag-means")])
def test_the_best_bags_are_named(options, made, run, tmp_path):
    """By their own numbers, whatever the model makes of their rows."""
    path, rows, _, _ = made
    run("train", "-q", *HINGE, path, tmp_path / "m", "-C", 1, *options)
    bags = list(dict.fromkeys(bag for _, bag, _ in rows))
    lines = run("predict", path, tmp_path / "m", *(["--which"] if "--latent" in options else [])).stdout.splitlines()
    fields = [line.split("\t") for line in lines]
    best = sorted(range(40), key=lambda at: -float(fields[at][0]))[:7]
    fields = [[f"{float(score):.6g}", *row] for score, *row in fields]
    expected = [f"bag:{bags[at]}\t{fields[at][0]}" for at in best]
    assert run("predict", path, tmp_path / "m", "--top", 7).stdout.splitlines() == expected
    if "--latent" in options:
        expected = ["\t".join([f"bag:{bags[at]}", *fields[at]]) for at in best]
        assert run("predict", path, tmp_path / "m", "--top", 7, "--which").stdout.splitlines() == expected


@pytest.mark.parametrize("name", ["bag", "Bag_ID"])
def test_a_column_whose_name_says_that_it_has_the_bags(name, made, run, tmp_path):
    path, rows, _, _ = made
    table = "".join(f"{label},{bag},{','.join(map(repr, x))}\n" for label, bag, x in rows)
    (tmp_path / "bags.csv").write_text(f"label,{name},a,b,c\n{table}")
    said = run("train", *HINGE, tmp_path / "bags.csv", tmp_path / "m", "-C", 1).stderr
    assert f"column {name!r} has the bags (--bag-column names another)" in said
    assert "rows in bags: --latent, the best row of a bag decides (--pool min,mean,max" in said
    assert load_model(tmp_path / "m").header.latent
    for data, model in ((tmp_path / "bags.csv", "m"), (path, "text")):
        run("train", "-q", *HINGE, data, tmp_path / model, "--pool", "mean", "-C", 1)
    assert load_model(tmp_path / "m").header.features.names == ("a", "b", "c")
    np.testing.assert_allclose(load_model(tmp_path / "m").coef, load_model(tmp_path / "text").coef, rtol=1e-9)
    (tmp_path / "no.csv").write_text(f"label,thing,a,b,c\n{table}")
    assert run("train", tmp_path / "no.csv", tmp_path / "n", "--latent", code=65).stderr.endswith(
        ": training on bags needs bag ids, and these rows have no bag ids: bag:INT in text, --bag-column of a table, "
        "or --bags FILE\n"
    )


@pytest.mark.parametrize("options", [("--pool", "max"), ("--latent",)])
def test_bags_are_called_what_they_are(options, made, run, tmp_path):
    rows, model = made[1], tmp_path / "m"
    table = "".join(f"{label},photo {bag},{','.join(map(repr, x))}\n" for label, bag, x in rows)
    data = tmp_path / "bags.csv"
    data.write_text(f"label,bag,a,b,c\n{table}")
    said = run("train", *options, data, model).stderr
    assert "folds of bags" in said
    assert "folds of rows" not in said
    best, _ = run("predict", data, model, "--top", 1).stdout.split("\t")
    assert best in {f"photo {bag}" for _, bag, _ in rows}
    assert "\nbags         40 (20 positive)\n" in run("eval", data, "--model", model).stdout


REFUSED = [
    (
        2,
        ("--pool", "median"),
        "error: Invalid value for '--pool': expected some of min, mean, max, with commas between them, found 'median'",
    ),
    (2, ("--pool", "mean", "--bags", "ignore"), "error: --bags ignore takes every row for itself: leave out --pool"),
    (
        2,
        ("--pool", "mean", "--bag-label", "any", "--positive-label", "1"),
        "error: --bag-label any gives a bag its highest label: --relevant-from goes with it",
    ),
    (
        65,
        ("--pool", "mean", "--bags", "BAGS"),
        ": it has bags of its own; --bags FILE (bags=) is for rows that say none",
    ),
]


@pytest.mark.parametrize(("code", "options", "message"), REFUSED)
def test_options_that_do_not_go_together(code, options, message, made, run, tmp_path):
    shutil.copy(made[0], tmp_path / "BAGS")
    options = [str(tmp_path / option) if option == "BAGS" else option for option in options]
    assert run("train", made[0], tmp_path / "m", *options, code=code).stderr.endswith(f"{message}\n")


def test_models_and_rows_that_do_not_fit(made, run, cancer, tmp_path):
    path = made[0]
    run("train", "-q", *HINGE, path, tmp_path / "bags", "--pool", "mean")
    run("train", "-q", *HINGE, path, tmp_path / "rows", "--bags", "ignore")
    plain = write(tmp_path / "plain.svm", [(0, 1, [1.0, 2, 3])])
    plain.write_text(plain.read_text().replace("bag:1 ", ""))
    assert run("predict", plain, tmp_path / "bags", code=65).stderr.endswith(
        ": the model ranks bags (--pool mean), and these rows are in none: bag:INT in text, --bag-column of "
        "a table, or --bags FILE\n"
    )
    assert (
        "the model ranks bags (--pool mean)"
        in run("predict", path, tmp_path / "bags", "--bags", "ignore", code=2).stderr
    )
    (tmp_path / "ids").write_text("1\n")
    assert "the model ranks rows" in run("predict", plain, tmp_path / "rows", "--bags", tmp_path / "ids", code=2).stderr
    assert run("train", cancer.path, tmp_path / "n", "--pool", "mean", code=65).stderr.endswith(
        ": --pool (pool=) is for rows in bags, and these are in none: bag:INT in text, --bag-column of a "
        "table, or --bags FILE\n"
    )


def test_rows_for_themselves(made, run, scored, tmp_path):
    path, rows, _, _ = made
    run("train", "-q", *HINGE, path, tmp_path / "rows", "--bags", "ignore")
    assert load_model(tmp_path / "rows").header.data.rows == len(rows)
    assert scored(run("predict", path, tmp_path / "rows").stdout).size == len(rows)
    assert f"{len(rows)} (" in run("eval", path, "--model", tmp_path / "rows").stdout
    run("train", "-q", *HINGE, path, tmp_path / "bags", "--pool", "mean")
    both = run("eval", path, "--model", tmp_path / "rows", "--model", tmp_path / "bags", code=2).stderr
    assert "one ranks bags and the other their rows" in both
