"""What the commands share: exit codes, messages, the options that say how a data file is read, and the readers."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click
from click.shell_completion import CompletionItem

from apsvm.cli.parameter_type import ParamType
from apsvm.files import standard_output

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.model import LinearRanker, Model, RankerSet

INTERNAL = 1
STOPPED_EARLY = 3
BAD_DATA = 65
NO_INPUT = 66
MISSING = 69
CANNOT_WRITE = 74
INTERRUPTED = 130
TERMINATED = 143
CLOSED_PIPE = 141


def say(message: str) -> None:
    """One line on stderr. Nobody reading stderr is no reason to stop working."""
    if sys.stderr is None:
        return
    with suppress(OSError):
        click.echo(message if message.startswith(" ") else f"apsvm: {message}", err=True)


class Failure(click.ClickException):
    """Ends the command with ``message`` on stderr and ``code``."""

    exit_code: int  # type: ignore[misc]

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = code

    def show(self, file: Any = None) -> None:
        say(f"error: {self.message}")


def plain_float(text: str) -> float:
    """float(), without what only Python's own literals have: underscores and digits of other scripts. ValueError."""
    if "_" in text or not text.isascii():
        raise ValueError(f"not a number: {text!r}")
    return float(text)


class Number(ParamType[float]):
    """A finite number between bounds (click's own FloatRange lets NaN through)."""

    name = "number"

    def __init__(self, low: float = -math.inf, high: float = math.inf, *, open_low: bool = False) -> None:
        self.low, self.high, self.open_low = low, high, open_low

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = plain_float(value) if isinstance(value, str) else float(value)
        except (TypeError, ValueError):
            self.fail(f"expected a number, found {value!r}", param, ctx)
        low_enough = number > self.low if self.open_low else number >= self.low
        if not (math.isfinite(number) and low_enough and number <= self.high):
            self.fail(f"expected a finite number{self._range()}, found {value!r}", param, ctx)
        return number

    def _range(self) -> str:
        bounds = []
        if self.low > -math.inf:
            bounds.append(f"{'above' if self.open_low else 'of at least'} {self.low:g}")
        if self.high < math.inf:
            bounds.append(f"of at most {self.high:g}")
        return " " + " and ".join(bounds) if bounds else ""


class Multiple(NamedTuple):
    """So many times a default that depends on the data: ``10x``; ``auto`` is ``1x``."""

    factor: float

    def __str__(self) -> str:
        return f"{self.factor:g}x"


#: A range of more values than this is a mistake.
_MOST_VALUES = 1000


