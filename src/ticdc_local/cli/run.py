"""``ticdc-lake run``: a job or a notebook of the bundle on this machine, as the bundle's YAML defines it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from io import StringIO
from pathlib import Path

from ticdc_codec.errors import ConfigError, listed
from ticdc_lakehouse import job_parameters
from ticdc_lakehouse.config.feed import Feed, load_feeds
from ticdc_local.cli import NEEDS_ATTENTION
from ticdc_local.cli.arguments import (
    in_same_place,
    lake_root,
    named_values,
    pairs_argument,
    place_arguments,
    project_root,
    seconds,
)
from ticdc_local.cli.job_text import progress_text, result_text
from ticdc_local.cli.notice import note
from ticdc_local.cli.open_lake import quiet_session
from ticdc_local.cli.project import existing_lake
from ticdc_local.preflight import ONLY_JAVA, check_lake, only_spark_reads, problems
from ticdc_local.runner.bundle import load_bundle
from ticdc_local.runner.dbutils import Secrets
from ticdc_local.runner.graph import read_job
from ticdc_local.runner.job import check_job_parameters, feed_parameters, local_parameters, run_job
from ticdc_local.runner.notebook import (
    Notebook,
    Surroundings,
    check_parameters,
    only_reads,
    read_notebook,
    run_notebook,
)
from ticdc_local.runner.outcome import JobResult, JobState
from ticdc_local.temporary import temporary_folder

JOB = "ticdc_lake"
LOOP = "ticdc_loop"
EXAMPLES = """examples:
  ticdc-lake run                              every feed of databricks.yml, once
  ticdc-lake run --feed crm --feed erp        these feeds
  ticdc-lake run --every 10s --feed crm       the loop: repeat until Ctrl-C
  ticdc-lake run notebooks/gold/as_of.py --feed crm"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    place_arguments(parser)
    parser.add_argument("job", nargs="?", metavar="JOB", help=f"key of a job, or a notebook (default: {JOB})")
    parser.add_argument(
        "--every", type=seconds, metavar="TIME", help=f"repeat at this interval (10s, 1m) until Ctrl-C: job {LOOP}"
    )
    parser.add_argument("--feed", action="append", default=[], help="only this feed; a job takes several")
    pairs_argument(parser, "--param", "a parameter")
    parser.add_argument(
        "--retry-wait", type=seconds, default=1.0, metavar="TIME", help="between attempts of a task (default: 1s)"
    )


def run(options: argparse.Namespace) -> int:
    """Runs the job with progress, or the notebook; 1 if the job fails, 3 if only a feed's alarm failed. The output of
    notebooks comes before the job's result, or with ``--quiet`` not at all."""
    given = named_values(options.param, "--param")
    if options.every is None and options.job is not None and options.job.endswith((".py", ".ipynb")):
        return _run_notebook(options, given)
    return _run_job(options, given)


def _run_job(options: argparse.Namespace, given: Mapping[str, str]) -> int:
    key = _job_key(options)
    project, lake = project_root(options), lake_root(options)
    bundle = load_bundle(project)
    job = read_job(bundle, key)
    check_job_parameters(job, given)  # before the brokers are asked
    declared = job.parameters
    own = {name: value for name, value in local_parameters(project, lake).items() if name in declared}
    every = {} if options.every is None else {"every_seconds": str(options.every)}
    parameters = {**own, **_feeds(options.feed, declared), **every, **given}
    feeds = _check_feeds({**declared, **parameters})
    refused = _refused(feeds, lake) if "bootstrap_servers" in declared else {}
    if refused and (len(refused) == len(feeds) or options.every is not None):
        raise ConfigError(_refused_text(refused))
    if refused:
        note(_refused_text(refused))
        parameters |= feed_parameters(*(feed.name for feed in feeds if feed.name not in refused))
    with redirect_stdout(StringIO()) if options.quiet else nullcontext():  # what notebooks print and display
        result = run_job(
            bundle,
            key,
            parameters,
            lambda: quiet_session(lake),
            lambda event: note(progress_text(event)),
            retry_wait_seconds=options.retry_wait,
        )
    print("\n".join([*filter(None, [_refused_text(refused)]), result_text(result, lake)]))
    code = _exit_code(result, refused)
    if feeds and code == 0:
        status = " ".join(["ticdc-lake status", *(f"--feed {feed.name}" for feed in feeds if len(feeds) == 1)])
        note(f"Next: {in_same_place(options, status)}")
    return code


