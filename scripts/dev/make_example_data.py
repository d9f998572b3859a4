"""The data of examples/ from their sources: what examples/README.md names.

    python scripts/dev/make_example_data.py mammography mammography.svm
    python scripts/dev/make_example_data.py search rank.train rank.test
    python scripts/dev/make_example_data.py modules

mammography: ADBench's file as svmlight text. search: LightGBM's examples/lambdarank with the queries of
rank.train.query and rank.test.query as qid:. modules: reads the source files of numpy, scipy, scikit-learn and pandas
as installed here, which modules each imports and the words of its docstrings; nothing of them is run.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import re
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import train_test_split

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MAMMOGRAPHY = ["area", "grey_level", "gradient", "noise", "contrast", "shape"]
PACKAGES = ["numpy", "scipy", "sklearn", "pandas"]
#: Tags: modules of the standard library that a file imports, by how many files at least.
LEAST_TAGGED, LEAST_WORD, LEAST_ITEM, LEAST_LIKES = 25, 12, 12, 6
#: Of each file the words of the highest tf-idf.
WORDS_OF_A_FILE = 60


def write(name: str, text: str) -> None:
    """Compressed without a time in it: the same rows make the same file."""
    (EXAMPLES / name).write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{name}: {len(text.splitlines())} lines, {(EXAMPLES / name).stat().st_size / 1e3:.0f} kB")


def make_mammography(source: str) -> None:
    X, y = load_svmlight_file(source)
    halves = train_test_split(np.arange(y.size), test_size=0.5, stratify=y, random_state=0)
    for name, rows in zip(("train", "test"), halves, strict=True):
        lines = [",".join(["image", *MAMMOGRAPHY, "calcification"])]
        for at in sorted(rows):
            values = ",".join(f"{value:.4g}" for value in X[at].toarray().ravel())
            lines.append(f"m{at + 1:05d},{values},{int(y[at] > 0)}")
        write(f"mammography_{name}.csv.gz", "\n".join(lines) + "\n")


def make_search(train: str, test: str, queries: int = 120) -> None:
    for name, source in (("train", train), ("test", test)):
        lines = Path(source).read_text(encoding="utf-8").splitlines()
        kept = list(dict.fromkeys(line.split()[1] for line in lines))[:queries]
        write(f"search_{name}.svm.gz", "\n".join(line for line in lines if line.split()[1] in set(kept)) + "\n")


def sources() -> Iterator[tuple[Path, str, ast.Module]]:
    """Every source file of the packages with its dotted name."""
    for package in PACKAGES:
        spec = find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        folder = Path(spec.origin).parent
        for path in sorted(folder.rglob("*.py")):
            name = ".".join([package, *path.relative_to(folder).with_suffix("").parts]).removesuffix(".__init__")
            yield path, name, ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path, name: str, tree: ast.Module) -> set[str]:
    """The modules that a file imports, relative ones by their full names."""
    modules: set[str] = set()
    here = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = here[: len(here) - node.level + 1] if node.level else []
            modules.add(".".join([*above, *([node.module] if node.module else [])]))
    return modules - {"", "__future__"}


def words(tree: ast.Module) -> Counter[str]:
    """The words of a file's docstrings, and of the names that it defines."""
    named = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    nodes = [node for node in ast.walk(tree) if isinstance(node, named)]
    texts = [ast.get_docstring(node) or "" for node in [tree, *nodes]] + [node.name for node in nodes]
    text = re.sub(r"([a-z])([A-Z])", r"\1 \2", " ".join(texts))
    return Counter(re.findall(r"[a-z]{3,}", text.lower()))


def make_modules() -> None:
    likes: dict[str, set[str]] = {}
    texts: dict[str, tuple[set[str], Counter[str]]] = {}
    for path, name, tree in sources():
        modules = imported(path, name, tree)
        likes[name] = modules
        if ".tests." not in name:
            texts[name] = {module.partition(".")[0] for module in modules} - set(PACKAGES), words(tree)
    counts = Counter(module for modules in likes.values() for module in modules)
    items = sorted(module for module, count in counts.items() if count >= LEAST_ITEM)
    number = {module: at for at, module in enumerate(items, 1)}
    rows = [sorted(number[module] for module in modules & set(items)) for modules in likes.values()]
    kept = [row for row in rows if len(row) >= LEAST_LIKES]
    write("imports.svm.gz", "".join("0 " + " ".join(f"{item}:1" for item in row) + "\n" for row in kept))
    write("imports_items.txt.gz", "\n".join(items) + "\n")
    make_tags(texts)


def make_tags(texts: dict[str, tuple[set[str], Counter[str]]]) -> None:
    long = {name: pair for name, pair in texts.items() if len(pair[1]) >= 20}
    tagged = Counter(tag for tags, _ in long.values() for tag in tags)
    tags = sorted(tag for tag, count in tagged.items() if count >= LEAST_TAGGED)
    files = Counter(word for _, bag in long.values() for word in bag)
    words = sorted(word for word, count in files.items() if LEAST_WORD <= count < len(long) / 2 and word not in tags)
    rarity = {word: np.log(len(long) / files[word]) for word in words}
    lines = []
    for file_tags, bag in long.values():
        weights = {word: (1.0 + np.log(count)) * rarity[word] for word, count in bag.items() if word in rarity}
        strongest = sorted(weights, key=weights.__getitem__, reverse=True)[:WORDS_OF_A_FILE]
        length = np.sqrt(sum(weights[word] ** 2 for word in strongest))
        labels = ",".join(str(at) for at, tag in enumerate(tags) if tag in file_tags)
        pairs = (f"{words.index(word) + 1}:{weights[word] / length:.3g}" for word in sorted(strongest))
        lines.append(f"{labels} " + " ".join(pairs))
    order = np.random.default_rng(0).permutation(len(lines))
    cut = round(len(lines) * 2 / 3)
    for name, rows in (("train", order[:cut]), ("test", order[cut:])):
        write(f"tags_{name}.svm.gz", "\n".join(lines[at] for at in rows) + "\n")
    write("tags_names.txt.gz", "\n".join(tags) + "\n")
    write("tags_words.txt.gz", "\n".join(words) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["mammography", "search", "modules"])
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    {"mammography": make_mammography, "search": make_search, "modules": make_modules}[arguments.what](*arguments.files)


if __name__ == "__main__":
    main()
