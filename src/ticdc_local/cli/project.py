"""What commands look at before Spark: the project's feeds, and the lake as its files have it."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable
from pathlib import Path

from ticdc_codec.errors import ConfigError
from ticdc_codec.options import option_names, sink_options
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.config.feed import VISIBLE, Feed, load_feed, no_such_feed
from ticdc_lakehouse.gold.state import published_feeds
from ticdc_local.cli.arguments import lake_root, project_root
from ticdc_local.delta_reader import DeltaReader


def open_reader(options: argparse.Namespace) -> DeltaReader:
    """Returns a reader of the lake's tables without Spark. Raises ConfigError if there is no lake in the folder."""
    return DeltaReader(existing_lake(options))


def existing_lake(options: argparse.Namespace) -> Path:
    """Returns the lake's folder. Raises ConfigError if there is no lake in it, or no project where the lake is looked
    for."""
    root = lake_root(options)
    if not (root / Layer.BRONZE).is_dir():
        if options.lake is None:
            project_root(options)
        raise ConfigError(f"{root}: expected a lake, found none; `ticdc-lake run` or `make demo` makes one")
    return root


def feed_files(options: argparse.Namespace) -> dict[str, Path]:
    """Returns the file of each feed, by the feed's name: those of the project, and those that verify-stream left in a
    lake."""
    folders = _feed_folders(options)
    return {path.stem: path for folder in folders for path in sorted(folder.glob(f"{VISIBLE}.yml"))}


def _feed_folders(options: argparse.Namespace) -> tuple[Path, Path]:
    return lake_root(options) / "feeds", feeds_folder(options)


FeedOrMistake = Feed | ConfigError | None
"""What a feed's file describes, or what is wrong with it; None where a feed has no file."""


def read_feed_files(options: argparse.Namespace, feeds: Iterable[str]) -> dict[str, FeedOrMistake]:
    """Returns the file of each of these feeds, read once."""
    paths = feed_files(options)
    return {feed: _read_feed_file(paths[feed]) if feed in paths else None for feed in feeds}


def _read_feed_file(path: Path) -> Feed | ConfigError:
    try:
        return load_feed(path)
    except ConfigError as error:
        return error


def feeds_folder(options: argparse.Namespace) -> Path:
    """Returns where the project has its feed files."""
    return project_root(options) / "resources" / "feeds"


def check_feed(options: argparse.Namespace, name: str, known: Collection[str]) -> None:
    """Raises ConfigError if a feed is not among the known ones, with the most similar known name."""
    if name not in known:
        raise no_such_feed(feeds_folder(options) / f"{name}.yml", known)


def no_feeds(options: argparse.Namespace, and_nowhere_else: str = "") -> ConfigError:
    """Returns the error of a command that looks at all feeds where there are none: a monitor that looks in a wrong
    folder must not find that all is fine."""
    of_lake, of_project = _feed_folders(options)
    return ConfigError(
        f"expected a feed, found none: no feed file in {of_project} or {of_lake}{and_nowhere_else}; name another "
        "project with --project, or write a feed's file: `ticdc-lake feed new`"
    )


def feed_named(options: argparse.Namespace, name: str) -> Feed:
    """Returns the feed of this name. Raises ConfigError for one that has no file, or whose file is wrong."""
    files = feed_files(options)
    check_feed(options, name, files)
    return load_feed(files[name])


def options_given(feed: Feed) -> dict[str, object]:
    """Returns the options of a feed that are not their defaults, by the names that a sink-uri has for them."""
    fields = {name: name.replace("-", "_") for name in option_names(feed.protocol)}
    default = sink_options(feed.protocol, {})
    values = {name: getattr(feed.sink_options, field) for name, field in fields.items()}
    other = {name: value for name, value in values.items() if value != getattr(default, fields[name])}
    return {**other, "time-zone": feed.sink_options.time_zone.key}


def chosen_feeds(options: argparse.Namespace, lake: DeltaReader) -> list[str]:
    """Returns ``--feed``, else all feeds: those with a file and those that gold has published. Raises ConfigError for
    one that is neither, and if there is none."""
    known = sorted({*feed_files(options), *published_feeds(lake)})
    if options.feed is None:
        if not known:
            raise no_feeds(options, f", and {lake_root(options)} has published none")
        return known
    check_feed(options, options.feed, known)
    return [options.feed]
