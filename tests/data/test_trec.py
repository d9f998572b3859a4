"""Reading TREC qrels and runs, and the joining of the two."""

import gzip

import numpy as np
import pytest

from apsvm.data import DataError
from apsvm.data.trec import Qrels, TrecRun, join, read_qrels, read_run


def written(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_fields(tmp_path):
    qrels = read_qrels(written(tmp_path, "q", "# comment\n1 0 a 2\r\n\n  1\t0  b\t-1  \n é 0 ü 0"))
    assert qrels.grades == {b"1": {b"a": 2, b"b": -1}, "é".encode(): {"ü".encode(): 0}}
    run = read_run(written(tmp_path, "r", "1 Q0 a 7 1e-3 old\n1 Q0 b x -2.5 tag more words\n"))
    assert run.scores == {b"1": {b"a": 0.001, b"b": -2.5}}
    assert run.name == "tag"


def test_compressed(tmp_path):
    text = b"1 0 a 1\n2 0 b 0\n"
    plain, packed = written(tmp_path, "q", text), written(tmp_path, "q.gz", gzip.compress(text))
    assert read_qrels(plain).grades == read_qrels(packed).grades


def test_the_order_is_score_then_document_name_falling(tmp_path):
    """Byte order: upper case before lower, "10" before "9"; falling, and the rank field is not looked at."""
    qrels = read_qrels(
        written(tmp_path, "q", "".join(f"1 0 {d} {g}\n" for d, g in [("9", 1), ("10", 2), ("A", 3), ("z", 4)]))
    )
    lines = [("10", 1, 5.0), ("A", 2, 5.0), ("z", 3, 5.0), ("9", 4, 5.0), ("u", 5, 6.0)]
    run = read_run(written(tmp_path, "r", "".join(f"1 Q0 {d} {rank} {s} t\n" for d, rank, s in lines)))
    rows = join(qrels, run)
    assert rows.grades.tolist() == [0, 4, 3, 1, 2]
    assert rows.judged.tolist() == [False, True, True, True, True]
    assert rows.ranked.all()


def test_rows_that_were_not_retrieved(tmp_path):
    qrels = read_qrels(written(tmp_path, "q", "1 0 a 1\n1 0 b 0\n1 0 c -1\n2 0 a 3\n"))
    run = read_run(written(tmp_path, "r", "2 Q0 x 1 1 t\n1 Q0 d 1 1 t\n"))
    rows = join(qrels, run)
    assert rows.queries.tolist() == ["1", "2"]
    np.testing.assert_array_equal(rows.codes, [0, 0, 0, 1, 1])
    np.testing.assert_array_equal(rows.ranked, [True, False, False, True, False])
    np.testing.assert_array_equal(rows.judged, [False, True, True, False, True])
    np.testing.assert_array_equal(rows.grades, [0, 1, 0, 0, 3])


def test_qrels_of_pandas_and_of_BEIR(tmp_path):
    texts = "1 0 a 2\n1 0 b 0\n", "1 0 a 2.0\n1 0 b 0.\n", "query-id\tcorpus-id\tscore\n1\ta\t2\n1\tb\t0\n"
    for text in texts:
        (tmp_path / "q").write_text(text)
        assert read_qrels(tmp_path / "q").grades == {b"1": {b"a": 2, b"b": 0}}


def test_scores_that_float32_does_not_tell_apart():
    qrels = Qrels({b"1": {b"a": 1}, b"2": {b"a": 1}}, "q")
    scores = {b"1": {b"a": 1.0, b"b": 1.0 + 1e-12, b"c": 0.5, b"d": 0.5}, b"2": {b"a": 1.0}}
    assert join(qrels, TrecRun(scores, "run", "r")).ties_in_float32 == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 0 a\n", "q:1: expected the 4 fields query, iteration, document, grade, found 3"),
        ("1 0 a 1\n\n1 0 b 1 x\n", "q:3: expected the 4 fields .* found 5"),
        ("1 0 a 1.5\n", "q:1: expected an integer grade"),
        ("query-id corpus-id score\n1 a 2\n1 0 b 1\n", "q:3: expected the 3 fields query, document, grade, found 4"),
        ("1 0 a 1_0\n", "q:1: expected an integer grade .*found '1_0'"),
        ("1 0 a 99999999999\n", "q:1: expected an integer grade"),
        ("1 0 a -\n", "q:1: expected an integer grade .*found '-'"),
        ("1 0 a 1\n2 0 a 1\n1 0 a 0\n", "q:3: document 'a' is judged twice for query '1'"),
        ("", "q: expected at least one judgement, found none"),
        ("# nothing\n", "q: expected at least one judgement, found none"),
        (b"\x28\xb5\x2f\xfd....", "the zstd data are corrupt"),
    ],
)
def test_bad_qrels(text, message, tmp_path):
    with pytest.raises(DataError, match=message):
        read_qrels(written(tmp_path, "q", text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 Q0 a 1 0.5\n", "r:1: expected the 6 fields query, Q0, document, rank, score, name, found 5"),
        ("1 Q0 a 1 0.5 t\n1 Q0 b 1 x t\n", "r:2: expected a finite score, found 'x'"),
        ("1 Q0 a 1 nan t\n", "r:1: expected a finite score, found 'nan'"),
        ("1 Q0 a 1 1e999 t\n", "r:1: expected a finite score, found '1e999'"),
        ("1 Q0 a 1 1_0 t\n", "r:1: expected a finite score, found '1_0'"),
        ("1 Q0 a 1 1 t\n1 Q0 a 2 2 t\n", "r:2: document 'a' is retrieved twice for query '1'"),
        ("\n", "r: expected at least one retrieved document, found none"),
    ],
)
def test_bad_runs(text, message, tmp_path):
    with pytest.raises(DataError, match=message):
        read_run(written(tmp_path, "r", text))


def test_no_query_in_common(tmp_path):
    qrels = read_qrels(written(tmp_path, "q", "1 0 a 1\n"))
    run = read_run(written(tmp_path, "r", "2 Q0 a 1 1 t\n3 Q0 a 1 1 t\n"))
    with pytest.raises(DataError, match=r"r: none of its 2 queries is among the 1 of .*q"):
        join(qrels, run)
