"""``--help`` on one screen: the options that most people use, a line each. ``--help-all`` shows every option in full,
``--help=TOPIC`` those of one topic or family of trainers.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from inspect import cleandoc
from typing import Any

import click

from apsvm._support.naming import OBJECTIVES
from apsvm.cli.options.table import TITLES, Option, check_rules

#: Options of LightGBM, XGBoost and scikit-learn → options here.
WORDS = {
    "objective": "--loss; lambdarank and rank_xendcg: --loss ndcg, binary: --loss ap or auc",
    "metric, eval_metric, scoring": "apsvm cv -m, apsvm eval -m",
    "eval_at": "--loss ndcg@10, apsvm eval -m 'nDCG(exp)@10', of LightGBM's gains; nDCG@10 is TREC's",
    "valid, valid_data, test_size": "nothing: train holds rows out itself, and cv by folds; apsvm eval judges other "
    "rows; --validation FILE goes with --loss warp",
    "n_estimators, num_iterations, num_trees, nrounds": "--features rules:N",
    "max_depth, num_leaves": "--features rules:N:depth=D",
    "learning_rate, eta": "nothing: exact training has none (--learning-rate of --loss warp)",
    "class_weight, scale_pos_weight, is_unbalance": "nothing: ranking losses do not depend on the share of positives",
    "penalty, alpha, reg_lambda, lambda_l2": "-C, the weight of the loss against the penalty",
    "kernel": "--features nystroem:M",
    "max_iter": "--max-iterations",
    "tol": "--epsilon",
    "early_stopping_rounds": "--patience of --loss warp",
    "label, target": "--label-column",
    "group, group_column, query": "--qid-column, or --groups FILE",
    "ignore_column": "--drop",
    "categorical_feature": "--categorical",
    "random_state": "--seed",
    "n_jobs, num_threads, nthread": "--threads, of apsvm cv --jobs",
    "cv": "apsvm cv --folds",
    "output_model, model_out": "the argument MODEL, of apsvm cv -o",
}


def meant(option: str, options: Sequence[str]) -> str:
    """A hint at the option here for one of another program, or for a misspelt one; or nothing."""
    name = option.lstrip("-").replace("-", "_")
    ours = next((ours for names, ours in WORDS.items() if name in names.split(", ")), None)
    near = difflib.get_close_matches(option, options, n=1)
    if ours is not None:
        return f": {ours.removeprefix('nothing: ')}" if ours.startswith("nothing: ") else f"; instead: {ours}"
    return f": did you mean {near[0]}?" if near else ""


def usage_message(error: click.ClickException) -> str:
    """The error, with the option that may be meant; an argument that is missing, with all of them."""
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        flags = [flag for one in error.ctx.command.params for flag in one.opts]
        return f"no option {error.option_name} here{meant(error.option_name, flags)}"
    if isinstance(error, click.MissingParameter) and error.ctx is not None:
        return " ".join(f"{error.format_message()} {error.ctx.get_usage()}".split())
    if isinstance(error, click.BadParameter) and error.param is not None and error.param.name == "objective":
        for objective, loss in OBJECTIVES.items():  # RankNCG has an option of this name
            if error.message.startswith(f"'{objective}'"):
                return f"no objective {objective!r} here; instead: --loss {loss}"
    return error.format_message()


class HelpfulCommand(click.Command):
    """A command whose ``--help`` fits on a screen and whose options have rules.

    Parameters
    ----------
    common : title of a section → names of the options that the short help lists; without it all are listed
    """

    def __init__(self, *arguments: Any, common: Mapping[str, str] | None = None, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.common = common or {}
        self.context_settings = {"max_content_width": 100, **self.context_settings}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for arg in args[: args.index("--")] if "--" in args else args:
            if arg == "--help-all" or arg.startswith("--help="):
                click.echo(self.full_help(ctx, arg.partition("=")[2]), color=ctx.color)
                ctx.exit()
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            check_rules(ctx)
        return rest

    def _options(self, ctx: click.Context) -> dict[str | None, click.Option]:
        return {param.name: param for param in self.get_params(ctx) if isinstance(param, click.Option)}

    def topics(self, ctx: click.Context) -> dict[str, tuple[str, list[click.Option]]]:
        """Topic → its title and options."""
        found: dict[str, tuple[str, list[click.Option]]] = {topic: (title, []) for topic, title in TITLES.items()}
        for option in self._options(ctx).values():
            topics = option.topics if isinstance(option, Option) else {"main": TITLES["main"]}
            for topic, title in topics.items():
                found.setdefault(topic, (title, []))[1].append(option)
        return {topic: (title, options) for topic, (title, options) in found.items() if options}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not self.common:
            super().format_options(ctx, formatter)
            return
        options = self._options(ctx)
        for title, names in self.common.items():
            with formatter.section(title):
                formatter.write_dl([_line(options[name], ctx) for name in names.split()])
        topics = ", ".join(topic for topic in self.topics(ctx) if topic != "main")
        with formatter.section("More"):
            words = "words: those of LightGBM and others."
            formatter.write_dl([("--help-all", "Every option."), ("--help=TOPIC", f"The options of {topics}. {words}")])

    def full_help(self, ctx: click.Context, topic: str = "") -> str:
        """The full help of every option, each once, or of one topic. Raises UsageError for an unknown topic."""
        formatter, topics, seen = ctx.make_formatter(), self.topics(ctx), set[click.Option]()
        if topic == "words":
            with formatter.section("Of LightGBM, XGBoost and scikit-learn"):
                formatter.write_dl(list(WORDS.items()))
        elif topic and topic not in topics:
            raise click.UsageError(f"--help={topic}: expected one of {', '.join([*topics, 'words'])}", ctx)
        elif not topic:
            self.format_usage(ctx, formatter)
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(cleandoc(self.help or "").replace("\f", ""))
        for name, (title, options) in topics.items():
            records = [option.get_help_record(ctx) for option in options if topic or option not in seen]
            seen.update(options)
            if topic in ("", name) and records:
                with formatter.section(title):
                    formatter.write_dl([record for record in records if record is not None])
        return formatter.getvalue().rstrip("\n")


def _line(option: click.Option, ctx: click.Context) -> tuple[str, str]:
    """The flags of an option, and the first sentence of its help with the registered names or the default."""
    one = getattr(option.type, "one", option.type)
    names = list(getattr(one, "choices", None) or getattr(one, "names", tuple)())
    default = option.get_help_extra(ctx).get("default", "").strip("()")
    parts = [re.split(r"(?<=\.) ", option.help or "")[0]]
    if names:
        parts += [f"{', '.join(names)}."]
    elif default not in ("", "0"):
        parts += [f"[default: {default}]"]
    metavar = "NAME" if names else "N" if isinstance(one, click.types.IntParamType) else one.name.upper()
    several = "" if one is option.type else ",…"
    metavar = "" if option.is_flag else f" {option.metavar or metavar}{several}"
    return f"{', '.join(option.opts)}{metavar}", " ".join(parts)
