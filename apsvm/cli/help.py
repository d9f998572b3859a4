"""``--help`` on one screen: the options that most people use, a line each. ``--help-all`` shows every option in full,
``--help=TOPIC`` those of one topic or family of trainers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import cleandoc
from typing import Any

import click

#: Topic → its title and the names of its options; those that a command lacks are left out.
TOPICS: Mapping[str, tuple[str, Sequence[str]]] = {
    "data": (
        "Data",
        ("positive_label", "relevant_from", "multilabel", "zero_based", "sort_features", "ignore_unknown",
         "max_features", "dtype", "labels", "groups", "no_check"),
    ),
    "tables": (
        "Tables",
        ("label_column", "qid_column", "bag_column", "id_column", "cost_column", "drop", "features_from", "categorical",
         "missing", "max_categories", "date_order", "encoding", "decimal", "skip_lines", "sheet"),
    ),
    "bags": ("Bags", ("bags", "bag_label", "pool", "which", "boxes", "detections", "nms")),
    "running": (
        "Running",
        ("threads", "jobs", "seed", "time_limit", "cache", "scheduler", "config", "quiet", "verbose", "help_all",
         "help"),
    ),
}  # fmt: skip


class HelpfulCommand(click.Command):
    """A command whose ``--help`` fits on a screen.

    Parameters
    ----------
    common : title of a section → option's name → what the short help says of it, in one line; "NAME  text" names the
        value otherwise than the full help does
    """

    def __init__(self, *arguments: Any, common: Mapping[str, Mapping[str, str]] | None = None, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.common = common or {}
        self.context_settings = {"max_content_width": 100, **self.context_settings}
        self.params.append(
            click.Option(
                ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=_show_all,
                help="Show every option; --help=TOPIC those of a topic.",
            )
        )  # fmt: skip

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = args[: args.index("--")] if "--" in args else args
        for topic in (arg.removeprefix("--help=") for arg in own if arg.startswith("--help=")):
            click.echo(self.full_help(ctx, topic), color=ctx.color)
            ctx.exit()
        return super().parse_args(ctx, args)

    def topics(self) -> dict[str, tuple[str, list[str]]]:
        """Topic → its title and the names of the options; those in no other topic are the first, ``main``."""
        names = [param.name or "" for param in self.params if isinstance(param, click.Option)]
        names.append("help")
        groups = {
            topic: (title, [name for name in wanted if name in names]) for topic, (title, wanted) in TOPICS.items()
        }
        for topic, (title, wanted) in self.families().items():
            groups[topic] = (title, list(wanted))
        placed = {name for _, wanted in groups.values() for name in wanted}
        main = ("Options", [name for name in names if name not in placed])
        return {topic: group for topic, group in {"main": main, **groups}.items() if group[1]}

    def families(self) -> Mapping[str, tuple[str, Sequence[str]]]:
        """The same for the options of trainers; a command without such options has none."""
        return {}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = self._options(ctx)
        for title, lines in self.common.items():
            with formatter.section(title):
                formatter.write_dl([_line(options[name], line, ctx) for name, line in lines.items() if name in options])
        topics = ", ".join(topic for topic in self.topics() if topic != "main")
        with formatter.section("More"):
            formatter.write_dl([("--help-all", "Every option."), ("--help=TOPIC", f"The options of {topics}.")])

    def full_help(self, ctx: click.Context, topic: str | None = None) -> str:
        """All that is known of every option, or of those of a topic. Raises UsageError for an unknown one."""
        formatter, topics, options = ctx.make_formatter(), self.topics(), self._options(ctx)
        if topic is not None and topic not in topics:
            raise click.UsageError(f"--help={topic}: expected one of {', '.join(topics)}", ctx)
        if topic is None:
            self.format_usage(ctx, formatter)
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(cleandoc(self.help or "").replace("\f", ""))
        for name, (title, names) in topics.items():
            if topic in (None, name):
                shown = [options.pop(option) for option in names if option in options]  # each once, of several families
                records = [record for record in (option.get_help_record(ctx) for option in shown) if record is not None]
                if records:
                    with formatter.section(title):
                        formatter.write_dl(records)
        return formatter.getvalue().rstrip("\n")

    def _options(self, ctx: click.Context) -> dict[str, click.Option]:
        return {param.name or "": param for param in self.get_params(ctx) if isinstance(param, click.Option)}


def _line(option: click.Option, text: str, ctx: click.Context) -> tuple[str, str]:
    """The names of an option and the line that the short help says of it."""
    value, separator, line = text.partition("  ")
    flags = ", ".join(option.opts)
    if separator:
        return f"{flags} {value}", line
    record = option.get_help_record(ctx)
    assert record is not None
    return (flags if option.is_flag else record[0]), text


def _show_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and isinstance(ctx.command, HelpfulCommand):
        click.echo(ctx.command.full_help(ctx), color=ctx.color)
        ctx.exit()
