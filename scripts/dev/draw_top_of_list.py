"""The picture of the README: the top of a test list as three rankers order it, docs/pictures/top-of-the-list.svg.

    python scripts/dev/draw_top_of_list.py [-o FILE]

The digit 8 against the rest, the split of scripts/demo_digits.py: as many places as there are positive test rows, first
to last, filled where the row is positive. Logistic regression has its C chosen by AP in five folds.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split

from apsvm import APSVMClassifier, APSVMClassifierCV

DIGIT = 8
FILE = Path(__file__).resolve().parents[2] / "docs" / "pictures" / "top-of-the-list.svg"
STEP, HEIGHT, LEFT, TOP = 11, 26, 8, 30


def rankers() -> dict[str, Any]:
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    logistic = LogisticRegression(max_iter=5000)
    return {
        "logistic regression, C chosen by AP": GridSearchCV(
            logistic, {"C": 10.0 ** np.arange(-3, 5)}, scoring="average_precision", cv=folds
        ),
        "apsvm train --features rules": APSVMClassifier(features="rules"),
        "apsvm cv": APSVMClassifierCV(),
    }


def tops() -> dict[str, tuple[float, NDArray[np.bool_]]]:
    """Of each ranker its test AP, and which of the first places, as many as positives, are positive."""
    X, digits = load_digits(return_X_y=True)
    X, y = X / 16.0, digits == DIGIT
    fit, test, y_fit, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=0)
    result = {}
    for name, ranker in rankers().items():
        scores = ranker.fit(fit, y_fit).decision_function(test)
        first = np.argsort(-scores, kind="stable")[: y_test.sum()]
        result[name] = average_precision_score(y_test, scores), y_test[first]
    return result


def drawn(strips: dict[str, tuple[float, NDArray[np.bool_]]]) -> str:
    """SVG, readable on a light and on a dark page."""
    places = max(relevant.size for _, relevant in strips.values())
    width, height = 2 * LEFT + places * STEP, TOP + len(strips) * (HEIGHT + 34)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img" font-family="sans-serif" font-size="13">',
        f"<title>The first {places} places of a test list by three rankers</title>",
        "<style>text{fill:#57606a}.hit{fill:#1a7f5a}.miss{fill:none;stroke:#c4622d;stroke-width:1.5}"
        "@media(prefers-color-scheme:dark){text{fill:#9aa4ae}.hit{fill:#3fb98a}.miss{stroke:#e08a5b}}</style>",
        f'<text x="{LEFT}" y="16">First {places} of 599 test images: filled is an {DIGIT}, open is not</text>',
    ]
    for at, (name, (precision, relevant)) in enumerate(strips.items()):
        y = TOP + at * (HEIGHT + 34)
        wrong = int((~relevant).sum())
        lines.append(f'<text x="{LEFT}" y="{y + 16}">{name}: {wrong} wrong, AP {precision:.3f}</text>')
        for place, hit in enumerate(relevant.tolist()):
            x = LEFT + place * STEP
            kind = "hit" if hit else "miss"
            box = f'width="{STEP - 3}" height="{HEIGHT}" rx="2"'
            lines.append(f'<rect class="{kind}" x="{x + 1}" y="{y + 24}" {box}/>')
    return "\n".join([*lines, "</svg>", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=FILE)
    output = parser.parse_args().output
    strips = tops()
    for name, (precision, relevant) in strips.items():
        print(f"{name}: AP {precision:.4f}, {int((~relevant).sum())} of the first {relevant.size} wrong")
    output.write_text(drawn(strips), encoding="utf-8")


if __name__ == "__main__":
    main()
