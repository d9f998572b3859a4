"""Choices that a training leaves open, made on held-out rows. ``completion`` is the way in for every training.
``grids`` and ``candidates`` list what is compared, ``folds`` the rows, ``race`` runs the comparison, ``choose`` and
``average`` decide."""
