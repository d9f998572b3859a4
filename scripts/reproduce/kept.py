"""Common parts of the scripts that repeat the papers, except the experiments: default data, tables kept as they are
printed, finished work that a later run takes up, and figures of curves, left out without matplotlib."""

from __future__ import annotations

import argparse
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeVar

import joblib
from sklearn.datasets import dump_svmlight_file, load_diabetes, load_digits

from apsvm._support.files import write_whole
from apsvm.report.pictures.base import Picture
from apsvm.report.pictures.style import MissingMatplotlibError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What a script takes where no DATA is named: sets that scikit-learn brings, with their labels or targets.
BUILT_IN = {"digits": load_digits, "diabetes": load_diabetes}
#: Options that say how many pieces of work there are, and decide nothing of a single one.
AMOUNTS = ("output", "parts", "splits", "seeds", "classes")

T = TypeVar("T")


def data_files(parser: argparse.ArgumentParser, named: Sequence[str], otherwise: str, folder: Path) -> list[str]:
    """The files that are ``named``, of which each must be there, or else a set that scikit-learn brings, written into
    ``folder`` as svmlight text."""
    missing = [name for name in named if not Path(name).is_file()]
    if missing:
        instead = f"without any, scikit-learn's {otherwise} are taken"
        parser.error(f"no such file: {', '.join(missing)}; DATA are svmlight files; {instead}")
    if named:
        return list(named)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{otherwise}.svm"
    X, y = BUILT_IN[otherwise](return_X_y=True)
    dump_svmlight_file(X, y, str(path), zero_based=False)
    print(f"no DATA named: scikit-learn's {otherwise} ({path})", file=sys.stderr)
    return [str(path)]


class _Both:
    """Writes go to two streams."""

    def __init__(self, first: TextIO, second: TextIO) -> None:
        self._streams = (first, second)

    def write(self, text: str) -> int:
        for stream in self._streams:
            stream.write(text)
            stream.flush()
        return len(text)

    def flush(self) -> None:
        for stream in self._streams:
            stream.flush()


@contextmanager
def tables_kept(folder: Path) -> Iterator[None]:
    """Copies what is printed within into tables.md of ``folder``, line by line."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "tables.md"
    with path.open("w", encoding="utf-8") as file, redirect_stdout(_Both(sys.stdout, file)):  # type: ignore[type-var]
        yield
    print(path, file=sys.stderr)


class Pieces:
    """The results of finished pieces of work (a class, a seed, a sorter), in the folder ``pieces`` of a command's
    --output: a later run with the same options takes them from there, and says so. Remove the folder after a change of
    the data or of the program.

    Calling it with the name of a piece and the work returns the result.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        deciding = {name: value for name, value in vars(options).items() if name not in AMOUNTS}
        self._folder = options.output / "pieces" / joblib.hash(deciding)[:16]

    def __call__(self, name: str, work: Callable[[], T]) -> T:
        path = self._folder / f"{name}.pickle"
        if path.exists():
            done = time.strftime("%Y-%m-%d %H:%M", time.localtime(path.stat().st_mtime))
            print(f"{name}: done on {done} ({path})", file=sys.stderr, flush=True)
            result: T = pickle.loads(path.read_bytes())
            return result
        result = work()
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, pickle.dumps(result))
        print(f"{name} done", file=sys.stderr, flush=True)
        return result


def draw(save: Callable[[], object]) -> None:
    """Figures come last; where there is no matplotlib they are left out, and that is said."""
    try:
        save()
    except MissingMatplotlibError as error:
        print(f"figures left out: {error}", file=sys.stderr)


@dataclass(frozen=True)
class Curves(Picture):
    """lines : name → x and y; labels : of the axes; logarithmic : which of them, "", "y" or "xy"; title : above them"""

    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    labels: tuple[str, str]
    logarithmic: str = ""
    title: str = ""

    def draw(self, figure: Figure, width: float) -> None:
        axes = figure.add_subplot(**{f"{axis}scale": "log" for axis in self.logarithmic})
        for name, (x, y) in self.lines.items():
            axes.plot(x, y, label=name, linewidth=1)
        axes.set_xlabel(self.labels[0])
        axes.set_ylabel(self.labels[1])
        axes.set_title(self.title)
        axes.legend()
