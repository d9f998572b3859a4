"""Records of a reading, and their use for another reading of the same file."""

import pytest

from apsvm.data.read_options import ReadOptions, TableOptions

RECORDED = ReadOptions(
    dtype="float32", sort_features=True, multilabel=True, bag_label="any", groups="groups.txt", labels="labels.npy",
    bags="bags.txt", table=TableOptions(encoding="latin-1", decimal=","),
)  # fmt: skip


def test_what_is_not_said_is_as_recorded():
    completed = ReadOptions().completed(RECORDED.to_json())
    assert completed.to_json() == RECORDED.to_json()
    assert completed.bags is not None
    assert completed.bags.endswith("/bags.txt")


def test_what_is_said_counts():
    said = ReadOptions(
        bag_label="own", groups="other.txt", labels="other.npy", bags="other", table=TableOptions(encoding="utf-16")
    )
    completed = said.completed(RECORDED.to_json())
    assert (completed.bag_label, completed.groups, completed.labels, completed.bags) == (
        "own", "other.txt", "other.npy", "other",
    )  # fmt: skip
    assert (completed.table.encoding, completed.table.decimal) == ("utf-16", ",")


@pytest.mark.parametrize("said", [ReadOptions(), ReadOptions().ignoring_bags()])
def test_rows_without_bags(said):
    assert said.completed(ReadOptions().ignoring_bags().to_json()).ignores_bags
    completed = said.completed(RECORDED.to_json())
    assert completed.ignores_bags == said.ignores_bags
    assert (completed.bags is None) == said.ignores_bags
