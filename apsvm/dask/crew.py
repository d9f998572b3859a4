"""All shards together: a round asks each of them the same, and waits for all answers.

A shard is the rows of some parts, kept where it was made; a crew knows how to reach them (``LocalCrew`` in this
process, ``actors.ActorCrew`` on a cluster). Rounds, bytes and times are counted: they are what a cluster costs.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from apsvm.dask.messages import Arguments, Programme, Reply, answer_type, is_of, size_of
from apsvm.dask.shards import Shard
from apsvm.dask.sources import Source


class ShardLostError(RuntimeError):
    """A worker has gone, and what its shard held with it; ``Crew.recover`` brings the shard back, without vectors."""


class ClusterError(OSError):
    """There is no such cluster, it has no workers, or they are lost again and again."""


class WorkerError(RuntimeError):
    """A fault on a worker that is not of the rows; says on which worker."""


@dataclass(slots=True)
class Traffic:
    """What rounds took.

    Attributes
    ----------
    rounds : how many
    sent, received : bytes to and from all shards together
    seconds : that the driver waited for answers
    working_seconds : of those, what the slowest shard of each round worked; the rest is the way there and back
    """

    rounds: int = 0
    sent: int = 0
    received: int = 0
    seconds: float = 0.0
    working_seconds: float = 0.0


#: What a shard says, and the seconds that it worked.
Answer: TypeAlias = tuple[Reply, float]


class Call(NamedTuple):
    """A method of all shards, with the arguments of all and those of each."""

    method: str
    common: Arguments
    each: Sequence[Arguments] | None

    def arguments(self, shard: int) -> Arguments:
        return (*self.common, *(() if self.each is None else self.each[shard]))


class Crew(ABC):
    """See the module.

    Attributes
    ----------
    traffic : since it was last taken
    losses : how many shards were lost so far
    """

    #: Recoveries without a round that went well between them, after which hope is lost.
    MOST_RECOVERIES = 10

    def __init__(self) -> None:
        self.traffic = Traffic()
        self.losses = 0
        self._set_up: list[Call] = []
        self._recoveries = 0

    @abstractmethod
    def __len__(self) -> int:
        """How many shards there are."""

    @abstractmethod
    def _ask(self, call: Call, programme: Programme) -> list[Answer]:
        """The answers of all shards. Raises ShardLostError, and what a shard raised."""

    @abstractmethod
    def _bring_back(self, set_up: Sequence[Call]) -> int:
        """Makes the shards that are lost again, and puts them through ``set_up``; how many there were."""

    def names(self) -> list[str]:
        """What messages call the workers of the shards."""
        return [f"worker {shard}" for shard in range(len(self))]

    def close(self) -> None:
        """Lets the shards go."""
        self._set_up = []

    def ask(
        self,
        method: str,
        *common: object,
        each: Sequence[Arguments] | None = None,
        programme: Programme = (),
    ) -> list[Reply]:
        """What each shard answers to this method, in their order; a round.

        Raises
        ------
        ShardLostError : a worker has gone; ClusterError : an answer is of another type than the method's; what else a
        shard raised
        """
        call, began = Call(method, common, each), time.perf_counter()
        answers = self._ask(call, programme)
        seconds = time.perf_counter() - began
        question = getattr(Shard, method)
        kind = answer_type(question)
        for name, answer in zip(self.names(), answers, strict=True):
            if not is_of(answer, kind):
                wanted = question.__annotations__["return"]
                raise ClusterError(f"{name}: it does not answer {method!r} as apsvm does, by {wanted}")
        traffic = self.traffic
        traffic.rounds += 1
        traffic.sent += len(self) * (size_of(common) + size_of(programme)) + (0 if each is None else size_of(each))
        traffic.received += sum(size_of(result) for result, _ in answers)
        traffic.seconds += seconds
        traffic.working_seconds += max(working for _, working in answers)
        self._recoveries = 0
        return [result for result, _ in answers]

    def ask_surely(self, method: str, *common: object, each: Sequence[Arguments] | None = None) -> list[Reply]:
        """``ask``, for what needs no score vectors: again, where a shard was lost."""
        while True:
            try:
                return self.ask(method, *common, each=each)
            except ShardLostError:
                self.recover()

    def set_up(self, method: str, *common: object, each: Sequence[Arguments] | None = None) -> list[Reply]:
        """``ask``, for what changes a shard for good: one that is brought back is put through it again."""
        while True:
            try:
                answers = self.ask(method, *common, each=each)
            except ShardLostError:
                self.recover()
                continue
            self._set_up.append(Call(method, common, each))
            return answers

    def recover(self) -> None:
        """Brings lost shards back, as they were set up.

        Raises
        ------
        ClusterError : it goes on and on; ValueError, OSError : a part cannot be read any more
        """
        while True:
            self._recoveries += 1
            if self._recoveries > self.MOST_RECOVERIES:
                raise ClusterError(
                    f"workers were lost {self._recoveries} times without a round of work between: the cluster is not up"
                )
            try:
                self.losses += self._bring_back(self._set_up)
            except ShardLostError:
                continue
            return

    def take_traffic(self) -> Traffic:
        """Since this was last asked."""
        traffic, self.traffic = self.traffic, Traffic()
        return traffic


class LocalCrew(Crew):
    """Shards in this process, one after another: for tests of the protocol, and for figures of many workers."""

    def __init__(self, sources: Sequence[Sequence[Source]]) -> None:
        super().__init__()
        self._sources = [list(of_shard) for of_shard in sources]
        self._shards: list[Shard | None] = [self._made(at) for at in range(len(sources))]

    def __len__(self) -> int:
        return len(self._shards)

    def _made(self, shard: int) -> Shard:
        return Shard(self._sources[shard], 1, f"worker {shard}")

    def lose(self, shard: int) -> None:
        """As if its worker died."""
        self._shards[shard] = None

    def _ask(self, call: Call, programme: Programme) -> list[Answer]:
        answers = []
        for at, shard in enumerate(self._shards):
            if shard is None:
                raise ShardLostError
            answers.append(shard.call(programme, call.method, *call.arguments(at)))
        return answers

    def _bring_back(self, set_up: Sequence[Call]) -> int:
        lost = 0
        for at, shard in enumerate(self._shards):
            if shard is not None:
                continue
            lost += 1
            self._shards[at] = again = self._made(at)
            for call in set_up:
                again.call((), call.method, *call.arguments(at))
        return lost
