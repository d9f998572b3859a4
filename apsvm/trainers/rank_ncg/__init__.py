"""RankNCG: the pairs' losses by fast sums, minimised by nonlinear conjugate gradients (``--loss wmw``)."""
