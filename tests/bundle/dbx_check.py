"""Reads conf/deployment.yml with dbx's own reader: ``make dbx-check``, in a virtual environment of dbx's own."""

from __future__ import annotations

import sys
from pathlib import Path

import yaml
from dbx.api.config_reader import YamlConfigReader

FILE = Path(__file__).parents[2] / "conf" / "deployment.yml"


def main() -> int:
    """Compares what dbx would send with the file; gives the number of workflows that differ."""
    written = yaml.safe_load(FILE.read_text(encoding="utf-8"))["environments"]["default"]["workflows"]
    found = YamlConfigReader(FILE).config.get_environment("default").payload.workflows
    wrong = 0
    for given, workflow in zip(written, found, strict=True):
        read = workflow.dict(exclude_none=True, exclude={"workflow_type"})
        for task in read["tasks"]:
            assert task.pop("libraries") == [], "dbx adds the wheel when it deploys"
        differing = sorted(key for key in given.keys() | read.keys() if given.get(key) != read.get(key))
        result = f"DIFFERS in {', '.join(differing)}" if differing else "as written"
        print(f"{given['name']}: {len(given['tasks'])} tasks, {result}")
        wrong += bool(differing)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
