"""A measurement in a process of its own, with its own lake and JVM, as a user's run has: what an earlier one left in
the heap costs it nothing."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Concatenate, ParamSpec, TypeVar

from bench.temporary_lake import temporary_lake
from ticdc_lakehouse.folder_lake import FolderLake

_P = ParamSpec("_P")
_R = TypeVar("_R")


def measured(measure: Callable[Concatenate[FolderLake, _P], _R], *arguments: _P.args, **options: _P.kwargs) -> _R:
    """What ``measure``, a function of a module, returns for a new lake and these arguments."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(_on_new_lake, measure, *arguments, **options).result()


def _on_new_lake(measure: Callable[Concatenate[FolderLake, _P], _R], *arguments: _P.args, **options: _P.kwargs) -> _R:
    with temporary_lake() as lake:
        return measure(lake, *arguments, **options)
