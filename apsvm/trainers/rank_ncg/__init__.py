"""RankNCG: sums over all pairs in linear time, minimised by L-BFGS or nonlinear conjugate gradients (``--loss
wmw``)."""
