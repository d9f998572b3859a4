"""Every picture: drawn at every size as PNG and SVG, the same bytes each time, and what it shows."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.patches import Rectangle
from over import over

from apsvm.metrics.curves import Steps
from apsvm.report.pictures.base import PictureError
from apsvm.report.pictures.convergence import Convergence
from apsvm.report.pictures.heatmap import Heatmap
from apsvm.report.pictures.precision_recall import Curve, PrecisionRecall
from apsvm.report.pictures.shapes import Bars, Shape, Shapes, Surface


def bounds(iteration, primal, dual, **more):
    record = {"event": "iteration", "stage": "train", "C": 2.0, "iteration": iteration, "primal": primal, "dual": dual}
    return {**record, "gap": primal - dual, "seconds": iteration / 10, **more}


def oracle(iteration, ranks=None, **more):
    record = {"event": "oracle", "stage": "train", "C": 2.0, "iteration": iteration, "oracle": "bucket", "n_pos": 2}
    return {**record, "n_neg": 4, "oracle_wall_ns": 1000 * iteration, **more, **({"ranks": ranks} if ranks else {})}


START = {"event": "start", "C": 2.0, "epsilon": 0.05}
LOG = [START, bounds(1, 2.0, 0.0), bounds(2, 1.5, 1.0), bounds(3, 1.2, 1.15)]
RANKED = [oracle(1, [[1, 4]]), oracle(2, [[1, 1], [3, 3]]), oracle(2, [[1, 1], [2, 1], [3, 2]])]
EXAMPLES = {
    "convergence": Convergence.of_logs({"log": LOG}),
    "heatmap": Heatmap.of_log(RANKED),
    "pr": PrecisionRecall([Curve("AP < & $x$", Steps(np.array([0.5, 1.0]), np.array([1.0, 0.4])))], base_rate=0.2),
    "shapes": Shapes([Shape(f"f{j} < &", np.array([0.0, 1.0, 3.0]), np.array([0.0, j, -1.0])) for j in range(4)]),
}


def texts(svg):
    return ["".join(node.itertext()) for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("}text")]


def named(count):
    """Lines of several names and colours."""
    return {f"line {at}": at for at in range(count)}


def gradients(at):
    """A log of RankNCG, the second one's first value not known."""
    values = [None if at == n else 2 / n for n in (1, 2, 3)]
    records = [
        {"event": "iteration", "iteration": n, "value": value, "gradient_norm": at / n, "seconds": n}
        for n, value in enumerate(values, start=1)
    ]
    return [*records, {"event": "end", "asked": 0.125}]


def epochs(at):
    """A log of WARP, of two classes."""
    return [
        {"event": "epoch", "epoch": n, "loss": at + 1 / n, "validation": n / 4, "seconds": n, "class": label}
        for n in (1, 2, 3)
        for label in (0, 1)
    ]


CURVE = Steps(np.array([0.25, 0.5, 1.0]), np.array([1.0, 0.8, 0.4]))
SURFACES = [
    Surface(("u", "v"), np.arange(3.0), np.arange(4.0), np.arange(6.0).reshape(3, 2) * sign, np.ones((2, 2)) / 2)
    for sign in (1, -2)
]
#: Pictures that take other ways than the examples.
MORE = {
    "convergence-of-many": Convergence.of_logs(
        {f"run {at}": [START, *(bounds(n, 2.0 - n / 99, n / 99 + at / 99) for n in range(1, 48))] for at in range(5)}
    ),
    "convergence-of-two": Convergence.of_logs({"a": LOG, "b": [*LOG[:2], bounds(2, 1.0, 1.0)]}),
    "convergence-of-thirteen": Convergence.of_logs(
        {"log": [{"event": "epoch", "epoch": 1, "loss": n, "validation": None, "seconds": n, "class": n}
                 for n in range(13)]}
    ),
    "gradients": Convergence.of_logs({name: gradients(at) for name, at in named(2).items()}),
    "epochs": Convergence.of_logs({name: epochs(at) for name, at in named(2).items()}),
    "pr-of-classes": PrecisionRecall(
        [Curve("mean", CURVE), Curve("", CURVE, aside=True), Curve("one", CURVE, aside=True)], 0.2
    ),
    "shapes-and-surfaces": Shapes(EXAMPLES["shapes"].shapes[:2], SURFACES),
    "surface": Shapes([], SURFACES[:1]),
    "weights": Bars(["size <", "age"], np.array([2.0, -0.5])),
    "one-shape-and-surface": Shapes(EXAMPLES["shapes"].shapes[1:2], SURFACES[1:]),
    "surfaces": Shapes([], [*SURFACES, SURFACES[0], SURFACES[1]]),
}  # fmt: skip


