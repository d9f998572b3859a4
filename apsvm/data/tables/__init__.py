"""Tables with named columns (CSV, Parquet, Arrow, JSON, Excel) as rows of features.

``cells.py`` holds the cells of a column, each a number, a word or missing. ``learning.py`` learns from the training
rows how columns become features, for the model to keep (``apsvm.models.columns``). ``features.py`` makes the features
of every table, whose columns are found by name.
"""

from __future__ import annotations
