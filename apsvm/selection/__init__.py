"""Settings compared by k-fold cross-validation, and the best one trained on all rows, over the face of trainers alone.

``grids`` says what is tried, ``folds`` on which rows, ``cross_validation`` trains and measures it, ``choice`` decides,
and ``search`` does all of it in order, a wider grid and the last training included.
"""
