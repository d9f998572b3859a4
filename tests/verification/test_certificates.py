"""``apsvm verify``: certificates that hold, and models, certificates and data that somebody has changed."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from over import over
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from apsvm import APSVMClassifier, load_any_model, load_model
from apsvm.cli import run
from apsvm.cli.commands.verify import definition_of_package
from apsvm.losses import LOSSES
from apsvm.losses.base import RankingLoss
from apsvm.models.averages import average_of
from apsvm.models.linear import LinearRanker
from apsvm.verification.exact import UNIT, float64_error
from apsvm.verification.plain import UnknownLossError, definition_of

N = 80


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of two classes, with queries, with grades, in bags; a column is constant."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=(N, 4)) * [1.0, 2.0, 0.5, 1.0], np.full(N, 3.0)])
    y = np.where(X[:, 0] + 0.5 * X[:, 2] + rng.normal(size=N) > 0.8, 1, -1)
    queries = np.repeat(np.arange(8), N // 8)
    grades = np.clip(np.round(X[:, 0] + rng.normal(size=N)), 0, 2)
    dump_svmlight_file(X, y, str(folder / "two.svm"), zero_based=False)
    dump_svmlight_file(X, y, str(folder / "queries.svm"), zero_based=False, query_id=queries)
    lines = (folder / "two.svm").read_text().splitlines()
    costed = (line.replace(" ", f" cost:{1 + row % 5} ", 1) for row, line in enumerate(lines))
    (folder / "costs.svm").write_text("".join(f"{line}\n" for line in costed))
    dump_svmlight_file(X, grades, str(folder / "grades.svm"), zero_based=False, query_id=queries)
    with open(folder / "bags.svm", "w") as stream:
        for row, (x, label) in enumerate(zip(X, np.repeat(y[::4], 4), strict=True)):
            stream.write(f"{label} bag:{row // 4} " + " ".join(f"{j}:{v:.6f}" for j, v in enumerate(x, 1)) + "\n")
    (folder / "weights.txt").write_text("0 2\n3 0\n5 0.5\n")
    return folder


def trained(data: Path, tmp_path: Path, arguments: str) -> str:
    """The model of a training, which may end before it is asked to; of columns as they are unless a map is named."""
    model = str(tmp_path / "model")
    features = [] if "--features" in arguments else ["--features", "linear"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(data)
        assert run(["train", "-q", *features, *arguments.split(), model]) in (0, 3)
    return model


def verdict(model: str, data: str, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, list[dict]]:
    capsys.readouterr()
    code = run(["verify", "--json", model, data, *options])
    return code, json.loads(capsys.readouterr().out)["certificates"]


@over("name", [LOSSES[form]().name for form in LOSSES])
def test_of_every_loss_trained_by_default(name, data, tmp_path, capsys):
    try:
        definition_of(name)
    except UnknownLossError as error:
        if definition_of_package(name) is None:
            pytest.skip(f"{error}, and it is not of two arrays")
    model = trained(data, tmp_path, f"--loss {name} two.svm")
    code, [result] = verdict(model, f"{data}/two.svm", capsys)
    assert code == 0
    assert (result["outcome"], result["loss"]) == ("holds", name)
    assert result["objective"] == pytest.approx(result["claimed"]["primal"], rel=1e-9)
    assert result["gap"] <= 1.01 * result["claimed"]["gap"] + 1e-7 * result["objective"]


@pytest.mark.slow
@over(
    "arguments",
    [
        "--bound hinge -C 3 queries.svm",
        "--bound tight -C 3 --loss ndcg queries.svm",
        "--bound hinge --loss ndcg grades.svm",
        "--bound tight --loss ndcg@3 -C 100 grades.svm",
        "--bound tight -B 1 --scale standard two.svm",
        "--bound hinge --scale maxabs --features piecewise:3 two.svm",
        "--bound hinge --scale l2 --features nystroem:10 -B 2 two.svm",
        "--bound hinge --loss f1 --scale standard two.svm",
        "--bound hinge --loss zero-one -B 1 --dtype float32 two.svm",
        "--bound hinge -e 1e-7 two.svm",
        "--bound tight -C 1e7 two.svm",
        "--components 2 --scale l2 -C 10 two.svm",
        "--components 2 --bound hinge -B 3 --scale standard -C 10 two.svm",
        "--latent --start bag-means -C 10 --bound hinge bags.svm",
        "--latent --start bag-means -C 10 --bound tight --loss auc bags.svm",
        "--latent --start bag-means -C 10 --loss zero-one bags.svm",
        "--pool min,mean --bound hinge bags.svm",
        "--one-vs-rest --bound hinge grades.svm",
        "--one-vs-rest --components 2 -C 10 --bound tight grades.svm",
    ],
)
def test_of_every_kind_of_model(arguments, data, tmp_path, capsys):
    model, source = trained(data, tmp_path, arguments), f"{data}/{arguments.split()[-1]}"
    options = ["--dtype", "float32"] if "float32" in arguments else []
    code, results = verdict(model, source, capsys, *options)
    assert code == 0, results
    for header, one in zip(load_any_model(model).headers, results, strict=True):
        bounds = header.certificate
        assert (one["C"], one["claimed"]) == (header.C, asdict(bounds))
        assert one["plainly_defined"]
    assert len(results) == (3 if "one-vs-rest" in arguments else 1)
    assert run(["verify", model, source, *options]) == 0
    said = capsys.readouterr().out
    assert "certificate  holds:" in said
    assert "positive" in said or "grades" in said or "against all others" in said
    assert "the file that the model was trained on" in said


def test_weights_of_queries(data, tmp_path, capsys):
    weights = f"{data}/weights.txt"
    model = trained(data, tmp_path, f"--bound hinge -C 3 --query-weights {weights} queries.svm")
    assert verdict(model, f"{data}/queries.svm", capsys, "--query-weights", weights)[0] == 0
    assert verdict(model, f"{data}/queries.svm", capsys)[0] == 4


def test_grades(data, tmp_path, capsys):
    model = trained(data, tmp_path, "--bound hinge --loss ndcg -C 3 grades.svm")
    assert verdict(model, f"{data}/grades.svm", capsys)[0] == 0
    changed = (data / "grades.svm").read_text().replace("2", "1", 1)
    (tmp_path / "changed.svm").write_text(changed)
    assert verdict(model, f"{tmp_path}/changed.svm", capsys)[0] == 4


def test_costs_of_rows(data, tmp_path, capsys):
    model = trained(data, tmp_path, "--loss zero-one -C 3 costs.svm")
    code, [result] = verdict(model, f"{data}/costs.svm", capsys)
    assert (code, result["objective"]) == (0, pytest.approx(result["claimed"]["primal"], rel=1e-9))
    assert verdict(model, f"{data}/two.svm", capsys)[0] == 4


@pytest.fixture(params=["--bound hinge -C 30 two.svm", "--bound tight -C 300 two.svm"])
def ranker(request, data, tmp_path) -> LinearRanker:
    return load_model(trained(data, tmp_path, request.param))


def forged(ranker: LinearRanker, tmp_path: Path, **changes: float) -> str:
    """The model with another certificate."""
    assert ranker.header.certificate is not None
    header = replace(ranker.header, certificate=replace(ranker.header.certificate, **changes))
    replace(ranker, header=header).save(tmp_path / "forged")
    return str(tmp_path / "forged")


def test_weights_that_somebody_changed(ranker, data, tmp_path, capsys):
    rng = np.random.default_rng(4)
    for changed in (ranker.coef * (1.0 + 1e-3 * rng.normal(size=ranker.coef.size)), ranker.coef * 1.001):
        replace(ranker, coef=changed).save(tmp_path / "changed")
        code, [result] = verdict(str(tmp_path / "changed"), f"{data}/two.svm", capsys)
        assert code == 4
        assert result["reasons"] == ["the objective is not what the model says"]


def test_labels_that_somebody_changed(ranker, data, tmp_path, capsys):
    lines = (data / "two.svm").read_text().splitlines()
    lines[7] = lines[7].removeprefix("-") if lines[7].startswith("-") else f"-{lines[7]}"
    (tmp_path / "flipped.svm").write_text("\n".join(lines) + "\n")
    ranker.save(tmp_path / "model")
    assert verdict(str(tmp_path / "model"), f"{tmp_path}/flipped.svm", capsys)[0] == 4
    assert run(["verify", str(tmp_path / "model"), f"{tmp_path}/flipped.svm"]) == 4
    said = capsys.readouterr().out
    assert "not the file that the model was trained on" in said
    assert "does not hold of these rows, which are not those of the training: the objective is not what" in said
    header = replace(ranker.header, data=replace(ranker.header.data, file="", sha256=""))
    replace(ranker, header=header).save(tmp_path / "of_arrays")
    assert run(["verify", str(tmp_path / "of_arrays"), f"{data}/two.svm"]) == 0
    assert "trained on arrays or a frame, of which it has no SHA-256" in capsys.readouterr().out


def test_certificates_that_somebody_changed(ranker, data, tmp_path, capsys):
    source, bounds = f"{data}/two.svm", ranker.header.certificate
    for changes, reason in (
        ({"primal": 0.999 * bounds.primal, "gap": 0.0}, "the objective is not what the model says"),
        ({"gap": 0.5 * bounds.gap}, "its gap is not the difference of its bounds"),
        ({"tolerance": 0.1 * bounds.tolerance}, "the requested gap is not epsilon·C"),
        ({"dual": 1.001 * bounds.primal, "gap": 0.0}, "a point was found below the lower bound"),
    ):
        code, [result] = verdict(forged(ranker, tmp_path, **changes), source, capsys)
        assert (code, result["outcome"]) == (4, "does not hold")
        assert reason in result["reasons"]


@over("epsilon", [None, "0.001", True, -1.0])
def test_an_epsilon_that_is_no_number(epsilon, ranker, data, tmp_path, capsys):
    """The tolerance is looked at all the same."""
    settings = {name: value for name, value in ranker.header.settings.items() if name != "epsilon"}
    settings |= {} if epsilon is None else {"epsilon": epsilon}
    changed = replace(ranker.header.certificate, tolerance=1e300)
    replace(ranker, header=replace(ranker.header, certificate=changed, settings=settings)).save(tmp_path / "forged")
    code, [result] = verdict(str(tmp_path / "forged"), f"{data}/two.svm", capsys)
    assert (code, result["reasons"]) == (4, ["its settings have no epsilon"])


@over("size", [0.0, 1.0])
def test_a_bound_that_says_nothing(size, ranker, data, tmp_path, capsys):
    """The trivial bound holds at w = 0 and at random weights."""
    coef = size * np.random.default_rng(5).normal(size=ranker.coef.size)
    replace(ranker, coef=coef).save(tmp_path / "random")
    objective = verdict(str(tmp_path / "random"), f"{data}/two.svm", capsys, "--max-iterations", "0")[1][0]["objective"]
    epsilon = 1e6
    bounds = replace(
        ranker.header.certificate, primal=objective, dual=0.0, gap=objective, tolerance=epsilon * ranker.header.C
    )
    header = replace(ranker.header, certificate=bounds, settings={**ranker.header.settings, "epsilon": epsilon})
    replace(ranker, coef=coef, header=header).save(tmp_path / "random")
    code, [result] = verdict(str(tmp_path / "random"), f"{data}/two.svm", capsys)
    assert (code, result["outcome"]) == (5, "holds, but says nothing")
    assert result["share"] == pytest.approx(result["gap"] / result["at_nothing"])
    assert run(["verify", str(tmp_path / "random"), f"{data}/two.svm"]) == 5
    assert "holds, but says nothing" in capsys.readouterr().out


def test_no_weights_as_a_stationary_point(data, tmp_path, capsys):
    """The ramp is flat there, or nearly: what is proved of it is true of any data."""
    ranker = load_model(trained(data, tmp_path, "--bound tight -C 1e-6 two.svm"))
    replace(ranker, coef=0.0 * ranker.coef).save(tmp_path / "zero")
    objective = verdict(str(tmp_path / "zero"), f"{data}/two.svm", capsys)[1][0]["objective"]
    zero = load_model(forged(ranker, tmp_path, primal=objective, dual=objective * (1.0 - 1e-5), gap=objective * 1e-5))
    replace(zero, coef=0.0 * ranker.coef).save(tmp_path / "zero")
    assert run(["verify", str(tmp_path / "zero"), f"{data}/two.svm"]) == 5
    assert "a stationary point no lower than w = 0" in capsys.readouterr().out


def test_how_large_a_gap_may_be(data, tmp_path, capsys):
    model = trained(data, tmp_path, "--bound hinge -C 1000 -e 0.3 two.svm")
    share = verdict(model, f"{data}/two.svm", capsys)[1][0]["share"]
    assert verdict(model, f"{data}/two.svm", capsys, "--gap", str(0.5 * share))[0] == 5
    assert verdict(model, f"{data}/two.svm", capsys, "--gap", "1")[0] == 0


def made(path: Path, X: np.ndarray, positive: np.ndarray) -> str:
    dump_svmlight_file(X, np.where(positive, 1, -1), str(path), zero_based=False)
    return str(path)


def test_what_rounding_may_have_done(tmp_path, capsys):
    """Counted by hand: ½w² + C·max(0, 1 − w) of two rows at ±1 is least at w = C = ½, where scores are ±w."""
    rows, w, C = made(tmp_path / "rows.svm", np.array([[1.0], [-1.0]]), np.array([True, False])), 0.5, 0.5
    model = trained(tmp_path, tmp_path, f"--loss zero-one --bound hinge -C {C} -B 0 --scale none {rows}")
    one, two = float64_error(1), float64_error(2)
    parts = [
        two * (w**2 / 2.0 + C * (1.0 + w)),  # a bound of planes: the square, and the loss and the scores of its plane
        C * 2.0 * one * w,  # the scores, up and down
        C * two * (1.0 + w),  # the sum over them
        2.0 * one * w**2,  # the square, and what w is divided by
        UNIT * (4.0 * w**2 / 2.0 + C * 34.0 * (1.0 + w)),  # what is computed here
    ]
    _, [result] = verdict(model, rows, capsys)
    assert (result["objective"], result["claimed"]["primal"]) == (0.375, 0.375)
    assert result["rounding"] == pytest.approx(sum(parts), rel=0.02, abs=0.0)


@over(
    "arguments",
    [
        "--bound hinge -C 1e5 --loss p@3 near",
        "--bound hinge -C 1e3 --loss ap near",
        "--bound hinge -C 1e4 --loss f1 near",
        "--bound hinge -C 10 wide",
        "--bound tight -C 100 wide",
        "--bound tight -C 1 far",
        "--bound hinge -C 1e3 --loss zero-one --max-iterations 100 wide",
        "--bound hinge -C 1e6 --loss set-p@5 --scale standard near",
    ],
)
def test_rows_on_no_scale(arguments, tmp_path, capsys):
    """Separable rows near 1e5, a column of 1e6, and one of 1.6e9 ± 1e7: nothing is called false, and all is shown."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(60, 3))
    scores = X @ [1.0, 0.5, -1.0]
    made(tmp_path / "near", X + 1e5, scores > 0.5)
    made(tmp_path / "wide", X * [1e6, 1.0, 1.0], scores + rng.normal(size=60) > 0.5)
    made(tmp_path / "far", X * [1e7, 1.0, 1.0] + [1.6e9, 0.0, 0.0], scores > 0.5)
    model = trained(tmp_path, tmp_path, arguments)
    code, [result] = verdict(model, f"{tmp_path}/{arguments.split()[-1]}", capsys)
    assert code == (0 if load_model(model).header.as_asked else 5), result


