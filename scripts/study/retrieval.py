"""A study of losses for retrieval: embeddings of images, judged on classes that the training never saw.

    python scripts/study/retrieval.py [DATA …] [--seeds 5] [--steps 300] [--only LOSS …] [--json FILE]

DATA are svmlight files whose labels are classes, or ``digits`` (scikit-learn's), ``glyphs`` (letters of Latin, Greek
and Cyrillic in the fonts that come with matplotlib, turned, shifted and noisy) or ``armenian`` (those of Armenian and
Georgian, on which no default was set); these three where nothing is named. For each seed half of the classes, drawn at
random, train a network of two layers whose outputs of length 1 are compared by their cosine, and each image of the
others looks for its like among those. All losses have one network and one budget, STEPS batches of 100 images, Adam at
.002. They are measured as they come, and with the value of one parameter (a width, a margin, …: ``ENTRIES``) that of
three has the best mAP@R on a third of the seed's training classes, held out.

R@1: how often the nearest image is of the same class; mAP@R: average precision of the first R, R being the images of
the class (Musgrave, Belongie, Lim 2020). Milliseconds are of the processor, one thread, forward and backward of a step.
pytorch-metric-learning and LibAUC take part where they are installed. FILE, lines of JSON, keeps the results: what it
has is not done again.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from apsvm import read_svmlight
from apsvm.torch import (
    APHingeLoss,
    BlackboxAPLoss,
    DirectLoss,
    RankingRampLoss,
    RankTripletLoss,
    RecallAtKLoss,
    SmoothAPLoss,
    SoDeepMAPLoss,
)

BATCH = 100
EMBEDDING = 32


@dataclass(frozen=True)
class Images:
    """X (n, pixels) float32; classes (n,) int64 from 0."""

    X: Tensor
    classes: Tensor

    def of(self, classes: Sequence[int]) -> Images:
        """Those of some classes, numbered anew."""
        numbers = torch.full((int(self.classes.max()) + 1,), -1)
        numbers[torch.tensor(classes)] = torch.arange(len(classes))
        kept = numbers[self.classes] >= 0
        return Images(self.X[kept], numbers[self.classes[kept]])

    def halves(self, share: float, rng: np.random.Generator) -> tuple[Images, Images]:
        """The images of ``share`` of the classes, and those of the others."""
        order = rng.permutation(int(self.classes.max()) + 1).tolist()
        first = round(share * len(order))
        return self.of(order[:first]), self.of(order[first:])


def read(name: str) -> Images:
    if name in LETTERS:
        X, labels = letters(*LETTERS[name])
    elif name == "digits":
        from sklearn.datasets import load_digits

        X, labels = load_digits(return_X_y=True)
    else:
        dataset = read_svmlight(name)
        X, labels = dataset.X.toarray(), dataset.relevance
    return images_of(X, labels)


def images_of(X: NDArray[np.float64], labels: NDArray[np.float64]) -> Images:
    """Of pixels (n, pixels) and the classes' labels (n,)."""
    X = np.asarray(X, dtype=np.float32)
    _, classes = np.unique(labels, return_inverse=True)
    return Images(torch.from_numpy((X - X.mean()) / X.std()), torch.from_numpy(classes))


CHARACTERS = "ABDEFGHKLMNPQRTUYabdefghijkmnqrtuy0123456789αβγδεζηθλμξπρστφχψωΓΔΘΛΞΠΣΦΨΩбвгджзийлцчшщъыьэюяБДЖИЛЦЧШЪЫЭЮЯ"
FACES = [f"DejaVuSans{face}" for face in ("", "-Bold", "-BoldOblique", "-Oblique")]
FACES += [f"DejaVuSansMono{face}" for face in ("", "-Bold", "-BoldOblique", "-Oblique")]
FACES += [f"DejaVuSerif{face}" for face in ("", "-Bold", "-BoldItalic", "-Italic")]
STIX = [f"STIXGeneral{face}" for face in ("", "Bol", "BolIta", "Italic")]
#: Characters, and the faces that have them all.
LETTERS = {
    "glyphs": (CHARACTERS, FACES + STIX),
    "armenian": ("".join(map(chr, (*range(0x531, 0x557), *range(0x561, 0x587), *range(0x10D0, 0x10F1)))), FACES),
}


