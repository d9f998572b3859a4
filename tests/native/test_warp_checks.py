"""Arguments of WARP's kernels are checked, as in ``test_checks``."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from over import over

from apsvm._native import _kernels
from tests.native.test_checks import ints, zeros


class TestWarp:
    TABLE = np.arange(4.0)

    def rows(self, *, positives=(0,), starts=(0,), counts=(3,), members=(1, 2, 3), rule="sgd", squares=0, table=TABLE):
        arrays = [ints(*part) for part in (positives, starts, counts, members)]
        memory = zeros(4), zeros(squares), zeros(0)
        return _kernels.WarpRows(*memory, *arrays, table, "plugin", 1.0, 0, rule, 0.1, 0.0, 16, 0, 1)

    @over(
        "changed",
        [
            {"starts": (1,)},
            {"starts": (-1,)},
            {"counts": (4,)},
            {"counts": (0,)},
            {"counts": (3, 3)},
            {"members": (1, 2)},
            {"members": (1, 2, -3)},
            {"table": TABLE[:3]},
            {"rule": "adagrad", "squares": 3},
            {"rule": "adadelta", "squares": 4},
        ],
    )
    def test_candidates_that_do_not_fit_together(self, changed):
        self.rows()
        with pytest.raises(ValueError, match="expected"):
            self.rows(**changed)

    def test_the_matrix_has_the_rows_and_columns(self):
        X, order = np.eye(4), ints(0)
        self.rows().run_dense(X, order)
        for matrix, positives in ((X[:3], order), (np.eye(5), order), (X, ints(1)), (X, ints(2**40)), (X, ints(-1))):
            with pytest.raises(ValueError, match="expected"):
                self.rows().run_dense(matrix, positives)
        for matrix in (sp.csr_array(X[:3]), sp.csr_array(np.eye(5)), sp.csr_array(X)):
            csr = _kernels.CsrMatrix(matrix.indptr, matrix.indices, matrix.data, *matrix.shape)
            if matrix.shape == (4, 4):
                self.rows().run_csr(csr, order)
                continue
            with pytest.raises(ValueError, match="expected"):
                self.rows().run_csr(csr, order)

    def test_columns_ascend(self):
        indptr, values = np.arange(0, 10, 2, dtype=np.int32), np.ones(8)
        for columns in ([0, 1], [1, 0], [1, 1]):
            csr = _kernels.CsrMatrix(indptr, np.array(4 * columns, dtype=np.int32), values, 4, 4)
            assert csr.ascending == (columns == [0, 1])
            if not csr.ascending:
                with pytest.raises(ValueError, match="columns that ascend in each row"):
                    self.rows().run_csr(csr, ints(0))

    def items(self, n_parameters=4 * 5, table=TABLE):
        memory = np.zeros(n_parameters, np.float32), np.zeros(0, np.float32), np.zeros(0, np.float32)
        return _kernels.WarpItems(*memory, 4, 2, table, "plugin", 1.0, 0, "sgd", 0.1, 0.0, 16, 0, 1)

    @over("width", [np.int32, np.int64])
    @over(
        ("indptr", "indices", "user"),
        [
            ([0, 2], [0, 4], 0),
            ([0, 2], [-1, 2], 0),
            ([0, 2], [2, 1], 0),
            ([0, 2], [1, 1], 0),
            ([0, 3], [0, 1], 0),
            ([2, 0], [0, 1], 0),
            ([0, 2], [0, 1], 1),
            ([0, 2], [0, 1], 2**40),
            ([0, 2], [0, 1], -1),
            ([], [0, 1], 0),
        ],
    )
    def test_lists_of_items(self, width, indptr, indices, user):
        self.items().run(np.array([0, 2], width), np.array([0, 1], width), ints(0))
        with pytest.raises(ValueError, match="expected"):
            self.items().run(np.array(indptr, width), np.array(indices, width), ints(user))

    def test_factors_and_losses_for_all_items(self):
        with pytest.raises(ValueError, match="parameters for each item"):
            self.items(n_parameters=19)
        with pytest.raises(ValueError, match="a loss for each rank"):
            self.items(table=self.TABLE[:2]).run(ints(0, 2), ints(0, 1), ints(0))
