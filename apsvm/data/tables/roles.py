"""Assigns roles to a table's columns: label, query, bag …, or feature. The user's options decide first, then the names
of the columns, or the model."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from apsvm._support.naming import advice
from apsvm.data.dataset import DataError
from apsvm.data.read_options import TableOptions
from apsvm.data.tables.text import IF_A_ROW
from apsvm.models.columns import Columns

#: Names of label, query and bag columns, in the form of ``_plain``.
NAMES_OF_LABELS = ("label", "labels", "target", "y", "class", "outcome", "relevance")
#: Names of label columns if none of those is there: beside a y, churn is a feature.
EVENTS = ("fraud", "is_fraud", "isfraud", "churn", "churned", "clicked", "converted", "survived")
QUERIES = ("qid", "query_id")
BAGS = ("bag", "bag_id")

_MOST_LISTED = 12
#: Advice where the first line has one name.
_IF_ONE_COLUMN = "; commas, semicolons, tabs or | separate columns, and --skip-lines skips lines above their names"


class NoLabelError(DataError):
    """Neither an option nor a name shows the column with the labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The columns of a file by role. ``left_out`` have none; ``remarks`` tell how roles were found."""

    label: str | None = None
    qid: str | None = None
    bag: str | None = None
    cost: str | None = None
    id: str | None = None
    features: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    remarks: list[str] = field(default_factory=list)

    def kept(self, names: Sequence[str]) -> list[str]:
        """The columns of ``names`` that are read."""
        wanted = {*self.features, self.label, self.qid, self.bag, self.cost, self.id}
        return [name for name in names if name and name in wanted]


def parts_to_train(
    names: Sequence[str], options: TableOptions, source: str, *, unlabelled: bool, index: Sequence[str] = ()
) -> Parts:
    """The roles of the columns of training data. The columns ``index`` were the index of a data frame.

    Raises
    ------
    DataError : a column is missing or has two roles; no column has the labels; no feature is left
    """
    for option, name in (*options.named, *(("--categorical", name) for name in options.categorical)):
        check_there(name, names, source, option)
    columns_named = [name for option, name in options.named if option.endswith("-column")]
    twice = next((name for name in columns_named if columns_named.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{source}: column {twice!r} is given two parts")
    remarks: list[str] = []
    free = [name for name in names if name and name not in columns_named and name not in options.drop]
    label = options.label or _found(free, _names_of_labels(free), "label", remarks)
    if label is None and not unlabelled:
        raise NoLabelError(f"{source}: {_no_label(names, free)}")
    qid = options.qid or _found(free, QUERIES, "qid", remarks)
    bag = options.bag or _found([name for name in free if name not in (options.features or ())], BAGS, "bag", remarks)
    rest = [name for name in free if name not in (label, qid, bag)]
    of_index = [name for name in rest if name in index and name not in (options.features or ())]
    if of_index:
        rest = [name for name in rest if name not in of_index]
        remarks.append(
            f"the index of the data frame is left out: {listed(of_index)}"
            + advice(" (--id-column takes it for the rows' names, --features-from has it as a feature)")
        )
    if options.features is not None:
        rest = [name for name in rest if name in set(options.features)]
    if "" in names:
        places = ", ".join(str(at) for at, name in enumerate(names, start=1) if not name)
        remarks.append(f"columns without a name are left out: {places}")
    no_feature = next((name for name in options.categorical if name not in rest), None)
    if no_feature is not None:
        raise DataError(f"{source}: --categorical: column {no_feature!r} is none of the features")
    if not rest:
        raise DataError(f"{source}: no column is left to be a feature: its columns are {listed(names)}")
    used = {*columns_named, label, qid, bag, *rest}
    return Parts(
        label=label, qid=qid, bag=bag, cost=options.cost, id=options.id, features=tuple(rest),
        left_out=tuple(name for name in names if name and name not in used), remarks=remarks,
    )  # fmt: skip


def parts_of_model(
    names: Sequence[str], columns: Columns, options: TableOptions, source: str, *, unlabelled: bool
) -> Parts:
    """The roles of the columns of data for a model; with ``unlabelled``, labels may be missing. Raises DataError for a
    missing column."""
    there = set(names)
    lacking = [column.name for column in columns.features if column.name not in there]
    if lacking:
        needed = {column.name for column in columns.features}
        free = [name for name in names if name not in needed]
        hint = "".join(f"; is it {near!r}?" for near in _nearest(lacking[0], free))
        hint = hint or "; add it (cells may be empty), or train a model without it"
        what = f"column {lacking[0]!r}" if len(lacking) == 1 else f"columns {listed([repr(name) for name in lacking])}"
        raise DataError(f"{source}: the model needs the {what}, and the file has only {listed(names)}{hint}")
    remarks: list[str] = []
    features = tuple(column.name for column in columns.features)
    weighed = set(features)
    free = [name for name in names if name and name not in weighed]
    label = options.label or (columns.label if columns.label in names else None)
    if label is None and not (unlabelled and columns.label is not None):
        label = _found(free, _names_of_labels(free), "label", remarks)
    if label is None and not unlabelled:
        if columns.label is not None:
            raise DataError(
                f"{source}: no column is called {columns.label!r}, as that of the labels was in training: "
                f"--label-column names another; its columns are {listed(names)}"
            )
        raise DataError(f"{source}: {_no_label(names, free)}")
    parts_named = {
        "--label-column": label,
        "--qid-column": options.qid,
        "--bag-column": options.bag,
        "--id-column": options.id,
    }
    for option, name in parts_named.items():
        if name is not None:
            check_there(name, names, source, option)
    qid, bag, key = (
        own or (theirs if theirs in names else None)
        for own, theirs in ((options.qid, columns.qid), (options.bag, columns.bag), (options.id, columns.id))
    )
    if columns.qid is not None and qid is None and not unlabelled:
        remarks.append(f"no column is called {columns.qid!r}, as that of the queries was: all rows are one query")
    used = {label, qid, bag, key, columns.label, columns.cost, columns.qid, columns.bag, columns.id, *features}
    used.update(columns.left_out)
    extra = [name for name in free if name not in used] if features else []
    if extra:
        remarks.append(f"the model does not know the columns {listed(extra)}: they are not used")
    return Parts(label=label, qid=qid, bag=bag, id=key, features=features, remarks=remarks)


def _found(names: Sequence[str], used: Sequence[str], part: str, remarks: list[str]) -> str | None:
    """The column named by one of ``used``, if there is one only; a remark names it."""
    fitting = [name for name in names if _plain(name) in used]
    if len(fitting) != 1:
        return None
    what = {"label": "labels", "qid": "queries", "bag": "bags"}[part]
    remarks.append(f"column {fitting[0]!r} has the {what} (--{part}-column names another)")
    return fitting[0]


def _names_of_labels(names: Sequence[str]) -> Sequence[str]:
    """Names by which label columns are recognised among ``names``."""
    return NAMES_OF_LABELS if any(_plain(name) in NAMES_OF_LABELS for name in names) else EVENTS


def _plain(name: str) -> str:
    """A name in lower case with _ between words: "Is Fraud?" is is_fraud."""
    return re.sub(r"\W+", "_", name.lower()).strip("_")


def _no_label(names: Sequence[str], free: Sequence[str]) -> str:
    fitting = [name for name in free if _plain(name) in _names_of_labels(free)]
    what = f"several columns may be the labels: {', '.join(fitting)}" if fitting else "no column is named as labels are"
    hint = f"; {IF_A_ROW}" if not fitting and seem_a_row(names) else ""
    hint = _IF_ONE_COLUMN if len(names) == 1 else hint
    return f"{what}; name it by --label-column; its columns are {listed(names)}{hint}"


def seem_a_row(names: Sequence[str]) -> bool:
    """True if some names are numbers: then the line is more likely a row."""
    return any(map(_is_number, names))


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def check_there(name: str, names: Sequence[str], source: str, option: str) -> None:
    """Raises DataError if no column is called ``name``."""
    if name not in names:
        hint = "".join(f"; did you mean {near!r}?" for near in _nearest(name, names))
        hint = _IF_ONE_COLUMN if len(names) == 1 else hint
        raise DataError(f"{source}: no column is called {name!r} ({option}): its columns are {listed(names)}{hint}")


def _nearest(name: str, names: Sequence[str]) -> list[str]:
    """The one of ``names`` that is spelled most like ``name``, in any case; none if all differ."""
    spelled = {one.lower(): one for one in names}
    return [spelled[near] for near in difflib.get_close_matches(name.lower(), spelled, 1)]


def require_names(names: Sequence[str], source: str, expected: Sequence[str], first: str) -> None:
    """Raises DataError if the table ``source``, with ``names``, lacks columns of the table ``first``, or has more."""
    theirs, ours = set(names), set(expected)
    lacking = [name for name in expected if name not in theirs]
    more = [name for name in names if name not in ours]
    if lacking or more:
        what = [f"no column {listed(lacking)}"] if lacking else []
        what += [f"the column {listed(more)} besides"] if more else []
        raise DataError(f"{source}: expected the columns of {first}, found {' and '.join(what)}")


def listed(names: Sequence[str]) -> str:
    """The names in a message; of many, the first ones."""
    some = ", ".join(name or "(no name)" for name in names[:_MOST_LISTED])
    return some if len(names) <= _MOST_LISTED else f"{some}, … ({len(names):,} in all)"