def letters(
    characters: str, faces: Sequence[str], size: int = 16, copies: int = 2
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """``copies`` images of each character in each face."""
    import matplotlib
    from PIL import Image, ImageDraw, ImageFont

    folder, rng = Path(matplotlib.get_data_path()) / "fonts" / "ttf", np.random.default_rng(0)
    images, labels = [], []
    for face in faces:
        font = ImageFont.truetype(str(folder / f"{face}.ttf"), 3 * size)
        for label, character in enumerate(characters):
            for _ in range(copies):
                image = Image.new("L", (4 * size, 4 * size))
                place = tuple(2 * size + rng.normal(0.0, size / 8, 2))
                ImageDraw.Draw(image).text(place, character, fill=255, font=font, anchor="mm")
                image = image.rotate(rng.normal(0.0, 8.0), resample=Image.Resampling.BILINEAR)
                pixels = np.asarray(image.resize((size, size), Image.Resampling.BOX), dtype=np.float32) / 255
                images.append((pixels + rng.normal(0.0, 0.1, pixels.shape)).ravel())
                labels.append(label)
    return np.array(images, dtype=np.float32), np.array(labels)


#: Embeddings (B, d) of length 1, their classes, the rows' numbers among the training rows → the loss.
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
#: A parameter, the training images → the loss. None: as the loss comes.
Maker = Callable[[float | None, Images], Loss]


def of_lists(make: Callable[..., nn.Module], parameter: str) -> Maker:
    """One of ours: each row's similarities to the others are a list."""

    def maker(value: float | None, images: Images) -> Loss:
        loss = make() if value is None else make(**{parameter: value})
        others = ~torch.eye(BATCH, dtype=torch.bool)

        def of_batch(embeddings: Tensor, classes: Tensor, rows: Tensor) -> Tensor:
            return loss(embeddings @ embeddings.T, classes[:, None] == classes, others)  # type: ignore[no-any-return]

        return of_batch

    return maker


def scaled_hinge(value: float | None, images: Images) -> Loss:
    """The hinge of similarities times ``scale``: they are at most 1, and the hinge asks for a margin of 1."""
    loss, others = APHingeLoss(), ~torch.eye(BATCH, dtype=torch.bool)

    def of_batch(embeddings: Tensor, classes: Tensor, rows: Tensor) -> Tensor:
        similarities = (1.0 if value is None else value) * (embeddings @ embeddings.T)
        return loss(similarities, classes[:, None] == classes, others)  # type: ignore[no-any-return]

    return of_batch


class OfClasses(nn.Module):
    """What a classifier is trained with: cross-entropy of a linear layer on the network's outputs as they are; plus
    ``weight`` times Smooth-AP of their similarities."""

    def __init__(self, images: Images, label_smoothing: float, weight: float) -> None:
        super().__init__()
        self.layer, self.weight = nn.Linear(EMBEDDING, int(images.classes.max()) + 1), weight
        self.cross_entropy = nn.CrossEntropyLoss(label_smoothing=label_smoothing)
        self.beside = of_lists(SmoothAPLoss, "tau")(None, images)

    def forward(self, outputs: Tensor, classes: Tensor, rows: Tensor) -> Tensor:
        value: Tensor = self.cross_entropy(self.layer(outputs), classes)
        if self.weight:
            value = value + self.weight * self.beside(nn.functional.normalize(outputs, dim=1), classes, rows)
        return value


def cross_entropy(value: float | None, images: Images) -> Loss:
    return OfClasses(images, value or 0.0, 0.0)


def cross_entropy_and_smooth_ap(value: float | None, images: Images) -> Loss:
    return OfClasses(images, 0.0, 1.0 if value is None else value)


def of_metric_learning(name: str, parameter: str, miner: str | None = None) -> Maker:
    """One of pytorch-metric-learning."""

    def maker(value: float | None, images: Images) -> Loss:
        from pytorch_metric_learning import losses, miners

        loss = getattr(losses, name)(**({} if value is None else {parameter: value}))
        mine = getattr(miners, miner)() if miner else None
        return lambda embeddings, classes, rows: loss(embeddings, classes, mine(embeddings, classes) if mine else None)

    return maker


def libauc_ap(value: float | None, images: Images) -> Loss:
    """LibAUC's APLoss, which is of one list: a call for each query. It remembers each pair of training images."""
    from libauc.losses import APLoss

    n = len(images.classes)
    loss = APLoss(n * n, device=torch.device("cpu"), **({} if value is None else {"margin": value}))

    def of_batch(embeddings: Tensor, classes: Tensor, rows: Tensor) -> Tensor:
        similarities, others = embeddings @ embeddings.T, ~torch.eye(len(rows), dtype=torch.bool)
        of_query = [
            loss(similarities[q][others[q]], (classes == classes[q])[others[q]].long(), (rows[q] * n + rows)[others[q]])
            for q in range(len(rows))
        ]
        return torch.stack(of_query).mean()

    return of_batch


def libauc_ndcg(value: float | None, images: Images) -> Loss:
    """LibAUC's NDCGLoss: images are users and items, all queries of a batch have as many positives."""
    from libauc.losses import NDCGLoss

    n = len(images.classes)
    sizes = torch.bincount(images.classes)
    made: dict[int, Any] = {}

    def of_batch(embeddings: Tensor, classes: Tensor, rows: Tensor) -> Tensor:
        similarities, same = embeddings @ embeddings.T, classes[:, None] == classes
        n_pos = int(same[0].sum()) - 1
        if not made:
            made[0] = NDCGLoss(
                n * n, n, n, n_pos, device=torch.device("cpu"), **({} if value is None else {"margin": value})
            )
        rank = same.int() - torch.eye(len(rows), dtype=torch.int32) * 2  # positives first, the row itself last
        order = torch.argsort(rank, dim=1, descending=True, stable=True)[:, :-1]
        positives = sizes[classes] - 1
        ideal = torch.cumsum(1 / torch.log2(torch.arange(2.0, 2.0 + int(positives.max()))), 0)[positives - 1]
        batch = {
            "rating": same.gather(1, order).float(),
            "user_id": rows,
            "num_pos_items": positives,
            "ideal_dcg": ideal,
            "user_item_id": rows[:, None] * n + rows[order],
        }
        return made[0](similarities.gather(1, order), batch)  # type: ignore[no-any-return]

    return of_batch


@dataclass(frozen=True)
class Entry:
    make: Maker
    grid: tuple[float, ...]
    needs: str = "apsvm"


METRIC_LEARNING, LIBAUC = "pytorch_metric_learning", "libauc"
ENTRIES: dict[str, Entry] = {
    "cross-entropy": Entry(cross_entropy, (0.0, 0.1, 0.2)),
    "cross-entropy + Smooth-AP": Entry(cross_entropy_and_smooth_ap, (0.3, 1.0, 3.0)),
    "AP hinge": Entry(scaled_hinge, (1.0, 3.0, 10.0)),
    "AP ramp": Entry(of_lists(RankingRampLoss, "eps"), (0.03, 0.1, 0.3)),
    "direct loss": Entry(of_lists(DirectLoss, "eps"), (0.1, 0.3, 1.0)),
    "Smooth-AP": Entry(of_lists(SmoothAPLoss, "tau"), (0.01, 0.03, 0.1)),
    "Smooth-AP, logistic": Entry(of_lists(lambda **o: SmoothAPLoss(kernel="logistic", **o), "tau"), (0.01, 0.03, 0.1)),
    "Recall@K": Entry(of_lists(RecallAtKLoss, "tau"), (0.01, 0.03, 0.1)),
    "blackbox AP": Entry(of_lists(BlackboxAPLoss, "margin"), (0.02, 0.2, 0.5)),
    "SoDeep, AP": Entry(of_lists(lambda lam=10: SoDeepMAPLoss(f"laplace({lam:g})"), "lam"), (3.0, 10.0, 30.0)),
    "SoDeep, triplets": Entry(
        of_lists(lambda lam=10: RankTripletLoss(f"laplace({lam:g})", both=False), "lam"), (3.0, 10.0, 30.0)
    ),
    "triplets, mined": Entry(
        of_metric_learning("TripletMarginLoss", "margin", "TripletMarginMiner"), (0.05, 0.1, 0.2), METRIC_LEARNING
    ),
    "multi-similarity": Entry(
        of_metric_learning("MultiSimilarityLoss", "base", "MultiSimilarityMiner"), (0.3, 0.5, 0.7), METRIC_LEARNING
    ),
    "FastAP": Entry(of_metric_learning("FastAPLoss", "num_bins"), (5, 10, 20), METRIC_LEARNING),
    "its Smooth-AP": Entry(of_metric_learning("SmoothAPLoss", "temperature"), (0.01, 0.03, 0.1), METRIC_LEARNING),
    "LibAUC, AP": Entry(libauc_ap, (0.3, 1.0, 2.0), LIBAUC),
    "LibAUC, NDCG": Entry(libauc_ndcg, (0.3, 1.0, 2.0), LIBAUC),
}


def batches(classes: Tensor, steps: int, seed: int) -> Iterator[Tensor]:
    """Rows of as many classes as there are, at most 25, as many of each."""
    rng = np.random.default_rng(seed)
    members = [np.flatnonzero(classes.numpy() == c) for c in range(int(classes.max()) + 1)]
    ways = max(k for k in range(1, min(len(members), 25) + 1) if BATCH % k == 0)
    for _ in range(steps):
        drawn = rng.choice(len(members), ways, replace=False)
        yield torch.from_numpy(
            np.concatenate([rng.choice(members[c], BATCH // ways, len(members[c]) < BATCH // ways) for c in drawn])
        )


def embed(network: nn.Module, X: Tensor) -> Tensor:
    return nn.functional.normalize(network(X), dim=1)


def train(make: Maker, value: float | None, images: Images, steps: int, seed: int) -> tuple[nn.Module, float]:
    """The network, and the milliseconds of a step."""
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Linear(images.X.shape[1], 128), nn.ReLU(), nn.Linear(128, EMBEDDING))
    loss, took = make(value, images), []
    learned = [*network.parameters(), *(loss.parameters() if isinstance(loss, nn.Module) else ())]
    optimizer = torch.optim.Adam(learned, lr=2e-3)
    for rows in batches(images.classes, steps, seed):
        began = time.process_time_ns()
        optimizer.zero_grad()
        outputs = network(images.X[rows])
        embeddings = outputs if isinstance(loss, OfClasses) else nn.functional.normalize(outputs, dim=1)
        loss(embeddings, images.classes[rows], rows).backward()
        took.append(time.process_time_ns() - began)
        optimizer.step()
    return network, float(np.median(took)) / 1e6


@torch.no_grad()
def judge(network: nn.Module, images: Images) -> tuple[float, float]:
    """(R@1, mAP@R), each image against all others."""
    embeddings, classes = embed(network, images.X), images.classes
    first, precision = [], []
    for rows in torch.arange(len(classes)).split(1000):
        similarities = embeddings[rows] @ embeddings.T
        similarities[torch.arange(len(rows)), rows] = -torch.inf
        order = similarities.argsort(dim=1, descending=True)[:, : int(torch.bincount(classes).max())]
        right = (classes[order] == classes[rows, None]).double()
        R = (torch.bincount(classes)[classes[rows]] - 1).unsqueeze(1)
        places = torch.arange(1, right.shape[1] + 1)
        within = right * (places <= R)
        precision.append((within * within.cumsum(1) / places).sum(1) / R.squeeze(1))
        first.append(right[:, 0])
    return float(torch.cat(first).mean()), float(torch.cat(precision).mean())


def choose(entry: Entry, seen: Images, steps: int) -> float:
    """Of the grid, by mAP@R on a third of the training classes."""
    fit, held_out = seen.halves(2 / 3, np.random.default_rng(0))
    tried = {value: judge(train(entry.make, value, fit, steps, 0)[0], held_out)[1] for value in entry.grid}
    return max(tried, key=lambda value: tried[value])


def run(entry: Entry, images: Images, steps: int, seed: int) -> dict[str, float]:
    """As the loss comes, and with the chosen value of its parameter."""
    seen, unseen = halves(images, seed)
    value = choose(entry, seen, steps)
    network, milliseconds = train(entry.make, None, seen, steps, seed)
    first, precision = judge(network, unseen)
    chosen = judge(train(entry.make, value, seen, steps, seed)[0], unseen)
    measured = {"R@1": first, "mAP@R": precision, "R@1, chosen": chosen[0], "mAP@R, chosen": chosen[1]}
    return {**measured, "value": value, "ms": milliseconds}


def halves(images: Images, seed: int) -> tuple[Images, Images]:
    """What is trained on, and the classes that are not seen."""
    return images.halves(0.5, np.random.default_rng(seed))


COLUMNS = ("R@1", "mAP@R", "R@1, chosen", "mAP@R, chosen", "ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", metavar="DATA", default=["digits", *LETTERS])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--only", nargs="+", choices=ENTRIES, metavar="LOSS", default=list(ENTRIES))
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    results: dict[tuple[str, str, int], dict[str, Any]] = {}
    if options.json and Path(options.json).exists():
        for line in Path(options.json).read_text().splitlines():
            result = json.loads(line)
            results[result["set"], result["loss"], result["seed"]] = result
    for data in options.data:
        images, title = read(data), Path(data).name
        names = [name for name in options.only if find_spec(ENTRIES[name].needs)]
        for seed in range(options.seeds):
            for name in names:
                if (title, name, seed) in results:
                    continue
                measured = run(ENTRIES[name], images, options.steps, seed)
                result = {"set": title, "loss": name, "seed": seed, **measured}
                results[title, name, seed] = result
                if options.json:
                    with Path(options.json).open("a") as file:
                        file.write(json.dumps(result) + "\n")
        print(
            f"\n{title}: {len(images.classes)} images, {int(images.classes.max()) + 1} classes, {options.seeds} seeds"
        )
        print("| loss | " + " | ".join(COLUMNS) + " |\n|---|" + "---|" * len(COLUMNS))
        pixels = [judge(nn.Identity(), halves(images, seed)[1]) for seed in range(options.seeds)]
        print("| pixels | {:.3f} | {:.3f} | | | |".format(*np.mean(pixels, axis=0)))
        for name in names:
            rows = np.array([[results[title, name, seed][c] for c in COLUMNS] for seed in range(options.seeds)])
            error = rows.std(0, ddof=1) / np.sqrt(len(rows)) if len(rows) > 1 else rows[0] * 0
            cells = [f"{m:.3f} ± {e:.3f}" for m, e in zip(rows.mean(0)[:-1], error[:-1], strict=True)]
            print(f"| {name} | " + " | ".join(cells) + f" | {rows[:, -1].min():.2f} |", flush=True)


if __name__ == "__main__":
    main()
