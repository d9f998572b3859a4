"""A hook of mkdocs: mkdocs-click shows what click has for an option without a default."""

from __future__ import annotations


def on_page_content(html: str, **_: object) -> str:
    return html.replace("<code>Sentinel.UNSET</code>", "")
