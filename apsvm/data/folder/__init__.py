"""The data folder: a data set as arrays on disk that are mapped into memory, opened in milliseconds.

    header.json                              what is here: layout, shape, types, source; members' sizes and checksums
    relevance.npy                            (n,) float64
    groups.npy, costs.npy                    (n,) int64 and (n,) float64, where the file had qid or cost
    bags.npy                                 (n,) int64, where the rows are in bags
    classes.npy, label_indptr.npy, label_indices.npy
                                             (k,) float64, (n + 1,) int64 and (m,) int32, where rows have several labels
    indptr.npy, indices.npy, values.npy      layout csr: (n + 1,) and (nnz,) int32 | int64, (nnz,) float32 | float64
    X.npy                                    layout dense: (n, d) float32 | float64, C order; a zero is a zero

The row kernels trust their input, so nothing that is mapped may lead them outside an array. Every opening therefore
checks the header (and its own checksum), the size, type and shape of every member, that the row pointers rise from 0
to nnz (to m for the labels), that labels and costs are what they must be, and that every index is a column (a class).
Checksums are checked of what the rows are (labels, queries, costs, bags), of every member up to 256 MB, and of some
blocks, drawn anew each time, of larger ones; `verify` checks all of them, that values are finite and that the indices
of a row are sorted without duplicates. A member that is cut off or written to while it is mapped is noticed before the
next pass over the rows (``apsvm.data.mapped_files``).
"""

from __future__ import annotations

from apsvm.data.folder.gathering import gathered
from apsvm.data.folder.header import is_data_folder
from apsvm.data.folder.opening import open_folder
from apsvm.data.folder.writing import check_replaceable, write_folder

__all__ = ["check_replaceable", "gathered", "is_data_folder", "open_folder", "write_folder"]
