"""``ticdc-lake run``: a job or a notebook of the bundle on this machine, as the bundle's YAML defines it."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.config.feed import load_feeds
from ticdc_lakehouse.entry import lake_from
from ticdc_local.bundle import load_bundle
from ticdc_local.cli.arguments import lake_root, named_values, place_arguments, project_root
from ticdc_local.cli.job_text import progress_text, result_text
from ticdc_local.cli.number import seconds
from ticdc_local.cli.open_lake import quiet_session
from ticdc_local.graph import read_job
from ticdc_local.job import feed_parameters, local_parameters, run_job
from ticdc_local.notebook import Surroundings, read_notebook, run_notebook
from ticdc_local.outcome import JobState

JOB = "ticdc_lake"


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    place_arguments(parser)
    parser.add_argument(
        "job", nargs="?", default=JOB, metavar="JOB", help=f"key of a job, or a notebook (default: {JOB})"
    )
    parser.add_argument("--feed", action="append", default=[], help="only this feed; a job takes several")
    parser.add_argument("--param", action="append", default=[], metavar="NAME=VALUE", help="a parameter")
    parser.add_argument(
        "--retry-wait", type=seconds, default=1.0, metavar="SECONDS", help="between attempts of a task (default: 1)"
    )


def run(options: argparse.Namespace) -> int:
    """Run the job with progress, or the notebook; 1 if the job fails."""
    given = named_values(options.param, "--param")
    if options.job.endswith((".py", ".ipynb")):
        return _run_notebook(options, given)
    project, lake = project_root(options), lake_root(options)
    bundle = load_bundle(project)
    declared = read_job(bundle, options.job).parameters
    own = {name: value for name, value in local_parameters(project, lake).items() if name in declared}
    parameters = {**own, **_feeds(options.feed), **given}
    check_feeds({**declared, **parameters})
    result = run_job(
        bundle,
        options.job,
        parameters,
        lambda: quiet_session(lake),
        lambda progress: print(progress_text(progress), flush=True),
        files_root=lake,
        retry_wait_seconds=options.retry_wait,
    )
    print(result_text(result))
    return 0 if result.state is JobState.SUCCESS else 1


def _run_notebook(options: argparse.Namespace, given: Mapping[str, str]) -> int:
    """Run one notebook; its parameters are the job's own, ``feed``, and those given."""
    if len(options.feed) > 1:
        raise ConfigError(f"--feed: a notebook takes one, found {', '.join(options.feed)}")
    project, lake = project_root(options), lake_root(options)
    notebook = notebook_named(options.job, project)
    own = {**local_parameters(project, lake), **({"feed": options.feed[0]} if options.feed else {})}
    session = quiet_session(lake)
    lake_from(session, own)
    value = run_notebook(notebook, {**own, **given}, Surroundings(spark=session, files_root=lake))
    if value is not None:
        print(value)
    return 0


def notebook_named(name: str, project: Path) -> Path:
    """The notebook, in this folder or else in the project's, looked at before Spark starts. Raises ConfigError."""
    path = Path(name) if Path(name).is_file() else project / name
    read_notebook(path)
    return path


def _feeds(names: list[str]) -> dict[str, str]:
    return feed_parameters(*names) if names else {}


def check_feeds(parameters: Mapping[str, str]) -> None:
    """Read the files of all feeds that a job with these parameters carries, before it starts.

    Raises ConfigError that lists every mistake in all of them. A job without the parameter feeds_root reads no feeds.
    """
    if "feeds_root" not in parameters:
        return
    names = _names(parameters.get("feeds", "[]"))
    for name, count in Counter(names).items():
        if count > 1:
            raise ConfigError(f"parameter feeds: {name} stands {count} times; expected once")
    load_feeds(Path(parameters["feeds_root"]), names, bootstrap_servers=parameters.get("bootstrap_servers") or None)


def _names(text: str) -> list[str]:
    try:
        names = json.loads(text)
    except json.JSONDecodeError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ConfigError(f"parameter feeds: expected a JSON list of names, found {text!r}")
    return names
