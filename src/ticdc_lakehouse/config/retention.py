"""The sections ``bronze`` and ``silver`` of a feed file: how long messages and events are kept."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from ticdc_lakehouse.config.gold import Days


class Bronze(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Messages as they came. Without a retention they are kept without end."""

    retention_days: Annotated[
        Days | None,
        Meta(
            description="`ticdc-lake maintain` deletes messages that were landed more days than this before the "
            "watermark, once gold has published their changes and if none is in quarantine ([what it "
            "keeps](retention.md))."
        ),
    ] = None


class Silver(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Events. Without a retention they are kept without end."""

    retention_days: Annotated[
        Days | None,
        Meta(
            description="`ticdc-lake maintain` deletes events, all but DDLs, that are more days than this older than "
            "the watermark, as far as no blocked table and no message in quarantine needs them ([what it "
            "keeps](retention.md)). An older export cannot be loaded."
        ),
    ] = None
