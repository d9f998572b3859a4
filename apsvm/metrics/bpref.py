"""bpref, the binary preference: a measure of how few judged non-relevant rows stand above the relevant ones.

    bpref = (1/P) Σ_{ranked positives}  1 − min(c, P) / min(N, P),      c = #judged negatives above the positive

with N judged negatives in all, the unranked ones included; a positive without a judged negative above it adds 1.
Unjudged rows are ignored.

Source: Buckley, Voorhees, "Retrieval evaluation with incomplete information", SIGIR 2004, in the form of trec_eval
since version 8. Under the tie rule ``block`` the expectation over the blocks' shuffles: if a judged negatives stand
above a block that has b, the number above a positive of the block is a + U with U uniform on 0..b, so that

    (b + 1)·E[min(a + U, P)] = Σ_{u=0..t} (a + u) + (b − t)·P,      t = min(b, max(P − a, −1)).

Cost: O(m).
"""

import numpy as np

from apsvm.metrics.base import Metric
from apsvm.metrics.ranking_table import RankingTable, Values


class BinaryPreference(Metric):
    """``bpref``."""

    form = "bpref"

    def _compute(self, table: RankingTable) -> Values:
        positives = table.n_positives
        if table.judged is None:
            negatives, passed = table.n_negatives, table.ends - table.hits
        else:
            missed = table.judged & ~table.relevant
            negatives, passed = table.sum_rows(missed), table.accumulate_rows(missed[table.ranked_rows])
        among = table.in_runs(passed)
        above, limit = passed - among, table.of_runs(positives)
        whole = np.minimum(among, np.maximum(limit - above, -1))
        capped = ((whole + 1) * above + whole * (whole + 1) // 2 + (among - whole) * limit) / (among + 1)
        # without judged negatives `capped` is 0 everywhere
        kept = 1 - capped / np.maximum(table.of_runs(np.minimum(negatives, positives)), 1)
        return table.sum_runs(table.gains * kept) / positives
