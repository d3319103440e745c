"""ADD COLUMN … TIMESTAMP DEFAULT '…' in messages of Simple, which have the DEFAULT's instant: the value of old rows is
certain."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from one_table import STATE, block_reason, ddl, definition, plan, planning_input

from ticdc_codec.event import Ddl, Event, RowChange, events_of
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import Decoder
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.steps import AlterRows
from ticdc_lakehouse.policy import OnComputedDefault, Policy
from ticdc_lakehouse.schema.effect import ColumnAdded

VECTORS = Path(__file__).parents[1] / "data" / "vectors"
BEFORE = "CREATE TABLE d.t (id INT PRIMARY KEY, c DECIMAL(6,2) NOT NULL, b JSON, a VARCHAR(20))"


def events(file: str, case: str) -> list[Event]:
    """The events of one case of a vector file."""
    with gzip.open(VECTORS / f"{file}.jsonl.gz", "rt", encoding="utf-8") as lines:
        header = json.loads(next(lines))
        found = next(each for each in map(json.loads, lines) if each["case"] == case)
    values = [base64.b64decode(message["value"]) for message in found["messages"]]
    options = sink_options("simple", {**header["options"], "time-zone": header["time_zone"]})
    return [event for _, event in events_of(Decoder("simple", options).decode([None] * len(values), values))]


@pytest.mark.parametrize("policy", OnComputedDefault)
@pytest.mark.parametrize("file", ["tiflow-simple-json", "tiflow-simple-avro"])
def test_old_rows_get_what_tidb_gave_them(file: str, policy: OnComputedDefault) -> None:
    """Whatever the policy, and without `ddl_time_zone`."""
    (added,) = events(file, "evolve.9.add_many")
    assert isinstance(added, Ddl)
    (deleted,) = (event for event in events(file, "evolve.10.delete_old_row") if isinstance(event, RowChange))
    defaults = {column.name: column.default for column in added.columns if column.default is not None}
    sent = replace(ddl(14, added.query.replace("`test`.`evolve`", "`d`.`t`")), defaults=defaults)
    for zone, value in (("Asia/Shanghai", (deleted.before or {})["ts"]), ("UTC", "2019-12-31 16:00:00.500")):
        config = GoldConfig(feed="f", time_zone=zone, policy=lambda *_: Policy(on_computed_default=policy))
        made = plan(planning_input(known=definition(sql=BEFORE), state=STATE, ddls=(sent,), config=config))
        assert block_reason(made) is None
        assert made.definition is not None
        assert not any(column.pending for column in made.definition.table.columns)
        (step,) = (step for step in made.steps if isinstance(step, AlterRows))
        values = {effect.column.name: effect.value for effect in step.effects if isinstance(effect, ColumnAdded)}
        assert values["ts"] == value
