"""Reads TREC's judgements (qrels) and retrieved documents (runs), and joins them into rows.

    qrels:  query  iteration  document  grade              run:  query  Q0  document  rank  score  name

or the qrels of BEIR, below a line ``query-id corpus-id score``: query, document, grade.
Blanks separate fields. Blank lines and lines that start with # are ignored. Files may be compressed. As in trec_eval:

- documents are ranked by falling score, equal scores by document name, the last in byte order first; the rank field is
  ignored; the name of the run is that of the last line;
- a document without a judgement, or with a negative grade, is not relevant and counts as unjudged;
- relevant documents that were not retrieved count; queries of the run without judgements are left out;
- queries of the qrels that the run lacks are left out too, or count 0 if ``complete`` (trec_eval -c). AUC and WMW count
  ½ if both classes were judged, since all documents are tied.

A score or grade that is not a number is an error here, and 0 in trec_eval. A document twice in one query is an error in
both.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apsvm.data.dataset import DataError
from apsvm.data.text import read_text

_MAX_DIGITS = 9
_GRADE = re.compile(rb"(-?\d{1,%d})(?:\.0*)?" % _MAX_DIGITS)  # 1.0 as pandas writes it
_BEIR = [b"query-id", b"corpus-id", b"score"]


@dataclass(frozen=True, slots=True, eq=False)
class Qrels:
    """grades : query → document → grade; source : the name used in messages"""

    grades: dict[bytes, dict[bytes, int]]
    source: str


@dataclass(frozen=True, slots=True, eq=False)
class TrecRun:
    """scores : query → document → score; name : as the last line has it; source : the name used in messages"""

    scores: dict[bytes, dict[bytes, float]]
    name: str
    source: str


@dataclass(frozen=True, slots=True, eq=False)
class JudgedRun:
    """The rows of the judged queries, query after query. Within a query the retrieved documents come first, in
    trec_eval's order, then the judged ones that were not retrieved.

    queries : (Q,) str, in byte order
    codes : (n,) int64, the number 0..Q−1 of each row's query
    scores : (n,) float64, 0 where not retrieved
    grades : (n,) float64, 0 where not judged
    ranked : (n,) bool, True if retrieved
    judged : (n,) bool
    unjudged_queries, missing_queries : numbers of queries that only the run has, and only the qrels
    ties_in_float32 : retrieved rows that tie with the row above in float32, as in trec_eval, but not in float64
    """

    queries: NDArray[np.str_]
    codes: NDArray[np.int64]
    scores: NDArray[np.float64]
    grades: NDArray[np.float64]
    ranked: NDArray[np.bool_]
    judged: NDArray[np.bool_]
    unjudged_queries: int
    missing_queries: int
    ties_in_float32: int


def read_qrels(source: str | os.PathLike[str]) -> Qrels:
    """Reads judgements. Raises DataError with the place of the fault, OSError."""
    name, text = read_text(source)
    result: dict[bytes, dict[bytes, int]] = {}
    expected, document_at = "the 4 fields query, iteration, document, grade", 2
    for number, fields in _lines(text):
        if number == 1 and fields == _BEIR:
            expected, document_at = "the 3 fields query, document, grade", 1
            continue
        if len(fields) != document_at + 2:
            way_out = f"; 3 fields stand below a line {b' '.join(_BEIR).decode()}" if len(fields) == 3 else ""
            raise DataError(f"{name}:{number}: expected {expected}, found {len(fields)}{way_out}")
        query, document, written = fields[0], fields[document_at], fields[-1]
        match = _GRADE.fullmatch(written)
        if match is None:
            raise DataError(
                f"{name}:{number}: expected an integer grade of at most {_MAX_DIGITS} digits, found {_shown(written)!r}"
            )
        of_query = result.setdefault(query, {})
        if document in of_query:
            raise _twice(name, number, "judged", query, document)
        of_query[document] = int(match[1])
    if not result:
        raise DataError(f"{name}: expected at least one judgement, found none")
    return Qrels(result, name)


def read_run(source: str | os.PathLike[str]) -> TrecRun:
    """Reads retrieved documents. Raises DataError with the place of the fault, OSError."""
    name, text = read_text(source)
    result: dict[bytes, dict[bytes, float]] = {}
    run_name = b""
    for number, fields in _lines(text):
        if len(fields) < 6:
            raise DataError(
                f"{name}:{number}: expected the 6 fields query, Q0, document, rank, score, name, found {len(fields)}"
            )
        query, _, document, _, written, run_name = fields[:6]
        try:
            score = math.nan if b"_" in written else float(written)
        except ValueError:
            score = math.nan
        if not math.isfinite(score):
            raise DataError(f"{name}:{number}: expected a finite score, found {_shown(written)!r}")
        of_query = result.setdefault(query, {})
        if document in of_query:
            raise _twice(name, number, "retrieved", query, document)
        of_query[document] = score
    if not result:
        raise DataError(f"{name}: expected at least one retrieved document, found none")
    return TrecRun(result, _shown(run_name), name)


def join(qrels: Qrels, run: TrecRun, *, complete: bool = False) -> JudgedRun:
    """The rows of the run with their judgements. Raises DataError if no query of the run is judged."""
    common = [query for query in qrels.grades if query in run.scores]
    if not common:
        raise DataError(
            f"{run.source}: none of its {len(run.scores)} queries is among the {len(qrels.grades)} of {qrels.source}"
        )
    queries = sorted(qrels.grades if complete else common)
    sizes, scores, grades, ranked, judged = [], [], [], [], []
    for query in queries:
        of_query = qrels.grades[query]
        retrieved = run.scores.get(query, {})
        order = sorted(((score, document) for document, score in retrieved.items()), reverse=True)
        not_retrieved = [grade for document, grade in of_query.items() if document not in retrieved and grade >= 0]
        result = [of_query.get(document, -1) for _, document in order]
        sizes.append(len(order) + len(not_retrieved))
        scores += [score for score, _ in order] + [0.0] * len(not_retrieved)
        grades += [max(grade, 0) for grade in result] + not_retrieved
        ranked += [True] * len(order) + [False] * len(not_retrieved)
        judged += [grade >= 0 for grade in result] + [True] * len(not_retrieved)
    codes = np.repeat(np.arange(len(queries)), sizes)
    wide, both = np.array(scores, dtype=np.float64), np.array(ranked, dtype=np.bool_)
    both = both[1:] & both[:-1] & (codes[1:] == codes[:-1])
    with np.errstate(over="ignore"):
        narrow = wide.astype(np.float32)
    return JudgedRun(
        queries=np.array([_shown(query) for query in queries]),
        codes=codes,
        scores=wide,
        grades=np.array(grades, dtype=np.float64),
        ranked=np.array(ranked, dtype=np.bool_),
        judged=np.array(judged, dtype=np.bool_),
        unjudged_queries=len(run.scores) - len(common),
        missing_queries=len(qrels.grades) - len(common),
        ties_in_float32=int((both & (narrow[1:] == narrow[:-1]) & (wide[1:] != wide[:-1])).sum()),
    )


def _lines(text: bytes) -> Iterator[tuple[int, list[bytes]]]:
    for number, line in enumerate(text.splitlines(), start=1):
        fields = line.split()
        if fields and not fields[0].startswith(b"#"):
            yield number, fields


def _twice(name: str, number: int, what: str, query: bytes, document: bytes) -> DataError:
    return DataError(f"{name}:{number}: document {_shown(document)!r} is {what} twice for query {_shown(query)!r}")


def _shown(field: bytes) -> str:
    return field.decode("utf-8", "backslashreplace")