def numbers(value):
    """All finite numbers in lists of arrays and numbers."""
    if isinstance(value, np.ndarray):
        value = value.ravel().tolist()
    if isinstance(value, list | tuple):
        return set().union(*map(numbers, value))
    real = isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value)
    return {float(value)} if real else set()


def drawn(axes):
    """The numbers that a panel draws: of lines, steps, bars, areas, images and cells."""
    arrays = [np.asarray(data, dtype=float) for line in axes.lines for data in line.get_data()]
    bars = [one for one in axes.patches if isinstance(one, Rectangle)]
    arrays += [np.array([one.get_width() for one in bars])]
    steps = [one for one in axes.patches if one not in bars]
    arrays += [np.asarray(part, dtype=float) for one in steps for part in one.get_data() if np.size(part)]
    arrays += [np.ma.filled(np.ma.asarray(one.get_array(), dtype=float), np.nan) for one in axes.images]
    for one in axes.collections:
        data = one.get_array()
        arrays += [np.ma.filled(np.ma.asarray(data, dtype=float), np.nan)] if data is not None else []
        arrays += [path.vertices for path in one.get_paths()] if data is None else []
    return np.concatenate([array.ravel() for array in arrays]) if arrays else np.zeros(0)


#: Where what is drawn is computed of the data: the numbers that are to be seen.
COMPUTED = {
    "heatmap": [1, 2, 3],
}


@over("name", [*EXAMPLES, *MORE])
def test_a_picture_draws_the_numbers_of_its_data(name, monkeypatch):
    """Where it draws its data as they are, all of them."""
    picture = {**EXAMPLES, **MORE}[name]
    figures, draw = [], type(picture).draw
    with monkeypatch.context() as patch:
        patch.setattr(type(picture), "draw", lambda *given: figures.append(given[1]) or draw(*given))
        picture.render("svg")
    (figure,) = figures
    seen = np.concatenate([drawn(axes) for axes in figure.axes])
    for value in COMPUTED.get(name) or numbers(shown_data(picture)):
        assert np.isclose(seen, value, rtol=1e-9).any(), value


def shown_data(picture):
    """The data of a picture that are drawn on its axes."""
    match picture:
        case Convergence():
            return [line.points[:, [0, 2]] for lines in picture.panels.values() for line in lines]
        case PrecisionRecall():
            return [[curve.steps.precision, curve.steps.recall] for curve in picture.curves]
        case Shapes():
            return [[(shape.x, shape.y) for shape in picture.shapes], [one.gives for one in picture.surfaces]]
        case Bars():
            return [picture.weights]
    raise AssertionError(picture)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_every_picture_in_both_formats(name):
    picture = EXAMPLES[name]
    svg, png = picture.render("svg"), picture.render("png")
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20], "big") == pytest.approx(7.2 * 150, abs=1)
    assert b"<dc:date>" not in svg
    assert ElementTree.fromstring(svg).get("width") == f"{72 * 7.2:g}pt"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["heatmap", "pr"])
def test_the_same_bytes_every_time_whatever_the_users_settings(name):
    picture = EXAMPLES[name]
    usual = picture.render("png"), picture.render("svg")
    with matplotlib.rc_context({"font.size": 30, "axes.grid": False, "svg.hashsalt": None}):
        assert (picture.render("png"), picture.render("svg")) == usual
        assert matplotlib.rcParams["font.size"] == 30


