"""Content of an HTML page."""

from __future__ import annotations

from html.parser import HTMLParser


class Reader(HTMLParser):
    """The headings of the sections, the rows of all tables, names and values of the lists of facts, and the text."""

    def __init__(self, page):
        super().__init__()
        self.rows, self.facts, self.text, self.tags, self.open, self.sections = [], {}, [], [], [], []
        self.begins = []  # where in the rows each table does
        self.feed(page.replace("<wbr>", ""))
        assert self.open == [], f"not closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "img"):
            self.open.append(tag)
        if tag == "table":
            self.begins.append(len(self.rows))
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        elif tag == "dt":
            self.facts[None] = ""
            self.name = ""

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" in self.open:
            return
        self.text.append(data)
        if "h2" in self.open:
            self.sections.append(data)
        if self.rows and ("td" in self.open or "th" in self.open):
            self.rows[-1][-1] += data
        if "dt" in self.open:
            self.name += data
        elif "dd" in self.open:
            self.facts[self.name] = self.facts.get(self.name, "") + data

    def table(self, *heading):
        """The rows below the heading of the first table that begins so."""
        at = next(i for i in self.begins if tuple(self.rows[i][: len(heading)]) == heading)
        end = min((i for i in self.begins if i > at), default=len(self.rows))
        return self.rows[at + 1 : end]

    @property
    def all_text(self):
        return " ".join(self.text)
