"""The fields of a log are those of the tables of docs/log.md, for each trainer."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np

PAGE = (Path(__file__).parents[2] / "docs" / "log.md").read_text(encoding="utf-8")
TRAININGS = ("--bound hinge -C 1 --log-ranks", "--bound tight", "--one-vs-rest", "--layer-wise 2 -C 1x", "--loss wmw",
             "--loss warp --validation data.svm")  # fmt: skip
PARTS = {"scores", "gradient", "qp", "by score", "sums", "oracle"}


def documented():
    """Names of fields by the title of their section."""
    sections = re.split(r"^##+ ", PAGE.partition("## Fields of every record")[2], flags=re.MULTILINE)
    cells = {part.partition("\n")[0]: re.findall(r"^\| (`.*?) \|", part, flags=re.MULTILINE) for part in sections}
    return {title: set(re.findall(r"`([^`]+)`", " ".join(names))) for title, names in cells.items()}


def test_every_field_is_in_the_tables(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(300, 2))
    Path("data.svm").write_text("\n".join(f"{1 if x > 1 else -1} 1:{x} 2:{y}" for x, y in X + X[:, ::-1] / 2))
    page = documented()
    common = page.pop("") | PARTS
    written = {title: set() for title in page}
    for folder, options in enumerate(TRAININGS):
        assert run("train", "-q", "data.svm", *options.split(), "--run-dir", str(folder)).returncode in (0, 3)
        for line in Path(f"{folder}/log.jsonl").read_text().splitlines():
            record = json.loads(line)
            (title,) = (title for title in page if f"`{record['event']}`" in title)
            written[title] |= {re.sub(r"_(wall|cpu)_ns$", "", name) for name in record}
    for title, names in written.items():
        assert names - common == page[title] - common, title
