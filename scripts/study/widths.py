"""The default widths of Smooth-AP and Recall@K beside smaller and larger ones, on letters that they were not set on.

    python scripts/study/widths.py --fonts FOLDER [--seeds 5] [--steps 300] [--json FILE]

FOLDER holds Noto's fonts: /usr/share/fonts/truetype/noto where Debian's fonts-noto-core and fonts-noto-extra are
installed. Thai, Ethiopic and Devanagari are each drawn in six styles of two families, as ``retrieval.py`` draws its
letters; ``armenian`` is that script's own. A seed trains its network on half of the letters, for each multiple of the
default width, and judges it on the others. FILE, lines of JSON, keeps the results: what it has is not done again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from retrieval import LETTERS, Images, Maker, halves, images_of, judge, letters, of_lists, train

from apsvm.torch import RecallAtKLoss, SmoothAPLoss

MULTIPLES = (0.1, 0.3, 1.0, 3.0, 10.0)
LOSSES: dict[str, type[SmoothAPLoss | RecallAtKLoss]] = {"Smooth-AP": SmoothAPLoss, "Recall@K": RecallAtKLoss}
STYLES = ("Light", "Regular", "Bold", "CondensedLight", "CondensedMedium", "CondensedBlack")
#: Characters, first and last, and the families that have them.
SCRIPTS = {
    "Thai": ([("ก", "ฮ"), ("ะ", "ะ"), ("เ", "ๆ"), ("๐", "๙")], ("NotoSansThai", "NotoSerifThai")),
    "Ethiopic": ([("ሀ", "ቆ"), ("በ", "ኆ"), ("ነ", "ኮ")], ("NotoSansEthiopic", "NotoSerifEthiopic")),
    "Devanagari": ([("अ", "ऌ"), ("ए", "न"), ("प", "ह"), ("०", "९")], ("NotoSansDevanagari", "NotoSerifDevanagari")),
}


def of_script(name: str, fonts: Path) -> Images:
    """The letters of a script."""
    if name in LETTERS:
        return images_of(*letters(*LETTERS[name]))
    ranges, families = SCRIPTS[name]
    characters = "".join(chr(code) for first, last in ranges for code in range(ord(first), ord(last) + 1))
    return images_of(
        *letters(characters, [str(fonts / f"{family}-{style}") for family in families for style in STYLES])
    )


def of_width(loss: type[SmoothAPLoss | RecallAtKLoss], multiple: float) -> Maker:
    """The loss at a multiple of its default width."""
    return of_lists(type(loss.__name__, (loss,), {"own_tau": multiple * loss.own_tau}), "tau")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fonts", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    if not (options.fonts / "NotoSansThai-Light.ttf").is_file():
        parser.error(f"{options.fonts}: no NotoSansThai-Light.ttf in it; Debian's fonts-noto-extra has it")
    torch.set_num_threads(1)
    kept: dict[tuple[str, str, float, int], list[float]] = {}
    if options.json and options.json.exists():
        for line in options.json.read_text().splitlines():
            *key, values = json.loads(line)
            kept[tuple(key)] = values
    for name in ("armenian", *SCRIPTS):
        images = of_script(name, options.fonts)
        print(f"\n{name}: {len(images.classes)} images, {int(images.classes.max()) + 1} classes, {options.seeds} seeds")
        print("R@1 and mAP@R, by multiples of the default width; ± of mAP@R's difference from the default\n")
        print("| loss | " + " | ".join(f"{multiple:g}" for multiple in MULTIPLES) + " |")
        print("|---|" + "---|" * len(MULTIPLES))
        for title, loss in LOSSES.items():
            for multiple in MULTIPLES:
                for seed in range(options.seeds):
                    key = (name, title, multiple, seed)
                    if key in kept:
                        continue
                    seen, unseen = halves(images, seed)
                    network, _ = train(of_width(loss, multiple), None, seen, options.steps, seed)
                    kept[key] = list(judge(network, unseen))
                    if options.json:
                        with options.json.open("a") as file:
                            file.write(json.dumps([*key, kept[key]]) + "\n")
            values = np.array([[kept[name, title, m, s] for s in range(options.seeds)] for m in MULTIPLES])
            from_default = values[:, :, 1] - values[MULTIPLES.index(1.0), :, 1]
            error = from_default.std(1, ddof=1) / np.sqrt(options.seeds) if options.seeds > 1 else from_default[:, 0]
            cells = [
                f"{v[:, 0].mean():.3f}, {v[:, 1].mean():.3f} ± {e:.3f}" for v, e in zip(values, error, strict=True)
            ]
            print(f"| {title} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
