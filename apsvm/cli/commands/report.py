"""``apsvm report``: a run's log, model and data as one HTML page."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from apsvm._support.shown import printable
from apsvm.cli.commands.plot import read_records
from apsvm.cli.help import HelpfulCommand
from apsvm.cli.options.table import files, options
from apsvm.cli.output.progress import Bar
from apsvm.cli.output.records import LOG
from apsvm.cli.reading import how_to_read, read_any_model, rows_for
from apsvm.cli.shared import BAD_DATA, NO_INPUT, Failure, bad_data, refuse_same_file, remark, writing
from apsvm.cli.training import check_output
from apsvm.data.read_options import ReadOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm.data.dataset import Dataset
    from apsvm.report.run import Run

PAGE = "report.html"


@click.command(cls=HelpfulCommand)
@files("RUN_DIR")
@options("ignore_unknown", "quiet",
         data={"help": "Judge the models on these rows.", "show_default": "those of the training, if still there"},
         output={"metavar": "FILE", "help": "The page; - for stdout.", "show_default": f"RUN_DIR/{PAGE}"})  # fmt: skip
@how_to_read
def report(run_dir: str, data: str | None, output: str | None, read: ReadOptions, **wanted: Any) -> None:
    """Make one self-contained HTML page of a run: the first rows and what put them there, metrics, what drives the
    score, the positives that stand lowest, the data, and how it was trained, with its certificate.

    RUN_DIR is what apsvm train --run-dir wrote, also if the training was interrupted.

    \b
    apsvm train data.svm --run-dir run && apsvm report run        writes run/report.html
    apsvm report run --data test.svm -o test.html
    """
    from apsvm._support.files import write_whole
    from apsvm.report.build import report as page_of

    log = os.path.join(run_dir, LOG)
    if not os.path.isfile(log):
        alone = "; of a model alone tell apsvm info, eval and verify" if os.path.isfile(run_dir) else ""
        raise Failure(NO_INPUT, f"{run_dir}: no {LOG} in it: expected a folder of apsvm train --run-dir{alone}")
    output = os.path.join(run_dir, PAGE) if output is None else output
    check_output(output, data=data, log=log)
    with Bar("reading the run") as bar:
        run = _run(run_dir, log, output)
        bar.reach(0, "reading the rows")
        if not run.model.lists_items:
            run = _with_rows(run, data, read, ignore_unknown=wanted["ignore_unknown"])
        bar.reach(0, "judging and drawing")
        with bad_data(run_dir):
            content = page_of(run)
    for note in run.notes:
        remark(f"warning: {printable(note)}")
    with writing(output):
        write_whole(output, content.encode(errors="replace"))
    if output != "-":
        remark(f"report written to {output}")


def _run(folder: str, log: str, output: str) -> Run:
    """The run, before its rows are read. Ends the command if the output is a file of it: its data or model."""
    from apsvm.report.run import Run

    records = read_records(log)
    end = records[-1]
    if end["event"] != "end":
        raise Failure(
            BAD_DATA,
            f"{log}: it has no end: the training was killed or is still running (apsvm plot convergence draws its log)",
        )
    path = os.path.join(folder, os.path.basename(str(end.get("model", ""))))  # the folder may have moved
    if not os.path.isfile(path):
        raise Failure(BAD_DATA, f"{path}: the log says that this model was written, and it is not there")
    header = (model := read_any_model(path)).header
    notes = [
        f"class {header.shown_label(skipped.label)} was left out of the training: {skipped.reason}"
        for skipped in header.classes_skipped
    ]
    run = Run(os.path.basename(os.path.abspath(folder)), records, model, end, None, None, notes)
    files = {name: run.command.get("reading", {}).get(name) for name in ("labels", "groups")}
    refuse_same_file(output, training_data=run.command.get("data"), model=path, **files)
    return run


def _with_rows(run: Run, data: str | None, read: ReadOptions, *, ignore_unknown: bool) -> Run:
    """The run with its rows, if they can be read; else with a note."""
    path: str = run.command.get("data", "") if data is None else data
    if data is None:
        # Reading again from a pipe would wait forever.
        if not path or path == "-" or not (os.path.isfile(path) or os.path.isdir(path)):
            where = "were read from standard input" if path == "-" else f"are not at {path} any more"
            return replace(run, notes=[*run.notes, f"the training rows {where}: the report is without them (--data)"])
        read = read.completed(run.command.get("reading", {}))
    dataset, notes = rows_for(run.model, path, read, ignore_unknown=ignore_unknown), list(run.notes)
    if dataset.fingerprint != run.model.header.data.sha256:
        changed = (
            "the file has changed since the training" if data is None else "these are not the rows it was trained on"
        )
        notes.append(f"{path}: {changed}")
    return replace(run, dataset=dataset, lines=_lines(path, dataset), notes=notes)


def _lines(path: str, dataset: Dataset) -> NDArray[np.int64] | None:
    """Line numbers of the rows in a text file; None for other files."""
    from apsvm.data.reading import is_text
    from apsvm.data.svmlight import line_numbers

    if dataset.table is not None:
        return dataset.table.lines
    if path == "-" or not is_text(path):
        return None
    lines = line_numbers(path)
    return lines if lines.size == len(dataset) else None
