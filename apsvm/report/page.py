"""The page of a report: one HTML file without external parts, for light and dark schemes, paper and windows from a
telephone's width. Text that is not ``Markup`` is escaped on insertion, and invisible characters replaced."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable, Sequence

from apsvm._support.shown import printable
from apsvm.report.pictures.base import Picture
from apsvm.report.pictures.style import MissingMatplotlibError


class Markup(str):
    """HTML that is inserted without escaping."""

    __slots__ = ()


def escaped(value: object) -> Markup:
    """``value`` as text of the page, without a break before a percent sign."""
    return value if isinstance(value, Markup) else Markup(html.escape(printable(str(value))).replace(" %", "&nbsp;%"))


def joined(parts: Iterable[object]) -> Markup:
    return Markup("".join(escaped(part) for part in parts))


def element(tag: str, *content: object, **attributes: str) -> Markup:
    """``<tag …>content</tag>``; ``class_`` is the attribute ``class``, ``aria_label`` is ``aria-label``."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(printable(value))}"' for name, value in attributes.items()
    )
    return Markup(f"<{tag}{written}>{joined(content)}</{tag}>")


def breakable(text: str) -> Markup:
    """``text`` that may break behind "=", "_", "/", ":", "." and "-"."""
    return Markup(re.sub("([=_/:.-])(?=[^ ])", r"\1<wbr>", escaped(text)))


def table(
    heading: Sequence[object], rows: Iterable[Sequence[object]], *, left: Sequence[int] = (0,), names: bool = False
) -> Markup:
    """A table; columns are flush right except ``left``; ``names`` gives each cell its column's name."""

    def cells(tag: str, row: Sequence[object]) -> Markup:
        return joined(
            element(
                tag,
                cell,
                **({"class_": "left"} if at in left else {}),
                **({"data_name": str(heading[at])} if names and tag == "td" else {}),
            )
            for at, cell in enumerate(row)
        )

    head = element("thead", element("tr", cells("th", heading)))
    body = element("tbody", *(element("tr", cells("td", row)) for row in rows))
    return element("div", element("table", head, body), class_="scroll")


def facts(pairs: Iterable[tuple[object, object]]) -> Markup:
    """A list of names and values."""
    return element("dl", *(element("div", element("dt", name), element("dd", value)) for name, value in pairs))


def tiles(pairs: Iterable[tuple[object, object, object]]) -> Markup:
    """The main figures: name, value and a remark each."""
    return element(
        "div",
        *(
            element("div", element("span", name), element("b", value), element("small", word), class_="tile")
            for name, value, word in pairs
        ),
        class_="tiles",
    )


def drawn(picture: Picture, caption: str, width: float = 4.8) -> Markup:
    """The picture, ``width`` inches wide, with its caption; without matplotlib a sentence in its place."""
    try:
        content = base64.b64encode(picture.render("svg", width)).decode()
    except MissingMatplotlibError:
        image = element("p", "Pictures are drawn by matplotlib: pip install 'apsvm[plot]'", class_="muted")
    else:
        limits = f"min-width:{60.0 * width:.0f}px;max-width:{108.0 * width:.0f}px"
        image = Markup(f'<img src="data:image/svg+xml;base64,{content}" alt="{escaped(caption)}" style="{limits}">')
    return element("figure", image, element("figcaption", caption))


def bar(share: float, text: object) -> Markup:
    """``text`` with a bar of this share (0..1) of the cell behind it."""
    return element("span", text, class_="bar", style=f"--share:{min(max(share, 0.0), 1.0):.3f}")


def section(title: str, *content: object) -> Markup:
    return element("section", element("h2", title), *content)


def folded(summary: object, *content: object, is_open: bool = False) -> Markup:
    """``content`` folded under ``summary``."""
    opened = " open" if is_open else ""
    return Markup(f"<details{opened}>{element('summary', summary)}{joined(content)}</details>")


def page(title: str, *content: object, script: str = "") -> str:
    """The whole file; ``script``: JavaScript that runs at its end."""
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark">{element("title", title)}<style>{STYLE}</style>'
    )
    body = f"<main>{joined(content)}</main>" + (f"<script>{script}</script>" if script else "")
    sorts = ' class="sorts"' if script else ""
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body{sorts}>{body}</body></html>\n'


