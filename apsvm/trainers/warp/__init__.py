"""WARP: stochastic steps on sampled pairs, of rows or of items that users like (``--loss warp``)."""
