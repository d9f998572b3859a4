"""Logs read back."""

from __future__ import annotations

import io

import pytest

from apsvm.records import JsonLinesLog, LogError, read_log


def test_what_was_written_is_read(tmp_path):
    stream = io.StringIO()
    log = JsonLinesLog(stream)
    log.write("start", C=1.5, options=["ä", None])
    log.write("end", state="converged")
    path = tmp_path / "log"
    path.write_text(stream.getvalue())
    found = read_log(path)
    assert found.records == [
        {"event": "start", "C": 1.5, "options": ["ä", None]},
        {"event": "end", "state": "converged"},
    ]
    assert not found.cut_off
    path.write_text(stream.getvalue().rstrip("\n"))
    assert read_log(path) == found


def test_a_last_line_that_is_cut_off(tmp_path):
    path = tmp_path / "log"
    for rest in (b'{"event": "end", "sta', b"{", b'{"event": "\xc3', b"\0\0"):
        path.write_bytes(b'{"event": "start"}\n' + rest)
        found = read_log(path)
        assert (found.records, found.cut_off) == ([{"event": "start"}], True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty log"),
        (b"1 1:2 3:4\n", ":1: not a log"),
        (b'{"event": "start"}\n{"event": 7}\n', ":2: not a log"),
        (b'{"event": "start"}\n{"eve\n{"event": "end"}\n', ":2: not a log"),
        (b'{"event"', ":1: not a log"),
        (b"[1]\n", ":1: not a log"),
        (b"\x89PNG\r\n\x1a\n", ":1: not a log"),
    ],
)
def test_no_log(content, message, tmp_path):
    path = tmp_path / "log"
    path.write_bytes(content)
    with pytest.raises(LogError, match=message) as failure:
        read_log(path)
    assert str(failure.value).startswith(str(path))