@pytest.mark.slow
def test_pyplot_is_not_loaded():
    code = (
        "import sys; from apsvm.report.pictures.shapes import Bars; import numpy as np; "
        "assert 'matplotlib' not in sys.modules; Bars(['a'], np.ones(1)).render('png'); "
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_text_is_escaped_and_not_read_as_mathematics():
    svg = EXAMPLES["pr"].render("svg")
    assert "AP < & $x$" in texts(svg)
    assert b"AP &lt; &amp; $x$" in svg


@pytest.mark.slow
def test_save(tmp_path):
    EXAMPLES["pr"].save(tmp_path / "a.SVG")
    assert (tmp_path / "a.SVG").read_bytes() == EXAMPLES["pr"].render("svg")
    for name in ("a.pdf", "a", ".png"):
        with pytest.raises(PictureError, match=r"\.png or \.svg"):
            EXAMPLES["pr"].save(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        EXAMPLES["pr"].save(tmp_path / "no" / "a.png")
    assert sorted(os.listdir(tmp_path)) == ["a.SVG"]


def test_the_heat_map_shows_the_last_call_of_each_iteration():
    heatmap = EXAMPLES["heatmap"]
    assert heatmap.pixels().tolist() == [[1, 1, 1, 1], [1, 2, 3, 3]]
    assert (heatmap.n_pos, heatmap.n_neg) == (2, 4)


def test_a_large_heat_map_is_thinned_out():
    rows = [np.array([(1, 5000), (2, 5000)])] * 3000
    pixels = Heatmap(rows, 1, 10_000).pixels()
    assert pixels.shape == (1200, 1600)
    assert (pixels == np.repeat([1, 2], 800)).all()


def lines(panel):
    return {line.name: tuple(line.points[:, [0, 2]].T.tolist()) for line in panel}


def test_convergence_of_one_run():
    objective, gap = EXAMPLES["convergence"].panels.values()  # C = 2
    assert lines(objective) == {"primal": ([1, 2, 3], [1.0, 0.75, 0.6]), "dual": ([1, 2, 3], [0.0, 0.5, 0.575])}
    assert EXAMPLES["convergence"].requested == {"duality gap / C": 0.05}
    assert gap[0].points[:, 2] == pytest.approx([1.0, 0.25, 0.025])


def test_stages_and_values_of_C_follow_each_other():
    """Majorants of the tight bound's rounds are left out: their constants differ."""
    where = {"stage": "tight", "start": "from the hinge", "C": 20.0}
    steps = [{"event": "step", **where, "step": n, "objective": 12 - n, "seconds": n / 100} for n in (1, 2)]
    inner = [{**bounds(n, 7.0, 6.0), "stage": "tight"} for n in (1, 2)]
    closing = {"event": "round", "stage": "tight", "C": 20.0, "round": 1, "objective": 9.0, "dual": 8.0, "gap": 1.0}
    log = [*LOG, bounds(1, 12.0, 8.0, C=20.0), *steps, *inner, {**closing, "seconds": 0.3}]
    objective, gap = Convergence.of_logs({"log": log}).panels.values()
    found, values = lines(objective)["primal"]
    shown = [(step, value) for step, value in zip(found, values, strict=True) if not np.isnan(value)]
    assert shown == [
        (1, 1.0), (2, 0.75), (3, 0.6), (4, 0.6), (5, 0.55), (6, 0.5), (8, 0.45)
    ]  # fmt: skip
    assert np.isnan(values).sum() == 2
    assert gap[0].points[-1, 1] == pytest.approx(0.3 + 0.1 + 0.02 + 0.2)


def test_classes_are_lines_in_order():
    records = [bounds(1, 2.0, 1.0, **{"class": label}) for label in (3.0, 1.0, 2.0)]
    _, gap = Convergence.of_logs({"log": records}).panels.values()
    assert list(lines(gap)) == ["class 1", "class 2", "class 3"]


def test_other_trainings_converge_too():
    where = {"event": "iteration"}
    smooth = [{**where, "iteration": n, "value": 1 / n, "gradient_norm": 0.1**n, "seconds": n} for n in (1, 2)]
    objective, gradient = Convergence.of_logs({"log": [*smooth, {"event": "end", "asked": 0.02}]}).panels.values()
    assert lines(objective)[""] == ([1, 2], [1.0, 0.5])
    assert lines(gradient)[""][0] == [1, 2]
    (only,) = Convergence.of_logs({"log": [{**record, "value": None} for record in smooth]}).panels
    assert only == "gradient's largest entry"
    epochs = [{"event": "epoch", "epoch": n, "loss": 1 / n, "validation": 0.5, "seconds": n} for n in (1, 2)]
    drawn = Convergence.of_logs({"log": epochs})
    assert [*drawn.panels] == ["estimated loss", "validation"]
    with pytest.raises(PictureError, match="different kinds"):
        Convergence.of_logs({"one": epochs, "two": LOG})
    with pytest.raises(PictureError, match="no iteration"):
        Convergence.of_logs({"one": [START]})