STYLE = """
:root{--ink:#1f2430;--muted:#626a78;--paper:#fff;--back:#f4f5f8;--line:#e3e6ec;--good:#00704f;--bad:#b34700;
--up:#0072b2;--down:#d55e00}
@media (prefers-color-scheme:dark){:root{--ink:#e6e8ee;--muted:#9aa3b2;--paper:#1b1f27;--back:#12151b;--line:#2b313c;
--good:#4fc7a0;--bad:#ff9d5c;--up:#56a8e8;--down:#ff8a3d}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,
"Helvetica Neue",Arial,sans-serif;-webkit-text-size-adjust:100%}
main{max-width:1240px;margin:0 auto;padding:24px 16px 48px}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:1.1rem;margin:0 0 10px}
h3{font-size:1rem;margin:18px 0 6px}
p{margin:0 0 10px;max-width:75ch;overflow-wrap:anywhere}
small,.muted{color:var(--muted)}
section,details,.note{background:var(--paper);border:1px solid var(--line);border-radius:8px;padding:16px;margin:14px 0}
details section{border:0;padding:0;margin:14px 0}
summary{cursor:pointer;font-weight:600}
.note{border-left:4px solid var(--bad)}
.state{display:inline-block;border-radius:999px;border:1px solid;padding:1px 10px;font-size:.85rem;font-weight:600}
.good{color:var(--good)}.bad{color:var(--bad)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:10px;margin:16px 0}
.tile{background:var(--paper);border:1px solid var(--line);border-radius:8px;padding:10px 14px;display:flex;
flex-direction:column}
.tile span{color:var(--muted);font-size:.85rem}.tile b{font-size:1.35rem;font-variant-numeric:tabular-nums}
dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,290px),1fr));gap:2px 28px;margin:0}
dl div{display:flex;justify-content:space-between;gap:12px;border-bottom:1px solid var(--line);padding:4px 0}
dt{color:var(--muted)}dd{margin:0;text-align:right;overflow-wrap:anywhere;font-variant-numeric:tabular-nums}
.scroll{overflow-x:auto;margin:6px 0 12px}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem;min-width:60%}
th,td{padding:4px 10px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th{color:var(--muted);font-weight:600}
.left{text-align:left}
.bar{display:block;min-width:110px;padding:0 4px;border-radius:3px;
background:linear-gradient(to right,color-mix(in srgb,var(--up) 30%,transparent) calc(100%*var(--share)),
transparent 0)}
.listed table{width:100%}.listed td{vertical-align:top}
.listed td.left{white-space:normal;overflow-wrap:anywhere}.listed td:last-child{width:50%}
.reason{display:grid;grid-template-columns:minmax(0,1fr) 5.5em minmax(70px,160px);gap:8px;align-items:center;
line-height:1.35}
.reason span{white-space:normal;overflow-wrap:anywhere}.reason b{text-align:right;font-weight:400;white-space:nowrap}
.reason i{height:.6em;width:calc(50%*var(--share))}.up{margin-left:50%;background:var(--up)}
.down{margin-left:calc(50% - 50%*var(--share));background:var(--down)}
.beside{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,340px),1fr));gap:24px}
.beside table{width:100%}
figure{margin:0;overflow-x:auto}figcaption{color:var(--muted);font-size:.85rem;margin-top:2px}
img{display:block;width:100%;background:#fff}
@media print{body{background:#fff}section,.tile{break-inside:avoid-page;border:0;padding:0}.scroll{overflow:visible}
tr{break-inside:avoid}}
@media (max-width:760px){main{padding:16px 10px 32px}section,details,.note{padding:12px}th,td{padding:4px}
table{font-size:.85rem;min-width:100%}
body:not(.sorts) .listed thead{display:none}
.listed tr{display:flex;flex-wrap:wrap;border-bottom:1px solid var(--line);padding:6px 0}
.listed :is(th,td){border:0;padding:2px 8px 2px 0;text-align:left}
.listed td[data-name]:not(:last-child)::before{content:attr(data-name) " ";color:var(--muted)}
.listed td:last-child{flex:1 0 100%;width:auto}
.reason{grid-template-columns:minmax(0,1fr) auto;gap:0 8px;margin-bottom:3px}.reason i{grid-column:1/-1;height:3px}
:not(.listed)>.scroll th{white-space:normal}.bar{min-width:70px}}
"""