@pytest.mark.parametrize(("unit", "C"), [(1.0, "1e-300"), (1e-100, "1e-200"), (1e150, "1e-200")])
def test_what_is_decided_of_the_smallest_C(unit, C, tmp_path, capsys):
    """And does not go on for ever."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    rows = tmp_path / "rows.svm"
    y = np.where(X[:, 0] + rng.normal(size=60) > 0.0, 1, -1)
    lines = (
        f"{label} " + " ".join(f"{j}:{unit * v:.17g}" for j, v in enumerate(x, 1))
        for x, label in zip(X, y, strict=True)
    )
    rows.write_text("\n".join(lines) + "\n")
    model = trained(tmp_path, tmp_path, f"--scale none --bound hinge -C {C} rows.svm")
    code, [result] = verdict(model, str(rows), capsys, "--time-limit", "10")
    assert code in (0, 5)
    assert result["outcome"].startswith("holds")


def test_an_optimum_that_is_what_rounding_leaves(tmp_path, capsys):
    """Separable rows near 1e7: the objective is 1e-13 of that at w = 0, and so is what rounding may have done to it."""
    rows = [[11.351, 9.485, 10.406, 10.657], [10.889, 9.055, 9.425, 11.7], [11.125, 12.043, 9.417, 10.933],
            [9.752, 10.644, 10.281, 10.23], [9.648, 8.794, 7.712, 11.902], [8.315, 11.634, 10.585, 9.193],
            [9.884, 10.972, 10.666, 9.413]]  # fmt: skip
    source = made(tmp_path / "few", 1e6 * np.array(rows), np.arange(7) > 4)
    code, [result] = verdict(
        trained(tmp_path, tmp_path, "--loss zero-one --scale none -C 13.8676 few"), source, capsys,
        "--max-iterations", "200",
    )  # fmt: skip
    assert result["objective"] < 1e-11 * result["at_nothing"]
    assert (code, result["outcome"]) == (0, "holds")


@over(
    "name",
    [
        "p@0",
        "ndcg@0",
        "set-p@0",
        "f(1e308)",
        "f(nan)",
        "rbp(1)",
        "antigravity:Loss",
        f"p@{'9' * 5000}",
        f"f({'9' * 5000})",
    ],
)
def test_losses_that_there_are_not(name, ranker, data, tmp_path, capsys):
    replace(ranker, header=replace(ranker.header, loss=name)).save(tmp_path / "none")
    assert run(["verify", f"{tmp_path}/none", f"{data}/two.svm"]) == 65
    message = capsys.readouterr().err
    assert "loss" in message
    assert len(message) < 500 + len(str(tmp_path))
    assert run(["info", f"{tmp_path}/none"]) == 0
    assert len(max(capsys.readouterr().out.splitlines(), key=len)) < 120


def test_bags_are_never_an_optimum(data, tmp_path, capsys):
    """The hinge of their best rows is not convex, whatever a header says."""
    ranker = load_model(trained(data, tmp_path, "--latent --start bag-means -C 10 --bound hinge bags.svm"))
    code, [result] = verdict(forged(ranker, tmp_path, stationary=False), f"{data}/bags.svm", capsys)
    assert code == 0
    assert result["stationary"]
    assert run(["verify", forged(ranker, tmp_path, bound="none"), f"{data}/bags.svm"]) == 65


def test_bags_stand_at_the_rows_where_they_stood(tmp_path, capsys):
    """Where others of their rows are best the function is lower, and a claim about a stationary point is none of it."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=60) > 0.5, 1, -1)
    with open(tmp_path / "bags.svm", "w") as stream:
        for row, (x, label) in enumerate(zip(X, np.repeat(y[::4], 4), strict=True)):
            stream.write(f"{label} bag:{row // 4} " + " ".join(f"{j}:{v:.6f}" for j, v in enumerate(x, 1)) + "\n")
    model = trained(tmp_path, tmp_path, "--latent --start bag-means -C 30 --bound tight bags.svm")
    assert verdict(model, f"{tmp_path}/bags.svm", capsys)[0] == 0


