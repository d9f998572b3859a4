"""Logs read back."""

from __future__ import annotations

import io
import json

import pytest
from over import over

from apsvm._support.log import JsonLinesLog, LogError, read_log


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


@over("field", ["primal", "iteration", "seconds", "C", "oracle_wall_ns"])
@over("value", ["null", "true", '"x"', "[]", "{}", "NaN", "Infinity", "1e400", "9" * 400, "-1e400"])
def test_a_field_of_another_kind(field, value, tmp_path):
    path = tmp_path / "log"
    fields = {"primal": "1.5", "iteration": "1", "seconds": "0.1", "C": "1.0", "oracle_wall_ns": "5"}
    whole = {name: value if name == field else good for name, good in fields.items()}
    record = '{"event": "iteration", ' + ", ".join(f'"{name}": {text}' for name, text in whole.items()) + "}\n"
    path.write_text('{"event": "start"}\n' + record)
    with pytest.raises(LogError, match=f":2: not as apsvm train writes it: expected .* as '{field}' of 'iteration'"):
        read_log(path)


@pytest.mark.parametrize("event", ["oracle", "iteration", "step", "round", "epoch"])
def test_a_record_that_lacks_a_field(event, tmp_path):
    path = tmp_path / "log"
    path.write_text(json.dumps({"event": event}) + "\n")
    with pytest.raises(LogError, match=f":1: not as apsvm train writes it: expected '.*' in a record of '{event}'"):
        read_log(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty log"),
        (b"[" * 200_000, ":1: not a log"),
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
