"""What driver and workers say to one another, kept small: runs in the place of arrays, the narrowest counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import GenericAlias, NoneType, UnionType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray

#: What a method of a shard is called with, and what it returns: its signature says what these are.
Arguments: TypeAlias = tuple[object, ...]
Reply: TypeAlias = Any
#: What the vectors of a shard are told to do before it answers: names of operations and their arguments.
Programme: TypeAlias = Sequence[Arguments]

#: What a number, a name or the frame of a message takes, about.
FRAME = 8


class Runs(NamedTuple):
    """An array as the runs of its equal entries: ``values`` (r,), each ``lengths`` (r,) times."""

    values: AnyArray
    lengths: AnyArray

    @classmethod
    def of(cls, array: AnyArray) -> Runs:
        begins = np.flatnonzero(np.r_[array.size > 0, array[1:] != array[:-1]])
        return cls(array[begins], np.diff(np.append(begins, array.size)))

    def expanded(self) -> AnyArray:
        return np.repeat(self.values, self.lengths)


def runs_where(counts_for: NDArray[np.bool_], array: AnyArray) -> Runs:
    """Runs that agree with ``array`` where ``counts_for`` (n,) says that it counts, and are as few as that allows."""
    places = np.flatnonzero(counts_for)
    values = array[places]
    begins = np.flatnonzero(np.r_[values.size > 0, values[1:] != values[:-1]])
    ends = np.append(places[begins[1:]], array.size)[: begins.size]
    return Runs(values[begins], narrow(np.diff(ends, prepend=0)))


def narrow(counts: AnyArray) -> AnyArray:
    """Counts ≥ 0 in the narrowest type that holds them."""
    return counts.astype(np.min_scalar_type(int(counts.max(initial=0))))


class Few(NamedTuple):
    """Counts of which most are 0: those that are not, ``counts`` (k,), and how far each stands behind the one before,
    ``steps`` (k,), the first behind place 0; ``size`` in all."""

    size: int
    steps: AnyArray
    counts: AnyArray


def packed(counts: NDArray[np.int64]) -> AnyArray | Few:
    """Counts ≥ 0 in the fewer bytes: all of them, or those above 0 with their places."""
    whole, places = narrow(counts), np.flatnonzero(counts)
    few = Few(counts.size, narrow(np.diff(places, prepend=0)), whole[places])
    return few if size_of(few) < size_of(whole) else whole


def added(messages: Sequence[AnyArray | Few]) -> NDArray[np.int64]:
    """The sums of counts that were ``packed``."""
    require_one_size("counts", [counts.size for counts in messages])
    total = np.zeros(messages[0].size, dtype=np.int64)
    for counts in messages:
        if isinstance(counts, Few):
            total[np.cumsum(counts.steps, dtype=np.int64)] += counts.counts
        else:
            total += counts
    return total


def require_one_size(what: str, sizes: Iterable[int]) -> None:
    """Raises ValueError where arrays that are to be added differ in length."""
    found = sorted(set(sizes))
    if len(found) > 1:
        raise ValueError(f"{what} of the workers differ in number: {' and '.join(map(str, found))}")


def size_of(message: object) -> int:
    """About how many bytes a message takes, O(what it consists of) and not O(its bytes)."""
    if isinstance(message, np.ndarray):
        return FRAME + int(message.nbytes)
    if isinstance(message, str | bytes):
        return FRAME + len(message)
    if is_dataclass(message) and not isinstance(message, type):
        return FRAME + sum(size_of(getattr(message, field.name)) for field in fields(message))
    if isinstance(message, dict):
        return FRAME + sum(size_of(name) + size_of(value) for name, value in message.items())
    if isinstance(message, Iterable):
        return FRAME + sum(size_of(part) for part in message)
    return FRAME


#: What annotations of replies name and modules import for a type checker alone.
_NAMES = {"AnyArray": NDArray[np.number], "Matrix": Any}


@cache
def answer_type(method: Callable[..., object]) -> GenericAlias:
    """What a method of a shard says that it returns, and the seconds that took."""
    kind = eval(method.__annotations__["return"], method.__globals__, _NAMES)
    return GenericAlias(tuple, (kind, float))


def is_of(reply: Any, kind: Any) -> bool:
    """Whether the reply, and each part of a tuple, list or dictionary, is of the type that an annotation says."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if origin is UnionType:
        return any(is_of(reply, one) for one in arguments)
    if origin is np.ndarray:
        # By its letters: C's long and long long are of one size, and types of their own.
        return isinstance(reply, np.ndarray) and np.issubdtype(reply.dtype.str, get_args(arguments[1])[0])
    if kind is float or kind is int:
        return isinstance(reply, int | np.integer) or (kind is float and isinstance(reply, float | np.floating))
    outer: Any = origin or kind or NoneType
    if not isinstance(reply, outer):
        return False
    if origin is dict:
        return all(is_of(name, arguments[0]) and is_of(value, arguments[1]) for name, value in reply.items())
    if hasattr(kind, "_fields"):
        arguments = _field_types(kind)
    elif origin is list or arguments[1:] == (...,):
        return all(is_of(part, arguments[0]) for part in reply)
    return len(arguments) == 0 or (len(reply) == len(arguments) and all(map(is_of, reply, arguments)))


@cache
def _field_types(kind: type) -> tuple[Any, ...]:
    """Of a NamedTuple."""
    return tuple(get_type_hints(kind, localns=_NAMES).values())