def test_queries_of_one_class_each(ranker, data, tmp_path, capsys):
    X, y = load_svmlight_file(str(data / "two.svm"))
    dump_svmlight_file(X, y, str(tmp_path / "apart.svm"), zero_based=False, query_id=(y > 0).astype(int))
    ranker.save(tmp_path / "model")
    assert run(["verify", f"{tmp_path}/model", f"{tmp_path}/apart.svm"]) == 65
    assert capsys.readouterr().err.endswith(": no query of the data has both a positive and a negative row\n")


def test_an_objective_that_is_not_finite(ranker, data, tmp_path, capsys):
    replace(ranker, coef=ranker.coef * 1e200).save(tmp_path / "far")
    code, [result] = verdict(str(tmp_path / "far"), f"{data}/two.svm", capsys, "--max-iterations", "3")
    assert (code, result["reasons"]) == (4, ["the objective is not finite"])


def test_what_limits_leave_undecided(ranker, data, tmp_path, capsys):
    """The plane at the model's weights alone proves no gap and refutes none."""
    ranker.save(tmp_path / "model")
    code, [result] = verdict(str(tmp_path / "model"), f"{data}/two.svm", capsys, "--max-iterations", "0")
    assert (code, result["outcome"], result["iterations"]) == (3, "undecided", 0)
    assert run(["verify", str(tmp_path / "model"), f"{data}/two.svm", "--max-iterations", "0"]) == 3
    assert "undecided" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("--loss warp two.svm", "has no certificate"),
        ("--loss wmw two.svm", "has no certificate"),
        ("--oracle appx two.svm", "approximation"),
    ],
)
def test_what_cannot_be_verified(arguments, reason, data, tmp_path, capsys):
    model = trained(data, tmp_path, arguments)
    capsys.readouterr()
    assert run(["verify", model, f"{data}/two.svm"]) == 65
    assert reason in capsys.readouterr().err


