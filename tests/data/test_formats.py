"""The same rows are the same data set, whatever holds them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from tables import RECORDS, columns_of, every_format, rows

from apsvm import APSVMClassifier
from apsvm.data import read_data
from apsvm.data.read_options import TableOptions
from apsvm.models.columns import ForModel

OPTIONS = TableOptions(id="id", label="y", categorical=("code",), decimal=".")


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(records=RECORDS)
def test_every_format_gives_the_same_rows_and_weights(records, tmp_path_factory):
    """Files of each format, for a training and for a model; frames of pandas and polars."""
    paths, frames = every_format(tmp_path_factory.mktemp("formats"), records)
    first = read_data(paths[0], table=OPTIONS)
    columns, X = columns_of(first), np.array(rows(first))
    model = ForModel(columns, columns.feature_names(), columns.width)
    assert len(paths) >= 10
    for path in paths:
        data = read_data(path, table=OPTIONS)
        assert columns_of(data).features == columns.features, path
        assert data.relevance.tolist() == first.relevance.tolist()
        assert data.table.keys.tolist() == [str(record["id"]) for record in records]
        for of_rows in (data, read_data(path, table=OPTIONS, model=model)):
            np.testing.assert_allclose(np.array(rows(of_rows)), X, rtol=1e-12, atol=1e-9)
    parameters = {"C": 1.0, "bound": "hinge", "scale": "standard", "features": "linear"}
    by_rows = APSVMClassifier(**parameters).fit(X, first.relevance)
    for frame in frames:
        fitted = APSVMClassifier(**parameters).fit(frame, first.relevance)
        assert fitted.to_model().header.features.columns.features == columns.features
        np.testing.assert_allclose(fitted.coef_, by_rows.coef_, rtol=1e-9, atol=1e-9)
