"""Section 4.3 of Mohapatra, Rolínek, Jawahar, Kolmogorov and Kumar, "Efficient Optimization for Rank-based Loss
Functions" (CVPR 2018), by gradients: networks trained on the AP and the NDCG hinge, and on the 0-1 loss.

    python scripts/reproduce/quicksort_2018_deep.py [--cifar10 FOLDER] [--seeds 5] [--epochs 200] [--rows 360]
        [--noise 0] [--output bench-output/quicksort-2018-deep] [--quick]

The paper trains the layers of a network one by one, each by a structured SVM, and ranks the images of CIFAR-10 for each
class: average precision 85.28 by the AP loss against 84.22 by the 0-1 loss, NDCG 96.14 by the NDCG loss against 95.31.
That is another way to train (quicksort_2018.py has it on small networks); here all layers move together. A
small convolutional network with an output a class is trained on cross-entropy for EPOCHS passes, and from there on each
loss for EPOCHS more, cross-entropy among them, so that all have one budget. Batches of 256, Adam, one thread.

Data: scikit-learn's 8×8 digits, ROWS of them to train on and the rest to test, drawn anew for each seed; or, with
--cifar10, the folder of the binary version of CIFAR-10 (data_batch_1.bin … test_batch.bin), all of its 50,000 training
images. --noise draws the labels of a share of the rows to train on anew. Printed: the mean over classes and seeds of
the test rows' AP and NDCG in per cent, what a loss has more than the 0-1 loss and than more cross-entropy, paired over
the seeds, and the mean on the rows that were trained on.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from experiments import paired, table
from kept import Pieces, tables_kept
from sklearn.datasets import load_digits
from torch import Tensor, nn

from apsvm.metrics.evaluate import evaluate
from apsvm.torch import RankingHingeLoss, RankingRampLoss, SmoothAPLoss

BATCH = 256
METRICS = ("AP", "nDCG")
PAPER = {"0-1": (84.22, 95.31), "AP hinge": (85.28, None), "NDCG hinge": (None, 96.14)}

#: Scores (rows, classes) and which are positive, of the same shape, to a number.
Criterion = Callable[[Tensor, Tensor], Tensor]


class Images(NamedTuple):
    """images (n, channels, side, side) float32; labels (n,) int64, 0..9."""

    images: Tensor
    labels: Tensor

    def positive(self) -> Tensor:
        """(n, 10) bool."""
        return nn.functional.one_hot(self.labels, 10).bool()


def hinge_of_rows(scores: Tensor, positive: Tensor) -> Tensor:
    """The hinge of the 0-1 loss: each row for itself."""
    return (1.0 - torch.where(positive, scores, -scores)).clamp(min=0).mean()


def criteria() -> Mapping[str, Criterion]:
    """By name; a list of a ranking loss is the batch, once for each class."""

    def of_classes(loss: nn.Module) -> Criterion:
        return lambda scores, positive: loss(scores, positive, dim=0)

    return {
        "more BCE": lambda scores, positive: nn.functional.binary_cross_entropy_with_logits(scores, positive.float()),
        "0-1": hinge_of_rows,
        "AP hinge": of_classes(RankingHingeLoss("ap")),
        "NDCG hinge": of_classes(RankingHingeLoss("ndcg")),
        "AP ramp": of_classes(RankingRampLoss("ap")),
        "Smooth-AP": of_classes(SmoothAPLoss()),
    }


def network(images: Tensor) -> nn.Module:
    """Two convolutions with pooling behind each, and an output a class."""
    channels, side = images.shape[1], images.shape[2]
    wide = 16 if side < 16 else 32
    return nn.Sequential(
        nn.Conv2d(channels, wide, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(wide, 2 * wide, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(2 * wide * (side // 4) ** 2, 10),
    )  # fmt: skip


def train(net: nn.Module, data: Images, criterion: Criterion, epochs: int, rate: float) -> None:
    optimiser = torch.optim.Adam(net.parameters(), lr=rate)
    positive = data.positive()
    for _ in range(epochs):
        for batch in torch.randperm(len(data.labels)).split(BATCH):
            optimiser.zero_grad()
            criterion(net(data.images[batch]), positive[batch]).backward()
            optimiser.step()


def measure(net: nn.Module, data: Images) -> dict[str, float]:
    """The mean over the classes of each metric, in per cent."""
    with torch.no_grad():
        scores = torch.cat([net(part) for part in data.images.split(2048)]).double().numpy()
    of_class = [evaluate(METRICS, scores[:, c], (data.labels == c).numpy()).values for c in range(10)]
    return {name: 100.0 * float(np.mean([values[name] for values in of_class])) for name in of_class[0]}


def digits(rows: int, seed: int) -> tuple[Images, Images]:
    """``rows`` of the digits to train on, and the others."""
    X, y = load_digits(return_X_y=True)
    images = torch.from_numpy((X / 16.0 - 0.5).astype(np.float32)).view(-1, 1, 8, 8)
    labels = torch.from_numpy(y)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(y)))
    training, test = order[:rows], order[rows:]
    return Images(images[training], labels[training]), Images(images[test], labels[test])


def cifar10(folder: Path) -> tuple[Images, Images]:
    """The training and the test images. Raises SystemExit where a file is not what it should be."""

    def read(names: list[str]) -> Images:
        records = []
        for name in names:
            content = np.fromfile(folder / name, dtype=np.uint8)
            if content.size == 0 or content.size % 3073:
                raise SystemExit(f"{folder / name}: expected records of 3073 bytes, found {content.size} bytes")
            records.append(content.reshape(-1, 3073))
        rows = np.concatenate(records)
        if rows[:, 0].max() > 9:
            raise SystemExit(f"{folder}: expected labels 0 to 9, found {rows[:, 0].max()}")
        images = torch.from_numpy(rows[:, 1:].astype(np.float32) / 255.0 - 0.5).view(-1, 3, 32, 32)
        return Images(images, torch.from_numpy(rows[:, 0].astype(np.int64)))

    try:
        return read([f"data_batch_{number}.bin" for number in range(1, 6)]), read(["test_batch.bin"])
    except OSError as error:
        raise SystemExit(str(error)) from None


def with_noise(data: Images, share: float, seed: int) -> Images:
    """The labels of a ``share`` of the images drawn anew."""
    rng = np.random.default_rng(seed)
    drawn = torch.from_numpy(rng.integers(10, size=len(data.labels)))
    return data._replace(labels=torch.where(torch.from_numpy(rng.random(len(drawn)) < share), drawn, data.labels))


def one_seed(seed: int, options: argparse.Namespace) -> dict[str, tuple[dict[str, float], dict[str, float]]]:
    """By loss: each metric of the test rows, and of the rows trained on."""
    data, test = digits(options.rows, seed) if options.cifar10 is None else cifar10(options.cifar10)
    data = with_noise(data, options.noise, seed)
    torch.manual_seed(seed)
    start = network(data.images)
    losses = criteria()
    train(start, data, losses["more BCE"], options.epochs, options.rate)
    results = {"BCE": (measure(start, test), measure(start, data))}
    for name, criterion in losses.items():
        net = copy.deepcopy(start)
        torch.manual_seed(1000 + seed)  # every loss sees the same batches
        train(net, data, criterion, options.epochs, options.rate)
        results[name] = measure(net, test), measure(net, data)
    return results


def print_table(results: list[dict[str, tuple[dict[str, float], dict[str, float]]]]) -> None:
    """See the module."""
    for at, metric in enumerate(METRICS):
        test, training = (
            {loss: np.array([of_seed[loss][part][metric] for of_seed in results]) for loss in results[0]}
            for part in (0, 1)
        )
        rows = []
        for loss, values in test.items():
            paper = PAPER.get(loss, (None, None))[at]
            differences = (cell for other in ("0-1", "more BCE") for cell in paired(values - test[other]))
            cells = [f"{values.mean():.2f}", *differences, f"{training[loss].mean():.2f}"]
            rows.append([loss, *cells, "-" if paper is None else f"{paper:.2f}"])
        heading = [f"test {metric}, %", "mean", "minus 0-1", "wins", "minus more BCE", "wins", "in training", "paper"]
        print(f"\n{table(heading, rows)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cifar10", type=Path, metavar="FOLDER", help="of the binary version")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=200, help="of cross-entropy, and of each loss after it")
    parser.add_argument("--rows", type=int, default=360, help="digits to train on")
    parser.add_argument("--noise", type=float, default=0.0, help="share of their labels that are drawn anew")
    parser.add_argument("--rate", type=float, default=0.003)
    parser.add_argument("--output", type=Path, default=Path("bench-output/quicksort-2018-deep"))
    parser.add_argument("--quick", action="store_true", help="one seed and five epochs: to see that it runs")
    options = parser.parse_args()
    if options.quick:
        options.seeds, options.epochs = 1, 5
    if options.cifar10 is not None and not (options.cifar10 / "data_batch_1.bin").is_file():
        parser.error(f"{options.cifar10}: no data_batch_1.bin in it; without --cifar10 scikit-learn's digits are taken")
    torch.set_num_threads(1)
    data = "digits" if options.cifar10 is None else "CIFAR-10"
    epochs = f"{options.epochs} + {options.epochs} epochs"
    pieces = Pieces(options)
    with tables_kept(options.output):
        print(f"{data}, noise {options.noise}, {options.seeds} seeds, {epochs}; the paper's figures are of CIFAR-10")
        print_table([pieces(f"seed {seed}", partial(one_seed, seed, options)) for seed in range(options.seeds)])


if __name__ == "__main__":
    main()