class WeightedPrecision(RankingLoss):
    """A loss that somebody adds: precision in which the first positions count the most."""

    parameter = int

    def __init__(self, k: int = 10) -> None:
        self.k, self.name = k, f"wp@{k}"

    def weights(self, n_pos: int) -> np.ndarray:
        return np.full(n_pos, 1.0 / self.discount(n_pos).sum())

    def discount(self, n: int) -> np.ndarray:
        return np.maximum(0.0, self.k - np.arange(n))


@pytest.fixture
def weighted_precision(monkeypatch):
    monkeypatch.setitem(LOSSES._places, "wp@k", f"{__name__}:WeightedPrecision")


@pytest.mark.parametrize("arguments", ["--loss wp@10 --bound hinge two.svm", "--loss wp@3 --bound tight queries.svm"])
def test_a_loss_that_was_added(arguments, weighted_precision, data, tmp_path, capsys):
    """One file and one line: the two arrays are those of the package, all else is recomputed."""
    model, source = trained(data, tmp_path, arguments), f"{data}/{arguments.split()[-1]}"
    code, [result] = verdict(model, source, capsys)
    assert (code, result["plainly_defined"]) == (0, False)
    assert run(["verify", model, source]) == 0
    assert "by the package's own definition" in capsys.readouterr().out
    ranker = load_model(model)
    replace(ranker, coef=ranker.coef * 1.001).save(tmp_path / "changed")
    assert verdict(f"{tmp_path}/changed", source, capsys)[0] == 4