class NumberList(ParamType[tuple["float | Multiple", ...]]):
    """One number or several with commas between them, each as ``Number``; ``from:to:log10`` is a range of decades, each
    value 10 times the one before, ``log2`` of doublings, and so on. ``multiples``: any may be a ``Multiple``."""

    name = "numbers"

    def __init__(
        self, low: float = -math.inf, high: float = math.inf, *, open_low: bool = False, multiples: bool = False
    ) -> None:
        self._number = Number(low, high, open_low=open_low)
        self._multiples = multiples

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float | Multiple, ...]:
        # A tuple: from a configuration file, or converted already.
        words = value if isinstance(value, tuple) else value.split(",") if isinstance(value, str) else [value]
        values: list[float | Multiple] = []
        for word in words:
            ranged = isinstance(word, str) and ":" in word
            values += self._range(word, param, ctx) if ranged else [self._one(word, param, ctx)]
        return tuple(values)

    def _one(self, word: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | Multiple:
        if isinstance(word, Multiple):
            return word
        text = word.strip().lower() if isinstance(word, str) else ""
        if self._multiples and text == "auto":
            return Multiple(1.0)
        if self._multiples and text.endswith("x"):
            return Multiple(self._number.convert(text[:-1], param, ctx))
        return self._number.convert(word, param, ctx)

    def _range(
        self, text: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[float] | list[Multiple]:
        first, to, *steps = text.split(":")
        try:
            base = plain_float(steps[0].strip().lower().removeprefix("log"))
            if len(steps) != 1 or not steps[0].strip().lower().startswith("log") or not 1.0 < base < math.inf:
                raise ValueError
        except (ValueError, IndexError):
            self.fail(f"expected a range like 0.01:100:log10 or 1:64:log2, found {text!r}", param, ctx)
        ends = [self._one(end, param, ctx) for end in (first, to)]
        start, end = (value.factor if isinstance(value, Multiple) else value for value in ends)
        if isinstance(ends[0], Multiple) != isinstance(ends[1], Multiple) or not 0.0 < start <= end:
            self.fail(f"expected a range from a number above 0 to one that is not smaller, found {text!r}", param, ctx)
        count = math.floor((math.log(end) - math.log(start)) / math.log(base) + 1e-9) + 1
        if count > _MOST_VALUES:
            self.fail(f"expected a range of at most {_MOST_VALUES} values, found {text!r}", param, ctx)
        # As written by hand: 0.3 and not 0.30000000000000004.
        numbers = [float(f"{start * base**at:.12g}") for at in range(count)]
        return [Multiple(number) for number in numbers] if isinstance(ends[0], Multiple) else numbers


class Several(ParamType[tuple[Any, ...]]):
    """One or several with commas between them, each as ``one`` reads it, none twice."""

    name = "several"

    def __init__(self, one: ParamType[Any]) -> None:
        self.one = one

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        words = value if isinstance(value, tuple) else str(value).split(",")
        found = tuple(self.one.convert(word.strip(), param, ctx) for word in words)
        if len(set(found)) < len(found):
            self.fail(f"found one twice in {value!r}", param, ctx)
        return found

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        metavar = self.one.get_metavar(param, ctx)
        return metavar and f"{metavar},…"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        before, comma, last = incomplete.rpartition(",")
        found = self.one.shell_complete(ctx, param, last)
        return [CompletionItem(f"{before}{comma}{item.value}") for item in found]


def put(text: str) -> None:
    """``text`` and a line end on standard output; failures end the command."""
    with writing("-"):
        stream = standard_output()
        stream.write(text.encode(errors="surrogateescape") + b"\n")
        stream.flush()


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turns what can go wrong with an input into a ``Failure``."""
    from apsvm.data.dataset import DataError
    from apsvm.model import ModelError

    try:
        yield
    except (DataError, ModelError) as error:
        raise Failure(BAD_DATA, str(error)) from None
    except OSError as error:
        name = "standard input" if what == "-" else what
        raise Failure(NO_INPUT, f"cannot read {name}: {error.strerror or error}") from None


@contextmanager
def writing(what: str) -> Iterator[None]:
    """Turns what can go wrong with an output into a ``Failure``; a closed pipe stays what it is."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        name = "standard output" if what == "-" else what
        raise Failure(CANNOT_WRITE, f"cannot write {name}: {error.strerror or error}") from None


def refuse_same_file(output: str, **inputs: str | None) -> None:
    """An output that is also an input would destroy it."""
    if not output:
        raise click.UsageError("the name of a file to write is empty")
    if output == "-" or not (os.path.isfile(output) or os.path.isdir(output)):
        return  # nothing there, or a device
    for role, path in inputs.items():
        if path is None:
            continue
        try:
            identity = os.fstat(0) if path == "-" else os.stat(path)
        except OSError:
            continue
        if os.path.samestat(os.stat(output), identity):
            raise click.UsageError(f"{output!r} is the {role.replace('_', ' ')} file: it would be overwritten")


#: Files that belong to a matrix. What the command line says of them and of --multilabel waits for ``read_rows`` in the
#: context.
_BESIDE_A_MATRIX = {
    "groups": ("an integer", ""),
    "labels": ("a number", " A .npy matrix of 0 and 1 has a column a label."),
}


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    ctx.meta[f"apsvm.{param.name}"] = value


CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def how_to_read(command: CommandT) -> CommandT:
    """The options that every command reading a data file takes; see ``read_rows``."""
    for option in (
        click.option(
            "--dtype",
            type=click.Choice(["float64", "float32"]),
            default="float64",
            show_default=True,
            help="Storage of the feature values; sums are always float64.",
        ),
        click.option("--sort-features", is_flag=True, help="Accept rows whose feature indices are not ascending."),
        click.option(
            "--multilabel",
            is_flag=True,
            expose_value=False,
            callback=_remember,
            help="Accept rows of several labels (1,4) or of none.",
        ),
        *(
            click.option(
                f"--{what}",
                metavar="FILE",
                expose_value=False,
                callback=_remember,
                help=f"The {what} of a .npz or .npy matrix: .npy, or {number} a line.{more}",
            )
            for what, (number, more) in _BESIDE_A_MATRIX.items()
        ),
    ):
        command = option(command)
    return command


def how_it_is_read(given: Mapping[str, Any]) -> dict[str, Any]:
    """What the options of ``how_to_read`` are set to, files by their whole names, as JSON values; ``given``: the
    current command's."""
    meta = click.get_current_context().meta
    beside = {what: meta.get(f"apsvm.{what}") for what in _BESIDE_A_MATRIX}
    return {
        "dtype": given["dtype"],
        "sort_features": given["sort_features"],
        "multilabel": meta.get("apsvm.multilabel", False),
        **{what: None if path is None else os.path.abspath(path) for what, path in beside.items()},
    }


def read_as(told: Mapping[str, Any]) -> None:
    """What ``how_it_is_read`` told holds for the current command, as far as it was not said otherwise."""
    meta = click.get_current_context().meta
    for what in _BESIDE_A_MATRIX:
        meta[f"apsvm.{what}"] = meta.get(f"apsvm.{what}") or told.get(what)
    meta["apsvm.multilabel"] = meta.get("apsvm.multilabel", False) or told.get("multilabel", False)


def given_by_user(name: str) -> bool:
    """Whether the current command's option was set by anyone: a flag, a variable or a configuration file."""
    source = click.get_current_context().get_parameter_source(name)
    return source not in (None, click.core.ParameterSource.DEFAULT)


def thread_count(asked: int) -> int:
    """What ``--threads`` means: 0 is one a core that this process may use."""
    return asked or len(os.sched_getaffinity(0))


def memory() -> int:
    """Bytes of memory that this machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def read_rows(
    path: str,
    *,
    dtype: str,
    sort_features: bool,
    zero_based: bool,
    n_features: int | None = None,
    threads: int = 0,
    second: bool = False,
    multilabel: bool = False,
    **more: Any,
) -> Dataset:
    """``read_data`` with the options of ``how_to_read``; failures end the command. 0 threads: one a core;
    ``multilabel``: whether or not the user said so.

    A data folder knows from where its features count. It is asked to agree only by a model (`n_features`) or by a
    user who said so, not by the default of ``--zero-based``. ``second``: not the command's DATA, to which ``--labels``
    and ``--groups`` belong.
    """
    import numpy as np

    from apsvm.data.reading import read_data

    ctx = click.get_current_context()
    said = given_by_user("zero_based")
    beside: dict[str, Any] = {} if second else {what: ctx.meta.get(f"apsvm.{what}") for what in _BESIDE_A_MATRIX}
    place = " and ".join([path, *(file for file in beside.values() if file is not None)])
    with reading(place):
        return read_data(
            path,
            dtype=np.dtype(dtype).type,
            sort_features=sort_features,
            zero_based=zero_based,
            any_base=not said and n_features is None,
            n_features=n_features,
            threads=thread_count(threads),
            multilabel=multilabel or ctx.meta.get("apsvm.multilabel", False),
            **beside,
            **more,
        )


def read_model(path: str) -> LinearRanker:
    """``load_model``; failures end the command."""
    from apsvm.model import load_model

    with reading(path):
        return load_model(path)


def read_any_model(path: str) -> Model:
    """``load_any_model``; failures end the command."""
    from apsvm.model import load_any_model

    with reading(path):
        return load_any_model(path)


def one_ranker(model: Model, label: float | None, path: str) -> LinearRanker:
    """The linear ranker of the file ``path``, or of a set that of the class ``label``; else the command ends."""
    from apsvm.data.dataset import shown_label
    from apsvm.model import LinearRanker, RankerSet

    if isinstance(model, LinearRanker):
        return model
    if not isinstance(model, RankerSet):
        raise Failure(BAD_DATA, f"{path}: expected {LinearRanker.what}, found {model.what}")
    if label in model.classes:
        assert label is not None
        return model.ranker(label)
    known = ", ".join(shown_label(known) for known in model.classes)
    wanted = "choose one by --positive-label" if label is None else f"none of them is {shown_label(label)}"
    raise Failure(BAD_DATA, f"{path}: it has a ranker for each of the classes {known}: {wanted}")


def reads_several_labels(model: Model) -> bool:
    """Whether the rows of its data may have several labels or none."""
    from apsvm.model import RankerSet

    return isinstance(model, RankerSet) or bool(model.header.get("multilabel"))


def rows_for(model: Model, path: str, *, ignore_unknown: bool, unlabelled: bool = False, **more: Any) -> Dataset:
    """The rows of ``path`` read the way the model's training file was; ``unlabelled``: a matrix needs no labels."""
    data = read_rows(
        path,
        zero_based=model.zero_based,
        n_features=model.width,
        ignore_unknown=ignore_unknown,
        unlabelled=unlabelled,
        multilabel=reads_several_labels(model),
        **more,
    )
    if data.unknown_features:
        say(f"{data.unknown_features} feature values unknown to the model were ignored")
    return data


def score_rows(
    model: LinearRanker | RankerSet,
    path: str,
    *,
    ignore_unknown: bool,
    dtype: str,
    sort_features: bool,
    unlabelled: bool = False,
) -> tuple[Dataset, Any]:
    """``rows_for``, and the rows' scores: (n,) float64, or (n, k) by a set of k rankers."""
    data = rows_for(
        model, path, ignore_unknown=ignore_unknown, unlabelled=unlabelled, dtype=dtype, sort_features=sort_features
    )
    return data, model.score(data.X)
