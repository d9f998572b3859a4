"""Training a sorter on made lists (§3.1 and §4.1.1 of the paper): min_Θ mean_n ‖f_Θ(y_n) − rk(y_n)‖₁ / L by Adam, whose
step length is halved every this many lists.

The lists of step t depend on the seed and t alone, so that a training that goes on from its file takes the same steps,
to the bit, as one that never stopped (on the same device, with as many threads).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

import torch
from torch import Generator, Tensor, nn

from apsvm._support.files import read_bytes, write_whole
from apsvm._support.log import Log, NoLog
from apsvm._support.registry import UnknownNameError
from apsvm.torch.checkpoint import CheckpointError, SorterHeader, field, fill, sealed, unsealed
from apsvm.torch.ranks import exact_ranks
from apsvm.torch.score_lists import draw_lists, seeded
from apsvm.torch.sorters import SORTERS, Sorter, SorterError, make_sorter

#: Lists of an epoch, by which the paper counts.
EPOCH = 100_000
#: A line of progress after this many steps, or seconds if they come first.
STEPS_A_LINE, SECONDS_A_LINE = 20, 10.0
#: Gradients of the parameters are shortened to this.
LONGEST_GRADIENT = 1.0


#: What a file's settings are held to before they are read.
_TYPES = {
    "architecture": str, "length": int, "longest": int | None, "batch": int, "learning_rate": int | float | None,
    "halve_every": int, "seed": int,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SorterSettings:
    """What is trained, and how.

    Attributes
    ----------
    architecture : a name of ``make_sorter``
    length : scores of a list
    longest : of sorters that take lists of any length: each batch has a length of its own, from ``length`` to this,
        small ones as likely as large ones on a logarithmic scale; None: all have ``length``
    batch : lists of a step
    learning_rate : Adam's step length at first; None: the architecture's
    halve_every : lists after which it is halved
    seed : of the first weights and of the lists
    """

    architecture: str
    length: int = 100
    longest: int | None = None
    batch: int = 512
    learning_rate: float | None = None
    halve_every: int = 100 * EPOCH
    seed: int = 0

    def __post_init__(self) -> None:
        for name, kind in _TYPES.items():
            if not isinstance(getattr(self, name), kind) or isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} is {getattr(self, name)!r}")
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
        """Of a batch."""
        if self.longest is None:
            return self.length
        share = float(torch.rand((), generator=generator, dtype=torch.float64))
        return min(self.longest, int(self.length * ((self.longest + 1) / self.length) ** share))


@dataclass(frozen=True, slots=True)
class SorterProgress:
    """After some steps.

    number : of this progress in this run, from 1
    steps, seen : so far, and the lists of them
    l1 : mean over the lists since the last progress
    learning_rate : of the next step
    seconds : since this run began
    """

    number: int
    steps: int
    seen: int
    l1: float
    learning_rate: float
    seconds: float


class SorterTraining:
    """A sorter with the state of its optimiser: ``run`` goes on, ``save`` and ``resumed`` are its file.

    Parameters
    ----------
    settings : what is trained, and how
    device : where
    sorter : one that training has begun of; None: a new one

    Raises
    ------
    SorterError : an architecture that has nothing to train, or bad settings
    """

    def __init__(
        self, settings: SorterSettings, device: str | torch.device = "cpu", *, sorter: Sorter | None = None
    ) -> None:
        if not SORTERS[SORTERS.spelled(settings.architecture).form].trained:
            raise SorterError(f"sorter {settings.architecture!r} needs no training")
        self.settings = settings
        self.steps = 0
        self.device = torch.device(device)
        if sorter is None:
            # The first weights are drawn on the CPU, and the state of no generator changes.
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(settings.seed)
                sorter = make_sorter(settings.architecture, settings.length)
        self.sorter = sorter.to(self.device)
        self._optimizer = torch.optim.Adam(self.sorter.parameters(), lr=self.learning_rate)

    @property
    def seen(self) -> int:
        """Lists so far."""
        return self.steps * self.settings.batch

    @property
    def learning_rate(self) -> float:
        """Of the next step."""
        halvings = min(self.seen // self.settings.halve_every, 1000)
        return (self.settings.learning_rate or self.sorter.pace) * 0.5**halvings

    def step(self) -> Tensor:
        """One batch: its L1 before the step, a scalar on the device."""
        settings = self.settings
        generator = seeded("training", settings.seed, self.steps)
        scores, _ = draw_lists(generator, settings.batch, settings.length_of(generator))
        ranks = exact_ranks(scores).to(self.device)
        for group in self._optimizer.param_groups:
            group["lr"] = self.learning_rate
        self._optimizer.zero_grad()
        error, l1 = self.sorter.error(scores.to(self.device), ranks, generator)
        error.backward()
        nn.utils.clip_grad_norm_(self.sorter.parameters(), LONGEST_GRADIENT)
        self._optimizer.step()
        self.sorter.mark_trained()
        self.steps += 1
        return l1.detach()

    def run(
        self,
        *,
        samples: int | None = None,
        time_limit: float | None = None,
        progress: Callable[[SorterProgress], None] = lambda _: None,
        log: Log | None = None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> str:
        """Steps until ``samples`` lists have been seen in all, or ``time_limit`` seconds have passed, or
        ``should_stop``; why it stopped: "all lists seen", "time limit" or "interrupted".

        Raises
        ------
        FloatingPointError : L1 is no longer finite
        """
        log = log or NoLog()
        began = time.monotonic()
        log.write("start", **asdict(self.settings), samples=samples, steps=self.steps, seen=self.seen)
        errors: list[Tensor] = []
        lines, shown = 0, 0.0
        state = ""
        self.sorter.train()
        while not state:
            seconds = time.monotonic() - began
            if samples is not None and self.seen >= samples:
                state = "all lists seen"
            elif time_limit is not None and seconds >= time_limit:
                state = "time limit"
            elif should_stop():
                state = "interrupted"
            if errors and (state or len(errors) >= STEPS_A_LINE or seconds - shown >= SECONDS_A_LINE):
                lines += 1
                line = self._progress(lines, errors, seconds)
                progress(line)
                log.write("batches", **asdict(line))
                errors, shown = [], seconds
            if not state:
                errors.append(self.step())
        log.write("end", state=state, steps=self.steps, seen=self.seen)
        return state

    def header(self, l1: float = torch.nan, climb: float = torch.nan) -> SorterHeader:
        """What the sorter's file says of it."""
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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes all that a later run needs to go on, or nothing; OSError if it cannot be written."""
        tensors = {f"sorter.{name}": tensor for name, tensor in self.sorter.state_dict().items()}
        for name, parameter in self.sorter.named_parameters():
            for moment in _MOMENTS:
                if parameter in self._optimizer.state:
                    tensors[f"{moment}.{name}"] = self._optimizer.state[parameter][moment]
        write_whole(path, sealed({"kind": "training", "settings": asdict(self.settings), "steps": self.steps}, tensors))

    @classmethod
    def resumed(cls, path: str | os.PathLike[str], device: str | torch.device = "cpu") -> SorterTraining:
        """The training in the file that ``save`` wrote.

        Raises
        ------
        CheckpointError : it is damaged, or no training
        OSError : it cannot be read
        """
        try:
            header, tensors = unsealed(read_bytes(path))
            if header.get("kind") != "training":
                raise CheckpointError(f"it holds no training but {header.get('kind')!r}")
            settings = _settings(field(header, "settings", dict))
            # Without memory: what the header asks for is compared with what is there before any is taken.
            with torch.device("meta"):
                sorter = make_sorter(settings.architecture, settings.length)
            fill(sorter, _under("sorter", tensors))
            training = cls(settings, device, sorter=sorter)
            training._continue(field(header, "steps", int), tensors)
        except (CheckpointError, SorterError, UnknownNameError, RuntimeError) as error:
            raise CheckpointError(f"{os.fspath(path)}: {error}") from None
        return training

    def _continue(self, steps: int, tensors: Mapping[str, Tensor]) -> None:
        if steps < 0:
            raise CheckpointError(f"its header's 'steps' is {steps}")
        self.steps = steps
        learned = [item for item in self.sorter.named_parameters() if item[1].requires_grad]
        for name, parameter in learned if steps else ():
            moments = {moment: tensors.get(f"{moment}.{name}") for moment in _MOMENTS}
            for moment, values in moments.items():
                if values is None or values.shape != parameter.shape:
                    raise CheckpointError(f"it lacks {moment} of {name}, or not of its shape")
            self._optimizer.state[parameter] = {
                "step": torch.tensor(float(steps)),
                **{moment: values.to(self.device) for moment, values in moments.items() if values is not None},
            }

    def _progress(self, number: int, errors: list[Tensor], seconds: float) -> SorterProgress:
        l1 = float(torch.stack(errors).double().mean())
        if not l1 < float("inf"):
            raise FloatingPointError(f"L1 is {l1} after {self.steps} steps: a smaller learning rate may help")
        return SorterProgress(number, self.steps, self.seen, l1, self.learning_rate, seconds)


#: What Adam keeps of each parameter.
_MOMENTS = ("exp_avg", "exp_avg_sq")


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {
        name.removeprefix(f"{prefix}."): tensor for name, tensor in tensors.items() if name.startswith(f"{prefix}.")
    }


def _settings(content: Mapping[str, object]) -> SorterSettings:
    try:
        settings = SorterSettings(**content)  # type: ignore[arg-type]
    except TypeError as error:
        raise CheckpointError(f"its header's settings are no sorter's: {error}") from None
    return settings
