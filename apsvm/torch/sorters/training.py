"""Training a sorter on generated lists (§3.1 and §4.1.1 of the paper): min_Θ mean_n ‖f_Θ(y_n) − rk(y_n)‖₁ / L by Adam.
The step length is halved after every ``halve_every`` lists.

The lists of step t depend only on the seed and t: equal settings give equal sorters, to the bit, on the same device
with the same number of threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from apsvm.torch.checkpoint import SorterHeader
from apsvm.torch.ranks import exact_ranks
from apsvm.torch.score_lists import draw_lists, seeded
from apsvm.torch.sorters import SORTERS, SorterError, make_sorter

#: Lists in an epoch of the paper.
EPOCH = 100_000
#: Progress is reported after this many steps or seconds, whichever comes first.
STEPS_A_LINE, SECONDS_A_LINE = 20, 10.0
#: Maximum norm of the parameters' gradient.
LONGEST_GRADIENT = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SorterSettings:
    """Settings of a sorter's training.

    Attributes
    ----------
    architecture : a name of ``make_sorter``
    length : number of scores in a list
    longest : for sorters of any length: the length of each batch is drawn between ``length`` and this, uniformly on a
        logarithmic scale; None: all have ``length``
    batch : number of lists in a step
    learning_rate : Adam's initial step length; None: the architecture's default
    halve_every : lists after which it is halved
    seed : seed of the initial weights and of the lists
    """

    architecture: str
    length: int = 100
    longest: int | None = None
    batch: int = 512
    learning_rate: float | None = None
    halve_every: int = 100 * EPOCH
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("length", "batch", "halve_every"):
            if getattr(self, name) < 1:
                raise SorterError(f"expected {name} of 1 or more, found {getattr(self, name)!r}")
        kind = SORTERS[SORTERS.spelled(self.architecture).form]
        for length in (self.length, self.longest or self.length):
            kind.check_length(length)
        if self.longest is not None:
            if kind.fixed_length:
                raise SorterError(f"sorter {self.architecture!r} takes lists of one length: no longest")
            if self.longest < self.length:
                raise SorterError(f"expected longest to be at least the length {self.length}, found {self.longest!r}")
        if self.learning_rate is not None and not 0 < self.learning_rate < float("inf"):
            raise SorterError(f"expected a finite learning_rate above 0, found {self.learning_rate!r}")
        if not 0 <= self.seed < 2**63:
            raise SorterError(f"expected a seed from 0 to 2⁶³ − 1, found {self.seed!r}")

    def length_of(self, generator: Generator) -> int:
        """Length of the lists of a batch."""
        if self.longest is None:
            return self.length
        share = float(torch.rand((), generator=generator, dtype=torch.float64))
        return min(self.longest, int(self.length * ((self.longest + 1) / self.length) ** share))


@dataclass(frozen=True, slots=True)
class SorterProgress:
    """Progress of a training.

    steps, seen : number of steps and of lists so far
    l1 : mean L1 of the lists since the last report
    seconds : since this run began
    """

    steps: int
    seen: int
    l1: float
    seconds: float


class SorterTraining:
    """A sorter with the state of its optimiser; ``run`` continues the training.

    Parameters
    ----------
    settings : settings of the training
    device : device of the training

    Raises
    ------
    SorterError : an architecture without parameters to train, or bad settings
    """

    def __init__(self, settings: SorterSettings, device: str | torch.device = "cpu") -> None:
        if not SORTERS[SORTERS.spelled(settings.architecture).form].trained:
            raise SorterError(f"sorter {settings.architecture!r} needs no training")
        self.settings = settings
        self.steps = 0
        self.device = torch.device(device)
        # Initial weights are drawn on the CPU, without changing the state of global generators.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            self.sorter = make_sorter(settings.architecture, settings.length).to(self.device)
        self._optimizer = torch.optim.Adam(self.sorter.parameters(), lr=self.learning_rate)

    @property
    def seen(self) -> int:
        """Number of lists so far."""
        return self.steps * self.settings.batch

    @property
    def learning_rate(self) -> float:
        """Learning rate of the next step."""
        halvings = min(self.seen // self.settings.halve_every, 1000)
        return (self.settings.learning_rate or self.sorter.pace) * 0.5**halvings

    def step(self) -> Tensor:
        """Trains on one batch; returns its L1 before the step, a scalar on the device."""
        settings = self.settings
        generator = seeded("training", settings.seed, self.steps)
        scores = draw_lists(generator, settings.batch, settings.length_of(generator))
        ranks = exact_ranks(scores).to(self.device)
        for group in self._optimizer.param_groups:
            group["lr"] = self.learning_rate
        self._optimizer.zero_grad()
        error, l1 = self.sorter.error(scores.to(self.device), ranks, generator)
        error.backward()
        nn.utils.clip_grad_norm_(self.sorter.parameters(), LONGEST_GRADIENT)
        self._optimizer.step()
        self.sorter.is_untrained = False
        self.steps += 1
        return l1.detach()

    def run(
        self,
        *,
        samples: int | None = None,
        progress: Callable[[SorterProgress], None] = lambda _: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> str:
        """Trains until ``samples`` lists in all, or ``should_stop``; returns the reason for the end, "all lists seen"
        or "interrupted".

        Raises
        ------
        FloatingPointError : L1 is no longer finite
        """
        began = time.monotonic()
        errors: list[Tensor] = []
        reported = 0.0
        state = ""
        self.sorter.train()
        while not state:
            seconds = time.monotonic() - began
            if samples is not None and self.seen >= samples:
                state = "all lists seen"
            elif should_stop():
                state = "interrupted"
            if errors and (state or len(errors) >= STEPS_A_LINE or seconds - reported >= SECONDS_A_LINE):
                l1 = float(torch.stack(errors).double().mean())
                if not l1 < float("inf"):
                    raise FloatingPointError(f"L1 is {l1} after {self.steps} steps: a smaller learning rate may help")
                progress(SorterProgress(self.steps, self.seen, l1, seconds))
                errors, reported = [], seconds
            if not state:
                errors.append(self.step())
        return state

    def header(self, l1: float = torch.nan, climb: float = torch.nan) -> SorterHeader:
        """Header of the sorter's file."""
        return SorterHeader(
            architecture=self.sorter.architecture,
            arguments=self.sorter.arguments(),
            length=self.sorter.length,
            trained_length=self.settings.length,
            trained_longest=self.settings.longest,
            seen=self.seen,
            l1=l1,
            climb=climb,
            seed=self.settings.seed,
        )
