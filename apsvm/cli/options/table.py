"""Every option of every command, declared once: flags, type, default, help, its topic in ``--help-all``, what it needs
and what it does not go with. ``@options("seed", "threads")`` gives a command its options; the first sentence of a help
stands in ``--help``. The options of trainers are declared by their settings (``options.trainers``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from apsvm._support.types import JsonDict
from apsvm.cli.options.parameters import CONSTANT, ENCODING, FEATURES, LABEL, METRIC, NAMES, POOL, THRESHOLD, Number
from apsvm.cli.shared import all_given
from apsvm.data.read_options import MAX_CATEGORIES
from apsvm.metrics.errors import TIE_RULES
from apsvm.models.columns import MISSING_RULES

CommandT = TypeVar("CommandT", bound=Callable[..., object])

#: A file, which the shell completes.
FILE = click.Path()

#: The tie rule of TREC runs: by document name, as trec_eval breaks ties.
RUN_TIES = "docno"


#: Titles of topics, in their order.
TITLES = {"main": "Options", "tables": "Tables", "data": "Data", "bags": "Bags", "running": "Running"}


class Option(click.Option):
    """An option with its topics, by title, and rules.

    Parameters
    ----------
    topic : the ``--help=TOPIC`` that lists it, one of ``TITLES``
    needs : names of options; one of them must accompany it
    excludes : names of options that conflict with it
    """

    def __init__(
        self,
        declarations: Sequence[str] | None = None,
        *,
        topic: str = "main",
        needs: str = "",
        excludes: str = "",
        **more: Any,
    ) -> None:
        super().__init__(declarations, **more)
        self.topics: Mapping[str, str] = {topic: TITLES[topic]}
        self.needs, self.excludes = needs.split(), excludes.split()

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        if record is None or self.type is not METRIC:
            return record
        return record[0], f"{record[1]} Metrics: {', '.join(METRIC.names())}."


def _file(help: str, metavar: str = "FILE", **more: Any) -> JsonDict:
    return {"type": FILE, "metavar": metavar, "help": help, **more}


def _name(help: str, metavar: str = "NAME", **more: Any) -> JsonDict:
    return {"metavar": metavar, "help": help, **more}


def _flag(help: str, **more: Any) -> JsonDict:
    return {"is_flag": True, "help": help, **more}


def _of(type: object, default: object, help: str, **more: Any) -> JsonDict:
    return {"type": type, "default": default, "show_default": default is not None, "help": help, **more}


def _topic(topic: str, **options: JsonDict) -> dict[str, JsonDict]:
    return {name: {**about, "topic": topic} for name, about in options.items()}


_COUNT = click.IntRange(0, 1024)

#: Option name → click's arguments, by topic; the flag is ``--name-with-dashes``, or ``flags``.
TABLE: Mapping[str, Mapping[str, Any]] = {
    **_topic("tables",
        label_column=_name("Column of the labels.", show_default="label, target, y, …; else the model's"),
        qid_column=_name("Column of the queries.", show_default="qid, query_id, …"),
        bag_column=_name("Column of the bags.", show_default="the model's"),
        id_column=_name("Column that names the rows; it is not a feature.", show_default="the model's"),
        cost_column=_name("Column of the costs."),
        labelled_only=_flag("Leave out rows without a label."),
        drop=_of(NAMES, None, "Columns that are not features."),
        features_from=_file("Only these columns are features: a name a line."),
        categorical=_of(NAMES, None, "Columns that are categories, also of numbers: codes, of which 3 is not more "
            "than 2."),
        missing=_of(click.Choice(MISSING_RULES), "median", "Value of a missing cell. median: the column's median, or "
            "for words a feature of their own; zero: 0; indicator: the median, and a feature that marks it; refuse: "
            "an error."),
        max_categories=_of(click.IntRange(1, 10 ** 6), MAX_CATEGORIES,
            "How many words of a column have features of their own; less frequent ones share one."),
        date_order=_of(click.Choice(["dmy", "mdy"]), None, "Order of day and month in columns of dates that leave "
            "it open, such as 03/04/2024."),
        skip_lines=_of(click.IntRange(0), 0, "Lines of a CSV, or a sheet, above the names of columns."),
        sheet=_name("The sheet of a workbook.", show_default="the first"),
        encoding=_of(ENCODING, "auto", "Encoding of a CSV. auto: UTF-8, or else cp1252, of Windows in Western "
            "Europe."),
        decimal=_of(click.Choice([".", ","]), None, "Decimal mark of a CSV.", show_default="from the first rows"),
    ),
    **_topic("data",
        dtype=_of(click.Choice(["float64", "float32"]), "float64",
            "Storage of the feature values; sums are always float64."),
        sort_features=_flag("Accept rows whose feature indices are not ascending."),
        multilabel=_flag("Accept rows of several labels (1,4) or of none."),
        groups=_file("Queries of svmlight text without qid:, or of a matrix. A .npy file or an integer a line: one "
            "a row, or their sizes, as LightGBM's .query files have them."),
        labels=_file("Labels of a .npz or .npy matrix: .npy, or a number a line. A .npy matrix of 0 and 1 has a "
            "column a label."),
        no_check=_flag("Open the folders of apsvm convert without reading every byte for its SHA-256."),
        zero_based=_of(None, None, "Whether feature indices count from 0 or 1.", flags="--zero-based/--one-based",
            show_default="one-based, zero-based where an index is 0"),
        max_features=_of(click.IntRange(1, 2 ** 62), None, "Refuse a file with a feature beyond this many."),
        positive_label=_of(LABEL, None, "Label that is positive; all others are negative.", show_default="1",
            excludes="relevant_from"),
        one_class=_of(LABEL, None, "Of a model of several classes: the one to take.", flags="--positive-label"),
        relevant_from=_of(Number(), None, "Rows of this grade or a higher one are positive. Without it ndcg and "
            "nDCG read the grades.", metavar="GRADE"),
        ignore_unknown=_flag("Ignore features that the model does not have."),
    ),
    **_topic("bags",
        bags=_file("Bags of rows without bag:. A .npy file, or an integer a line: one a row. ignore: rows stand for "
            "themselves.", "FILE|ignore"),
        bag_label=_of(click.Choice(["same", "any"]), "same",
            "Label of a bag: that of all its rows, or the highest of theirs."),
        pool=_of(POOL, None, "Make a row of each bag first: each feature's min, mean or max in the bag, or several "
            "of them, min,mean,max."),
        which=_flag("Add the number, from 1, of the row that decides a bag's score.", excludes="boxes html"),
        boxes=_file("Write detections for apsvm eval-detections: rows of bags are windows of images, and this file "
            "has their boxes, xmin ymin xmax ymax a row, as text or .npy. An image's name is that of its bag.",
            needs="detections", excludes="top trec_run html classify probability show"),
        detections=_of(click.Choice(["voc", "coco"]), None,
            "Format of --boxes: VOC's text (of several classes a file each, in the folder OUT), or COCO's JSON.",
            needs="boxes"),
        nms=_of(Number(0.0, 1.0), None, "Leave out a box whose IoU with a better one of its image and class is "
            "above.", show_default="none", metavar="IOU", needs="boxes"),
    ),
    **_topic("main",
        # Training
        features=_of(FEATURES, "auto", "How columns become features. auto: rules where they rank held-out rows "
            "better, else linear, in tables with logarithms, or the average of both rankers; linear: as they are; "
            "logarithms: also those of long-tailed columns; piecewise:K: a broken line each, with K knots (4); "
            "rules:N:depth=D: also the leaves of N trees (400) of depth D (5), boosted on the labels; products: also "
            "those of all pairs; nystroem:M: an RBF kernel by M landmarks (300). Sparse rows stay sparse with linear, "
            "logarithms, piecewise and rules. --scale comes after."),
        scale=_of(click.Choice(["auto", "none", "maxabs", "standard", "l2"]), "auto",
            "Scale of the features; the model takes rows as they are. Each to a largest magnitude of 1, or to mean "
            "0 and deviation 1 (sparse data stays sparse), or each row to length 1. auto: standard for dense rows "
            "and tables, none for sparse rows, for rules, and with --latent for columns that seem to have one "
            "unit."),
        bias=_of(CONSTANT, "auto", "Add a constant feature of this value to every row; none: of 0, or less. auto: "
            "where the loss is about which scores are above 0 (f1, zero-one), ten times the geometric mean of the "
            "features' deviations: 10 where they are standardised; none for the other losses, as a constant moves "
            "no ranking.", flags="-B --bias"),
        one_vs_rest=_flag("Train a ranker for each label against all other rows, in one model. Several are trained "
            "at a time; rows may have several labels (1,4) or none."),
        threshold=_of(THRESHOLD, None, "Score above which rows are positive, chosen on held-out rows. f1: the highest "
            "F1; fpr: the highest recall with at most a share A of the negatives called positive; precision: the "
            "highest recall with a precision of A; recall: the fewest rows with a recall of A; top: the best K of as "
            "many rows as DATA has.", show_default="f1 for two classes"),
        calibrate=_of(click.Choice(["auto", "isotonic", "platt"]), None,
            "Make probabilities of scores, on the same held-out rows. isotonic: by isotonic regression; platt: by a "
            "sigmoid; auto: isotonic from 200 positives and 200 negatives on."),
        log=_file("Write a JSON line for each oracle call and iteration.", excludes="run_dir"),
        run_dir=_file("Write model and log into this new folder, for apsvm report.", "FOLDER"),
        query_weights=_file("Lines 'qid weight': the risk is this weighted mean over the queries; 1 where not "
            "named."),
        validation=_file("Rows on which a metric is measured after each epoch; the best epoch's model is kept."),
        # Cross-validation
        folds=_of(click.IntRange(2), 5, "Number of folds; of the portfolio on large data three."),
        output=_file("Train the chosen setting on all rows and write this model.", "MODEL", flags="-o --output"),
        data=_file("", "DATA"),
        json=_file("Write all results, each fold's included; - for stdout."),
        # Predict
        header=_flag("First print a line with the classes, for a model of several."),
        top=_of(click.IntRange(1), None, "Only the K best rows, best first: name or number, and score. With queries "
            "the K best of each, after its qid; with several classes, after its label. For a model of items: how many "
            "items a row gets (10).", metavar="K"),
        show=_of(NAMES, None, "Columns of the table to show with each row of --top.", needs="top"),
        trec_run=_name("Write a TREC run: qid Q0 docno rank score TAG. docno is from --id-column, from svmlight "
            "comments # docid = …, or the row's number.", "TAG",
            excludes="top explain which classify probability html show"),
        html=_file("Write the rows of --top as a page for a browser. It has bars for what --explain says, and the "
            "positives found so far where DATA has labels; it is one file, can be sorted and printed.", needs="top"),
        explain=_of(click.IntRange(1), None, "After each score, the K columns that contribute most, or 5.",
            metavar="[K]", is_flag=False, flag_value=5),
        classify=_flag("Print labels, by the model's threshold, instead of scores. With several classes: the one "
            "whose score is the highest above its threshold; for rows of several labels, all above theirs."),
        probability=_flag("Print the probability that a row is positive (train --calibrate) instead of the score, or "
            "after the label. Several classes have a column each."),
        # Evaluate
        model=_file("", "MODEL"),
        models=_file("Score DATA with this model; may be given more than once.", "MODEL", flags="--model",
            multiple=True, excludes="qrels"),
        scores=_file("Scores of the rows, one a line or .npy; may be given more than once.", multiple=True,
            excludes="qrels"),
        qrels=_file("Relevance judgements as TREC writes them, in place of DATA.", needs="runs"),
        runs=_file("TREC run to evaluate by --qrels; may be given more than once.", flags="--run", multiple=True,
            needs="qrels"),
        metrics=_of(METRIC, None, "Metric to report; may be given more than once. By default the usual ones and the "
            "one that the model was trained for. Precision, Recall, Accuracy and F1, F0.5, … look at the model's "
            "threshold, or 0.", flags="-m --metric", metavar="NAME", multiple=True),
        ties=_of(click.Choice([*TIE_RULES, RUN_TIES]), None,
            "Order of rows of equal score. As one block (scikit-learn; the expectation over their orders where AP "
            "is not concerned), negatives first, in file order, or, of a run, by document name as trec_eval does.",
            show_default="block; of runs docno"),
        per_query=_flag("Report every query too."),
        confidence=_of(Number(0, 1, open_low=True), None, "Report bootstrap intervals of this level, say 0.95, over "
            "queries or else over rows; with --compare, intervals of the differences in place of p.", metavar="LEVEL"),
        compare=_flag("Test whether the others differ from the first. Paired randomisation, two-sided p, not "
            "corrected for the number of tests."),
        classes=_file("Names of classes, a line each, for numbers of classes in DETECTIONS, counted from 0."),
        as_json=_flag("Print one JSON object.", flags="--json"),
        # Verify
        gap=_of(Number(0, 1), 0.01, "Largest gap that still certifies something, as a share of the objective at w = "
            "0."),
        max_iterations=_of(click.IntRange(0), 2000, "Most iterations of each proof."),
    ),
    **_topic("running",
        rivals=_of(click.Choice(["all", "none"]), "all", "Train logistic regression and boosted trees on the same "
            "folds, when the portfolio is tried."),
        jobs=_of(_COUNT, 0, "Paths trained at a time, in threads; 0: one a core. The result does not depend on it.",
            flags="-j --jobs"),
        threads=_of(_COUNT, 0, "Threads; 0: one a core. The result does not depend on it, except with --loss warp, "
            "which trains on one unless more are requested."),
        seed=_of(click.IntRange(0), 0, "Seed of what is random: folds, --loss warp, and where --components begin. "
            "Exact trainers draw nothing else; it is written into the model."),
        time_limit=_of(Number(0), None, "Seconds after which the best so far is kept.", show_default="none"),
        scheduler=_of(None, None, "Work on the dask cluster of this address, or on N processes here. DATA is then a "
            "pattern of parts, 'part-*.svm', or a folder of Parquet files: each worker reads its own parts under "
            "the same names.", metavar="ADDRESS|local:N"),
        quiet=_flag("Print errors and cautions only.", flags="-q --quiet"),
        verbose=_flag("Print every iteration, the certificate and the time of each part.", flags="-v --verbose"),
    ),
}  # fmt: skip

#: Options for reading a data file: in every command, and in those that train on its columns.
READING = (
    "label_column", "qid_column", "bag_column", "id_column", "labelled_only", "drop", "encoding", "skip_lines", "sheet",
    "decimal", "dtype", "sort_features",
    "multilabel", "groups", "labels", "bags", "bag_label", "no_check",
)  # fmt: skip
LEARNING = (
    *READING, "cost_column", "features_from", "categorical", "date_order", "missing", "max_categories",
    "zero_based", "max_features",
)  # fmt: skip
#: Options of every training.
TRAINING = (*LEARNING, "bias", "positive_label", "relevant_from", "features", "scale", "quiet", "verbose")


def files(*metavars: str) -> Callable[[CommandT], CommandT]:
    """Gives a command arguments that are files, by their names in lower case. ``[OUT]`` is standard output by default,
    others in brackets are None."""

    def add(command: CommandT) -> CommandT:
        for metavar in reversed(metavars):
            name = metavar.strip("[]").lower()
            more: JsonDict = {} if metavar == name.upper() else {"default": "-"} if name == "out" else {"default": None}
            command = click.argument(name, metavar=metavar, type=FILE, **more)(command)
        return command

    return add


def options(*names: str, **changes: Mapping[str, Any]) -> Callable[[CommandT], CommandT]:
    """Gives a command these options; ``changes`` add options with changed declarations."""

    def add(command: CommandT) -> CommandT:
        for name in reversed(list(dict.fromkeys((*names, *changes)))):
            declaration = {**TABLE[name], **changes.get(name, {})}
            flags = declaration.pop("flags", "").split() or [f"--{name.replace('_', '-')}"]
            command = click.option(*flags, name, cls=Option, **declaration)(command)
        return command

    return add


def check_rules(ctx: click.Context) -> None:
    """Ends the command if an option lacks one that it needs, or conflicts with another."""
    given = {name for name in all_given() if ctx.params[name] not in (None, False, ())}
    flags = {param.name: param.opts[-1] for param in ctx.command.params}
    for param in ctx.command.params:
        if param.name not in given or not isinstance(param, Option):
            continue
        if param.needs and given.isdisjoint(param.needs):
            needed = " or ".join(flags[name] for name in param.needs if name in flags)
            raise click.UsageError(f"{param.opts[-1]} needs {needed}", ctx)
        for other in given.intersection(param.excludes):
            raise click.UsageError(f"{param.opts[-1]} does not go with {flags[other]}", ctx)
