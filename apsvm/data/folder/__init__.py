"""The data folder: a data set as arrays on disk that are mapped into memory, opened in milliseconds.

    header.json                              what is here: layout, shape, types, source; size and sha256 of every member
    relevance.npy                            (n,) float64
    groups.npy, costs.npy                    (n,) int64 and (n,) float64, where the file had qid or cost
    bags.npy                                 (n,) int64, where the rows are in bags
    classes.npy, label_indptr.npy, label_indices.npy
                                             (k,) float64, (n + 1,) int64 and (m,) int32, where rows have several labels
    indptr.npy, indices.npy, values.npy      layout csr: (n + 1,) and (nnz,) int32 | int64, (nnz,) float32 | float64
    X.npy                                    layout dense: (n, d) float32 | float64, C order; a zero is a zero

The row kernels trust their input, so nothing that is mapped may lead them outside an array. Every opening therefore
checks the header (and its own checksum), the size, type and shape of every member, that the row pointers rise from 0
to nnz (to m for the labels), that labels and costs are what they must be, and that every index is a column (a class):
O(n + nnz), a few milliseconds a hundred megabytes. `verify` also checks what is not dangerous but wrong: the checksum
of every member, that values are finite and that the indices of a row are sorted without duplicates.
"""

from __future__ import annotations

from apsvm.data.folder.header import is_data_folder
from apsvm.data.folder.opening import open_folder
from apsvm.data.folder.writing import check_replaceable, write_folder

__all__ = ["check_replaceable", "is_data_folder", "open_folder", "write_folder"]
