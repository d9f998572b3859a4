"""click's ``ParamType``, to be subscripted by what it converts to: click's own takes a subscript from 8.4 on only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click import ParamType
else:

    class ParamType(click.ParamType):
        def __class_getitem__(cls, item: Any) -> type[ParamType]:
            return cls


__all__ = ["ParamType"]
