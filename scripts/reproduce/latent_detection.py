"""Weakly supervised detection by latent AP-SVM (Behl, Jawahar, Kumar 2014; section 4.2 of Mohapatra, Jawahar, Kumar,
NIPS 2014, and of Mohapatra, Rolínek, Jawahar, Kolmogorov, Kumar, CVPR 2018), end to end, on other data: images say what
is in them and not where, a detector of windows is learned, and its boxes are evaluated.

    python scripts/reproduce/latent_detection.py [--classes 0,6,…] [--seeds 3] [--quick] [--voc FOLDER]
        [--output bench-output/latent-detection]

The papers train on PASCAL VOC 2007, of which neither the windows nor their features are to be had here. The scenes are
made: 28 × 28 pixels with two to four of the 8 × 8 digits that scikit-learn brings, clutter of turned half digits, and
noise; 121 windows an image, of 64 pixels each. Digits of training, validation and test scenes are different ones. For
each class a bag is an image: training knows which images have the digit and nothing of where. C is chosen by the image
AP of the validation scenes. Then every window of the test scenes is scored, non-maximum suppression keeps the best, and
AP (VOC 2010, IoU .5) is that of boxes against the digits' true places.

For comparison: logistic regression on the windows of all training scenes with their boxes, or of ten scenes, and latent
training begun at the latter.

--voc FOLDER repeats the papers' protocol (C by five folds, all windows of the test images, 20 classes) where there are
VOC 2007 and features: FOLDER holds VOC2007/Annotations and VOC2007/ImageSets/Main/{trainval,test}.txt as they are
distributed, and for each image windows/NAME.npy (n, 4), xmin ymin xmax ymax, and features/NAME.npy (n, d), rows of the
same windows. The features of all images of a part have to fit in memory.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path

import numpy as np
from experiments import difference, machine, table, verdicts
from kept import Pieces, tables_kept
from numpy.typing import NDArray
from scenes import DIGIT, Scenes, made_scenes, voc_scenes
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from apsvm._support.clock import count_cpu_time
from apsvm.detection.base import Detections
from apsvm.detection.boxes import nms
from apsvm.detection.measure import evaluate, parse_metric
from apsvm.losses import make_loss
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.structured_svm.default_c import default_C
from apsvm.trainers.structured_svm.plan import Plan
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.training import train as train_plan

MULTIPLES = (0.1, 1.0, 10.0, 100.0)
LOSSES = {"AP": "ap", "0-1": "zero-one", "NDCG": "ndcg"}
BOXED = 10
ORACLES = ("greedy", "select", "qs")
SUPPRESS = 0.3
#: What the papers report: mean AP of detection on VOC 2007, and seconds of loss-augmented inference in all of a
#: training, the mean of 20 classes.
PAPER = (
    "detection mAP 36.6 with the AP loss, 29.5 with the 0-1 loss (2018); inference in a training, 20 classes: "
    "SEARCH+SELECT .330 s against greedy 6.237 s (2014), QS .521 s against greedy 7.623 s (2018)"
)


@dataclass(frozen=True)
class Result:
    """A detector of a class: AP of images and of boxes, seconds in the oracle and in all of its training, rounds."""

    image_ap: float
    box_ap: float
    oracle: float = 0.0
    seconds: float = 0.0
    rounds: int = 0


class _OracleTimes:
    """A log that adds up what the calls of the oracle took, and counts rounds."""

    def __init__(self) -> None:
        self.seconds, self.rounds = 0.0, 0

    def write(self, event: str, **fields: object) -> None:
        self.rounds += event == "round"
        if event == "oracle":
            self.seconds += float(fields["oracle_cpu_ns"]) / 1e9  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Detector:
    """Latent training for one class, with one loss."""

    loss: str
    of_class: int
    oracle: str = "auto"
    quick: bool = False

    @property
    def bias(self) -> float | None:
        return 1.0 if self.loss == "zero-one" else None

    def train(self, data: TrainingSet, C: float, start: NDArray[np.float64] | None = None, watch: Watch | None = None):
        settings = StructuredSettings(C=(C,), latent=True, bound="hinge", epsilon=5e-3, oracle=self.oracle, threads=1)
        if start is not None and self.bias is not None:
            start = np.append(start, 0.0)
        plan = Plan(loss=make_loss(self.loss), settings=settings, start=start)
        (trained,) = train_plan(plan, data, watch or Watch())
        return trained

    def values_of_C(self, data: TrainingSet) -> list[float]:
        default = default_C(data, make_loss(self.loss))
        return [multiple * default for multiple in (MULTIPLES[1:2] if self.quick else MULTIPLES)]


def by_validation(
    detector: Detector, training: Scenes, validation: Scenes, test: Scenes, start: NDArray[np.float64] | None = None
) -> Result:
    """C by the image AP of the validation scenes."""
    data = training.bags(detector.of_class, detector.bias)
    d = training.features.shape[1]
    best: tuple[float, Result] | None = None
    for C in detector.values_of_C(data):
        log, began = _OracleTimes(), time.perf_counter()
        trained = detector.train(data, C, start, Watch(log=log))
        seconds = time.perf_counter() - began
        w = trained.w[:d]
        of_validation = average_precision_score(validation.has(detector.of_class), validation.image_scores(w))
        if best is None or of_validation > best[0]:
            best = of_validation, judged(w, test, detector.of_class, log.seconds, seconds, log.rounds)
    assert best is not None
    return best[1]


def by_folds(detector: Detector, training: Scenes, test: Scenes) -> Result:
    """C by five folds of the training images, as in the papers."""
    data = training.bags(detector.of_class, detector.bias)
    has, d = training.has(detector.of_class), training.features.shape[1]
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(has, has))
    held_out: dict[float, float] = {}
    for C in detector.values_of_C(data):
        scores = np.empty(has.size)
        for train, kept in folds:
            w = detector.train(data.select(train), C).w[:d]
            scores[kept] = training.image_scores(w)[kept]
        held_out[C] = float(average_precision_score(has, scores))
    log, began = _OracleTimes(), time.perf_counter()
    trained = detector.train(data, max(held_out, key=held_out.__getitem__), watch=Watch(log=log))
    seconds = time.perf_counter() - began
    return judged(trained.w[:d], test, detector.of_class, log.seconds, seconds, log.rounds)


def judged(
    w: NDArray[np.float64], test: Scenes, of_class: int, oracle: float = 0.0, seconds: float = 0.0, rounds: int = 0
) -> Result:
    scores, of_image = test.features @ w, test.image_of_window
    kept = nms(test.boxes, scores, of_image, threshold=SUPPRESS)
    detections = Detections(
        classes=test.objects.classes,
        of_image=of_image[kept],
        of_class=np.full(kept.size, of_class, dtype=np.int64),
        scores=scores[kept],
        boxes=test.boxes[kept],
    )
    result = evaluate(parse_metric("AP(voc2010)"), test.objects, detections)
    image_ap = average_precision_score(test.has(of_class), test.image_scores(w))
    return Result(float(image_ap), float(result.ap[of_class]), oracle, seconds, rounds)


def with_boxes(scenes: Scenes, images: NDArray[np.int64], of_class: int) -> NDArray[np.float64]:
    """Logistic regression on windows of ``images``: those that lie on an object of the class against those that hardly
    touch one."""
    overlap = scenes.overlap(of_class)
    told_apart = (overlap > 0.9) | (overlap < 0.3)
    rows = np.flatnonzero(np.isin(scenes.image_of_window, images) & told_apart)
    model = LogisticRegression(C=10.0, max_iter=1000)
    model.fit(scenes.features[rows], overlap[rows] > 0.9)
    return np.asarray(model.coef_[0], dtype=np.float64)


#: (class, method) → the result, the mean of several draws of the scenes.
Results = Mapping[tuple[int, str], Result]


def on_digits(classes: Sequence[int], options: argparse.Namespace) -> None:
    pieces, seeds = Pieces(options), options.seeds
    drawn = [of_scenes(classes, seed, pieces, quick=options.quick) for seed in range(seeds)]
    results = {key: mean([of_seed[key] for of_seed in drawn]) for key in drawn[0]}
    columns = ["all boxes", "ten boxes", *(f"ten → {name}" for name in LOSSES), *LOSSES]
    print(f"Detection AP (VOC 2010, IoU .5) of the test scenes, {seeds} draws; the last three columns saw no box.\n")
    print(_table([str(one) for one in classes], columns, {(str(c), m): r.box_ap for (c, m), r in results.items()}))
    of_draws = {
        (f"draw {seed}", method): float(np.mean([of_seed[one, method].box_ap for one in classes]))
        for seed, of_seed in enumerate(drawn)
        for method in columns
    }
    print(f"\nThe same by draws.\n\n{_table([f'draw {seed}' for seed in range(seeds)], columns, of_draws)}")
    print("\nAP of the test images by their best window.\n")
    print(_table([str(one) for one in classes], columns, {(str(c), m): r.image_ap for (c, m), r in results.items()}))
    _times(classes, results)
    print(f"\nWhat of the papers is seen here?\n\n{_verdict(classes, results, quick=options.quick)}")


def mean(results: Sequence[Result]) -> Result:
    return Result(**{field.name: np.mean([getattr(one, field.name) for one in results]) for field in fields(Result)})


def _verdict(classes: Sequence[int], results: Results, *, quick: bool) -> str:
    """Claims of the 2018 paper on detection, each with its verdict and evidence."""

    def gain(first: str, second: str) -> tuple[bool, str]:
        of_first, of_second = ({str(c): results[c, name].box_ap for c in classes} for name in (first, second))
        found = difference(of_first, of_second)
        return found.is_shown and found.mean > 0, f"detection AP {found}"

    return verdicts(
        [
            ("the AP loss detects better than the 0-1 loss (there by 7.12 points)", *gain("AP", "0-1")),
            ("and the NDCG loss better than the 0-1 loss (no figure there)", *gain("NDCG", "0-1")),
            ("begun at ten boxes, the AP loss detects better than the 0-1 loss", *gain("ten → AP", "ten → 0-1")),
            ("and better than the ten boxes alone", *gain("ten → AP", "ten boxes")),
        ],
        quick=quick,
    )


def of_scenes(classes: Sequence[int], seed: int, pieces: Pieces, *, quick: bool) -> Results:
    """On scenes drawn by ``seed``."""
    X, labels = load_digits(return_X_y=True)
    digits = X.reshape(-1, DIGIT, DIGIT) / 16.0
    rng = np.random.default_rng(seed)
    thirds = np.array_split(rng.permutation(len(digits)), 3)
    sizes = (60, 40, 60) if quick else (250, 120, 300)
    scenes = [
        made_scenes(digits[part], labels[part], n, 3 * seed + at)
        for at, (part, n) in enumerate(zip(thirds, sizes, strict=True))
    ]
    found = {one: pieces(f"digit {one}, draw {seed}", partial(of_digit, one, *scenes, quick=quick)) for one in classes}
    return {(one, method): result for one, by_method in found.items() for method, result in by_method.items()}


def of_digit(of_class: int, training: Scenes, validation: Scenes, test: Scenes, *, quick: bool) -> dict[str, Result]:
    """By method."""
    few = with_boxes(training, np.flatnonzero(training.has(of_class))[:BOXED], of_class)
    every = with_boxes(training, np.arange(training.n_images), of_class)
    results = {"all boxes": judged(every, test, of_class), "ten boxes": judged(few, test, of_class)}
    for name, loss in LOSSES.items():
        detector = Detector(loss, of_class, quick=quick)
        results[f"ten → {name}"] = by_validation(detector, training, validation, test, few)
        results[name] = by_validation(detector, training, validation, test)
    for oracle in ORACLES:
        detector = Detector("ap", of_class, oracle, quick)
        results[f"AP by {oracle}"] = by_validation(detector, training, validation, test)
    return results


def on_voc(classes: Sequence[int] | None, options: argparse.Namespace) -> None:
    training, test = voc_scenes(options.voc, "trainval"), voc_scenes(options.voc, "test")
    chosen = range(len(training.objects.classes)) if classes is None else classes
    ways = {name: (loss, "auto") for name, loss in LOSSES.items()} | {f"AP by {one}": ("ap", one) for one in ORACLES}
    results, pieces = {}, Pieces(options)
    for of_class in chosen:
        for name, (loss, oracle) in ways.items():
            detector = Detector(loss, of_class, oracle, options.quick)
            work = partial(by_folds, detector, training, test)
            results[of_class, name] = pieces(f"class {of_class}, {name}", work)
    names = [training.objects.classes[of_class] for of_class in chosen]
    by_name = {(training.objects.classes[c], method): result.box_ap for (c, method), result in results.items()}
    print(f"The papers: {PAPER}\n")
    print(_table(names, list(LOSSES), by_name))
    _times(chosen, results)


def _table(rows: Sequence[str], columns: Sequence[str], values: Mapping[tuple[str, str], float]) -> str:
    lines = [[row, *(f"{values[row, column]:.3f}" for column in columns)] for row in rows]
    means = [f"{np.mean([values[row, column] for row in rows]):.3f}" for column in columns]
    return table(["", *columns], [*lines, ["mean", *means]])


def _times(classes: Sequence[int], results: Results) -> None:
    print("\nA training: seconds in the oracle and in all, the mean of the classes; rounds.\n")
    methods = [*LOSSES, "AP by greedy", "AP by select", "AP by qs"]
    lines = []
    for method in methods:
        one = [results[of_class, method] for of_class in classes]
        oracle, seconds, rounds = (
            np.mean([getattr(result, what) for result in one]) for what in ("oracle", "seconds", "rounds")
        )
        lines.append([method, f"{oracle:.4f}", f"{seconds:.3f}", f"{rounds:.1f}"])
    print(table(["loss", "oracle, s", "training, s", "rounds"], lines))
    print(f"\nThe papers, on VOC 2007 with about 10 million windows: {PAPER}.")
    print("Only the order can be compared: other images, other features, another machine.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--classes", help="numbers of classes, with commas between them; all by default")
    parser.add_argument("--seeds", type=int, default=3, help="draws of the scenes")
    parser.add_argument("--quick", action="store_true", help="small scenes and one C: to see that it runs")
    parser.add_argument("--voc", type=Path, metavar="FOLDER")
    parser.add_argument("--output", type=Path, default=Path("bench-output/latent-detection"))
    options = parser.parse_args()
    if options.voc is not None and not (options.voc / "VOC2007" / "Annotations").is_dir():
        parser.error(f"{options.voc}: no VOC2007/Annotations in it; without --voc made scenes are taken")
    classes = None if options.classes is None else [int(one) for one in options.classes.split(",")]
    with tables_kept(options.output):
        print(f"{machine()}\n")
        if options.voc is not None:
            on_voc(classes, options)
        else:
            on_digits(range(10) if classes is None else classes, options)


if __name__ == "__main__":
    count_cpu_time()
    with threadpool_limits(1):
        main()