def _exit_code(result: JobResult, refused: Mapping[str, str]) -> int:
    if result.needs_attention and not refused:
        return NEEDS_ATTENTION
    return 1 if result.state is not JobState.SUCCESS or refused else 0


def _refused(feeds: Sequence[Feed], lake: Path) -> dict[str, str]:
    """Returns why a feed cannot be started, by its name, and notes which feeds could not be looked at. Raises
    ConfigError if the lake cannot be written."""
    if not feeds:
        return {}
    check_lake(lake)
    secret = Secrets().get
    refused = problems(feeds, lake, secret)
    if unread := only_spark_reads([feed for feed in feeds if feed.name not in refused], secret):
        note(f"{listed(unread)}: brokers answer; topics are not looked at before Spark starts: {ONLY_JAVA}")
    return refused


def _refused_text(refused: Mapping[str, str]) -> str:
    return "\n".join(f"{feed}: not begun: {problem}" for feed, problem in refused.items())


def _job_key(options: argparse.Namespace) -> str:
    """Returns the job that the options mean. Raises ConfigError."""
    if options.every is None:
        return JOB if options.job is None else str(options.job)
    if options.job not in (None, LOOP):
        raise ConfigError(f"--every runs the job {LOOP}; expected no other, found {options.job}")
    return LOOP


def _run_notebook(options: argparse.Namespace, given: Mapping[str, str]) -> int:
    """Runs one notebook; its parameters are the job's own, ``feed``, and those given."""
    if len(options.feed) > 1:
        raise ConfigError(f"--feed: a notebook takes one, found {', '.join(options.feed)}")
    project = project_root(options)
    notebook = notebook_named(options.job, project)
    asked = {**({"feed": options.feed[0]} if options.feed else {}), **given}
    check_parameters(notebook, asked)
    reads_only = only_reads(notebook)
    lake = existing_lake(options) if reads_only else lake_root(options)
    own = local_parameters(project, lake)
    session = quiet_session(lake, temporary_folder() if reads_only else None)
    job_parameters.lake_from(session, own)
    value = run_notebook(notebook.path, {**own, **asked}, Surroundings(spark=session))
    if value is not None:
        print(value)
    return 0


def notebook_named(name: str, project: Path) -> Notebook:
    """Returns the notebook, in this folder or else in the project's, checked before Spark starts. Raises
    ConfigError."""
    return read_notebook(Path(name) if Path(name).is_file() else project / name)


def _feeds(given: list[str], declared: Mapping[str, str]) -> dict[str, str]:
    """Returns the job parameter that limits a run to these feeds. Raises ConfigError for several where the job takes
    one, and for any where it takes none."""
    if not given:
        return {}
    if "feed" not in declared and "feeds" not in declared:
        raise ConfigError(f"--feed: this job takes none, found {', '.join(given)}")
    if "feed" not in declared:
        return feed_parameters(*given)
    if len(given) > 1:
        raise ConfigError(f"--feed: this job takes one, found {', '.join(given)}")
    return {"feed": given[0]}


def _check_feeds(parameters: Mapping[str, str]) -> tuple[Feed, ...]:
    """Returns all feeds that a job with these parameters processes, read before it starts.

    Raises ConfigError that lists every mistake in all of them. A job without the parameter feeds_root reads no feeds.
    """
    if "feeds_root" not in parameters:
        return ()
    if parameters.get("feed") == "":
        raise ConfigError("--feed: this job takes one, found none")
    feeds = [parameters["feed"]] if "feed" in parameters else job_parameters.names(parameters, "feeds")
    servers = parameters.get("bootstrap_servers") or None
    return load_feeds(Path(parameters["feeds_root"]), feeds, bootstrap_servers=servers)
