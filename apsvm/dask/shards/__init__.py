"""A shard: rows in the memory of one worker, the score vectors over them, and what the driver asks of them.

The driver never sees rows. It sends w, or weights by cells of scores, and is answered with sums over the rows, counts
of scores, and the few scores whose ranks nothing else settles (``apsvm.dask.long_list`` has the protocol). Rows stand
in the order of the parts, and of the rows in a part; of equal scores the earlier row comes first, as on one machine.
"""

from __future__ import annotations

from apsvm.dask.shards.lists import ListShard
from apsvm.dask.shards.queries import QueriesShard
from apsvm.dask.shards.scored import ScoredShard


class Shard(ListShard, QueriesShard, ScoredShard):
    """See the module; ``call`` is the way in."""