def members_of(data, tmp_path, *options):
    return [load_model(trained(data, tmp_path, f"{one} -C 30 two.svm")) for one in options]


def test_averages(data, tmp_path, capsys):
    """Each member has a verdict, and a constant that is not the members' is found."""
    source = f"{data}/two.svm"
    maps = "--features piecewise:3", "--features rules:9:depth=2"
    members = members_of(data, tmp_path, *(f"{one} --bound hinge" for one in maps))
    average = average_of(members, (0.7, 3.0))
    average.save(tmp_path / "average")
    assert [one["member"] for one in verdict(f"{tmp_path}/average", source, capsys)[1]] == [1, 2]
    # The constant of these moves no ranking, and may be a threshold.
    for changed, code in (
        (average, 0),
        (replace(average, intercept=5.0), 0),
        (replace(average, coef=1.001 * average.coef), 4),
        (average_of(members[::-1], (0.7, 3.0)), 0),
        (average.with_header(replace(average.header, members=(
            replace(average.header.members[0], divisor=0.8), average.header.members[1]
        ))), 4),
    ):  # fmt: skip
        changed.save(tmp_path / "changed")
        assert verdict(f"{tmp_path}/changed", source, capsys)[0] == code


def test_the_constant_of_an_average_of_classifiers(data, tmp_path, capsys):
    source = f"{data}/two.svm"
    maps = "--features linear", "--features piecewise:3"
    members = members_of(data, tmp_path, *(f"{one} --loss zero-one -B 1" for one in maps))
    average = average_of(members, (0.7, 3.0))
    for level, code in ((average.intercept, 0), (average.intercept + 1e-6, 4)):
        replace(average, intercept=level).save(tmp_path / "average")
        assert verdict(f"{tmp_path}/average", source, capsys)[0] == code
    assert run(["verify", f"{tmp_path}/average", source]) == 4
    assert "the average's constant is not that of its members" in capsys.readouterr().out


@pytest.mark.parametrize("components", [1, 2])
def test_classifiers_have_thresholds_in_their_constants(components, data, tmp_path, capsys):
    X, y = load_svmlight_file(str(data / "two.svm"))
    classifier = APSVMClassifier(C=5.0, components=components, bound="tight", fit_intercept=True).fit(X.toarray(), y)
    classifier.to_model().save(tmp_path / "model")
    assert verdict(str(tmp_path / "model"), f"{data}/two.svm", capsys)[0] == 0


def test_bags_are_asked_for(data, tmp_path, capsys):
    model = trained(data, tmp_path, "--latent --start bag-means -C 10 --bound hinge bags.svm")
    assert load_any_model(model).header.latent
    assert run(["verify", model, f"{data}/two.svm"]) == 65
    assert "rows have no bag ids" in capsys.readouterr().err
