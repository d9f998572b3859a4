"""Tables with named columns, CSV, Parquet and Arrow, as rows of features.

A table is read as cells (``cells.py``), each a number, a word or nothing. What its columns are and what becomes of them
is learned from the training rows (``learning.py``) and kept in the model (``apsvm.models.columns``); the same is then
made of every table (``features.py``), whose columns are found by name.
"""

from __future__ import annotations
