"""Data in several files: what a pattern or a folder names, and what is read of it."""

from __future__ import annotations

import numpy as np
import pytest
from over import over

from apsvm.data import DataError, read_data
from apsvm.data.file_patterns import parts_of
from apsvm.data.read_options import TableOptions
from apsvm.models.columns import ForModel


def dense(data):
    return data.X.toarray() if hasattr(data.X, "toarray") else data.X


def test_a_name_stands_for_files(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="writes Parquet")
    import pyarrow.parquet as parquet

    folder = tmp_path / "table"
    folder.mkdir()
    for name in ("part-1", "part-0", ".part-0.crc", "_SUCCESS"):
        parquet.write_table(pa.table({"a": [1.0, 2.0], "y": [0, 1]}), folder / name)
    (folder / "_SUCCESS").write_text("")
    (tmp_path / "part-[1].csv").write_text("a,y\n1,1\n")
    (tmp_path / "part-2.csv").write_text("a,y\n2,0\n")
    names = [str(folder / "part-0"), str(folder / "part-1")]
    assert parts_of(str(folder)) == names
    assert parts_of(str(tmp_path / "tab*")) == names
    assert parts_of(str(tmp_path / "part-[1].csv")) == [str(tmp_path / "part-[1].csv")]
    assert parts_of(str(tmp_path / "part-?.csv")) == [str(tmp_path / "part-2.csv")]
    assert parts_of("-") == ["-"]
    assert read_data(folder).X.tolist() == [[1.0], [2.0], [1.0], [2.0]]
    (folder / "notes").write_text("no Parquet")
    assert parts_of(str(folder)) == [str(folder)]
    with pytest.raises(FileNotFoundError, match="nothing"):
        read_data(tmp_path / "nothing-*")


def test_text_in_parts_is_the_text(tmp_path):
    lines = ["1 qid:1 1:1 3:2\n", "0 qid:1 2:1\n", "1 qid:2 1:4\n", "0 qid:2 1:5 2:6\n"]
    (tmp_path / "whole").write_text("".join(lines))
    for part, text in enumerate(["".join(lines[:3]), "", lines[3]]):
        (tmp_path / f"part-{part}").write_text(text)
    whole, parts = read_data(tmp_path / "whole"), read_data(tmp_path / "part-*", dense=True)
    assert dense(parts).tolist() == dense(whole).tolist()
    assert parts.relevance.tolist() == whole.relevance.tolist()
    assert parts.groups.tolist() == whole.groups.tolist()
    assert parts.source == str(tmp_path / "part-*")
    with pytest.raises(DataError, match=r"feature 3 is (unknown|beyond)"):
        read_data(tmp_path / "part-*", n_features=2)
    with pytest.raises(DataError, match="a file of labels belongs to one file, and these are 3"):
        read_data(tmp_path / "part-*", labels=tmp_path / "whole")
    (tmp_path / "part-3").write_text("1 qid:3 bag:1 1:1\n")
    with pytest.raises(DataError, match="part-3: rows in bags are read from one file"):
        read_data(tmp_path / "part-*")


@over(
    "second, row, message",
    [
        ("b,y,a\n1,1,x\n", 0, r"part-1.csv:2: column 'a': .*'x'"),
        ("b,y,a\n1,1,2\n1,0,x\n", 1, r"part-1.csv:3: column 'a': .*'x'"),
        ("b,y,a\n1,1,2\n", None, r"part-0.csv:3: column 'a': .*'x'"),
    ],
)
def test_a_cell_of_a_part_is_named_by_its_file_and_line(tmp_path, second, row, message):
    """The first row of a part, and the last, are not those of its neighbours."""
    bad = "x" if row is None else "4"
    rows = "".join(f"{n},1,{n % 2}\n" for n in range(70))
    (tmp_path / "part-0.csv").write_text(f"a,b,y\n1,1,0\n{bad},2,1\n{rows}")
    (tmp_path / "part-1.csv").write_text(second + "".join(f"1,{n % 2},{n}\n" for n in range(70)))
    with pytest.raises(DataError, match=message):
        read_data(tmp_path / "part-*.csv")


def test_what_becomes_of_columns_is_learned_from_all_parts(tmp_path):
    texts = ["a,city,y\n1,Rome,1\n,Paris,0\n", "y,city,a\n1,Bonn,5\n0,Rome,6\n", "a,city,y\n"]
    for part, text in enumerate(texts):
        (tmp_path / f"part-{part}.csv").write_text(text)
    (tmp_path / "whole.csv").write_text(texts[0] + "5,Bonn,1\n6,Rome,0\n")
    whole, parts = read_data(tmp_path / "whole.csv"), read_data(tmp_path / "part-*.csv")
    assert parts.table.columns == whole.table.columns
    np.testing.assert_array_equal(dense(parts), dense(whole))
    assert len(read_data(tmp_path / "part-*.csv", table=TableOptions(drop=("city",))).X) == 4
    (tmp_path / "part-1.csv").write_text("city,a\n")
    (tmp_path / "part-0.csv").write_text("city,a\nRome,3\n")
    (tmp_path / "part-2.csv").unlink()
    columns = whole.table.columns
    model = ForModel(columns, columns.feature_names(), columns.width)
    assert dense(read_data(tmp_path / "part-*.csv", model=model, unlabelled=True)).tolist() == [[3.0, 0.0, 0.0, 1.0]]
