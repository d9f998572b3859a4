"""Scripts that repeat the papers say which data they lack, keep their tables, and do without matplotlib."""

from __future__ import annotations

import argparse
import sys

import pytest
from command import script_module

from apsvm import read_svmlight
from apsvm.report.pictures.style import MissingMatplotlibError


@pytest.fixture(scope="module")
def kept():
    return script_module("reproduce/kept.py")


def test_a_missing_file_is_named_and_what_is_taken_without(kept, tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        kept.data_files(argparse.ArgumentParser(), ["pascal.svm"], "digits", tmp_path)
    assert end.value.code == 2
    assert (
        "no such file: pascal.svm; DATA are svmlight files; without any, scikit-learn's digits"
        in capsys.readouterr().err
    )


def test_without_data_there_are_digits(kept, tmp_path):
    (path,) = kept.data_files(argparse.ArgumentParser(), [], "digits", tmp_path / "new")
    assert read_svmlight(path).X.shape == (1797, 64)
    assert kept.data_files(argparse.ArgumentParser(), [path], "digits", tmp_path) == [path]


def test_tables_are_there_when_what_comes_after_fails(kept, tmp_path, capsys):
    def measure():
        sys.stdout.write("| a | 1 |\n")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), kept.tables_kept(tmp_path / "out"):
        measure()
    assert (tmp_path / "out" / "tables.md").read_text() == "| a | 1 |\n" == capsys.readouterr().out


def test_a_piece_is_done_once_a_command(kept, tmp_path, capsys):
    def piece(result, **options):
        return kept.Pieces(argparse.Namespace(output=tmp_path, **options))("seed 0", lambda: result)

    assert piece(1, epochs=2, seeds=1) == piece(2, epochs=2, seeds=5) == 1
    assert piece(3, epochs=4, seeds=1) == 3
    first, again, other = capsys.readouterr().err.splitlines()
    assert first == other == "seed 0 done"
    assert again.startswith("seed 0: done on ")


def test_figures_are_left_out_without_matplotlib(kept, capsys):
    def save():
        raise MissingMatplotlibError

    kept.draw(save)
    assert capsys.readouterr().err.startswith("figures left out: drawing needs matplotlib")
