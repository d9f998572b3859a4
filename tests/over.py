"""``over``: one test for a property of many values, where ``pytest.mark.parametrize`` would make a test of each."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., None])

#: True with ``--quick``: only the first and the last value are run.
few = False


def over(
    names: str | Sequence[str], values: Iterable[Any], ids: Callable[[Any], object] | Iterable[str] | None = None
) -> Callable[[Test], Test]:
    """A decorator that runs a test for each of ``values`` in turn. All that fail are raised together, each with a note
    that names its value.

    The arguments are those of ``pytest.mark.parametrize``. Fixtures are shared by the values, but for ``rng``, which
    begins anew, and ``tmp_path``, a folder for each.
    """
    arguments = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    cases = []
    for value in values:
        if hasattr(value, "marks"):  # a pytest.param
            cases.append((value.values, value.id))
        else:
            cases.append((tuple(value) if len(arguments) > 1 else (value,), None))
    labels = [None] * len(cases) if ids is None or callable(ids) else [str(label) for label in ids]
    spelled = ids if callable(ids) else repr

    def label(index: int) -> str:
        own, name = cases[index]
        return (name or labels[index] or ", ".join(str(spelled(value)) for value in own))[:300]

    def anew(fixtures: dict[str, Any], index: int) -> dict[str, Any]:
        result = {**fixtures, "rng": copy.deepcopy(fixtures["rng"])} if "rng" in fixtures else dict(fixtures)
        if "tmp_path" in fixtures:
            result["tmp_path"] = fixtures["tmp_path"] / str(index)
            result["tmp_path"].mkdir()
        return result

    def decorated(test: Test) -> Test:
        signature = inspect.signature(test)
        assert set(arguments) <= set(signature.parameters), f"{test.__name__} lacks one of the arguments {arguments}"

        @functools.wraps(test)
        def run(*positional: Any, **fixtures: Any) -> None:
            failures: list[Exception] = []
            skipped: list[BaseException] = []
            chosen = sorted({0, len(cases) - 1}) if few else range(len(cases))
            for index in chosen:
                try:
                    test(*positional, **anew(fixtures, index), **dict(zip(arguments, cases[index][0], strict=True)))
                except pytest.skip.Exception as skip:
                    skipped.append(skip)
                except (Exception, pytest.fail.Exception) as failure:
                    error = failure if isinstance(failure, Exception) else AssertionError(str(failure))
                    error.add_note(f"{', '.join(arguments)}: {label(index)}")
                    failures.append(error)
            if len(failures) == 1:
                raise failures[0]
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(chosen)} values fail", failures)
            if len(skipped) == len(chosen):
                raise skipped[0]

        kept = [parameter for name, parameter in signature.parameters.items() if name not in arguments]
        run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return run  # type: ignore[return-value]

    return decorated
