"""Rows that are too large for a message, written as both of TiCDC's writers did, and read again."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from content import content_of, folder
from vectors import FOLDER, Case, cases, header

from ticdc_codec.batch import DecoderContext
from ticdc_codec.errors import ConfigError, DecodeError
from ticdc_codec.event import Column, Ddl, Event, Failure, Op, Resolved, RowChange, events_of
from ticdc_codec.message import ClaimCheck, Message, stored_message
from ticdc_codec.options import SinkOptions, sink_options
from ticdc_codec.protocols import Decoder, protocol_named

NAMES = sorted(path.name.removesuffix(".jsonl.gz") for path in FOLDER.glob("t*.jsonl.gz"))
CLAIMS = [name for name in NAMES if "claim-check" in name]
KEYS = [name for name in NAMES if name.endswith("handle-key-only") and "-delete-" not in name]
BASE: dict[str, dict[str, object]] = {
    "canal_json": {"enable-tidb-extension": True},
    "open_protocol": {},
    "simple json": {"encoding-format": "json"},
    "simple avro": {"encoding-format": "avro"},
}
PLACE = "file:///claims"
UUID4 = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}[.]json")


def options_of(file: str, **more: object) -> SinkOptions:
    file_header = header(file)
    given = (
        file_header["options"]
        | {"time-zone": file_header["time_zone"]}
        | {k.replace("_", "-"): v for k, v in more.items()}
    )
    return sink_options(file_header["protocol"], given)


def recorded_objects(case: Case) -> dict[str, bytes]:
    place = header(case.file)["options"]["claim-check-storage-uri"]
    objects = case.content.get("claim_check", {})
    return {f"{place}/{name}": base64.b64decode(content) for name, content in objects.items()}


def decoded(
    protocol: str, options: SinkOptions, messages: Sequence[Message], objects: Mapping[str, bytes] | None = None
) -> list[Event]:
    batch = Decoder(protocol, options, DecoderContext(objects=objects or {})).decode(
        [message.key for message in messages], [message.value for message in messages]
    )
    return [event for _, event in events_of(batch)]


def events_in(case: Case) -> list[Event]:
    messages = [Message(key=key, value=value) for key, value in zip(case.keys, case.values, strict=True)]
    stored = recorded_objects(case) if case.file in CLAIMS else {}
    return decoded(header(case.file)["protocol"], options_of(case.file), messages, stored)


def rows_in(case: Case) -> list[RowChange]:
    return [event for event in events_in(case) if isinstance(event, RowChange)]


def stored_by(messages: Sequence[Message]) -> dict[str, bytes]:
    return {each.location: each.content for m in messages if isinstance(m, ClaimCheck) for each in m.stored}


def names_its_key(row: RowChange) -> bool:
    """Canal-JSON names primary keys alone."""
    return any(column.key for column in row.columns)


def test_all_files_are_here() -> None:
    assert len(CLAIMS) == 14
    assert len(KEYS) == 8


@pytest.mark.parametrize("file", CLAIMS)
def test_the_objects_are_those_of_ticdc(file: str) -> None:
    """And as many as it wrote: the same rows were too large."""
    protocol, options = header(file)["protocol"], options_of(file)

    def message_in(content: bytes) -> str:
        raw = options.claim_check_raw_value
        message = Message(key=None, value=content) if raw else stored_message(content)
        return json.dumps(content_of(protocol, message, options), sort_keys=True, default=bytes.hex)

    count = 0
    for case in cases(file):
        ours = stored_by(protocol_named(protocol).encode(events_in(case), options))
        theirs = recorded_objects(case)
        # TiCDC's names are random: by what is in them.
        assert sorted(map(message_in, ours.values())) == sorted(map(message_in, theirs.values())), case.id
        assert {folder(location) for location in ours} == {folder(location) for location in theirs}
        count += len(ours)
    assert count >= 6


@pytest.mark.parametrize("file", CLAIMS)
def test_what_was_stored_decodes_to_the_same_events(file: str) -> None:
    protocol, options = header(file)["protocol"], options_of(file)
    for case in cases(file):
        events = events_in(case)
        messages = protocol_named(protocol).encode(events, options)
        assert decoded(protocol, options, messages, stored_by(messages)) == events, case.id


@pytest.mark.parametrize("file", KEYS)
def test_whole_rows_are_cut_as_ticdc_cuts_them(file: str) -> None:
    """The rows as its claim checks have them, with the options of its other file."""
    protocol, options = header(file)["protocol"], options_of(file)
    wholes = {case.name: rows_in(case) for case in cases(file.replace("handle-key-only", "claim-check"))}
    cut = 0
    for case in cases(file):
        for whole, alone in zip(wholes[case.name], rows_in(case), strict=True):
            if names_its_key(whole) and whole.commit_ts == alone.commit_ts:
                (ours,), (theirs,) = (protocol_named(protocol).encode([row], options) for row in (whole, alone))
                assert content_of(protocol, ours, options) == content_of(protocol, theirs, options), case.id
                cut += alone.handle_only
    assert cut >= 6


@pytest.mark.parametrize("file", [file for file in CLAIMS + KEYS if "open_protocol" in file and "lz4" not in file])
def test_cut_rows_are_in_batches(file: str) -> None:
    """TiCDC's batches, in which rows that are cut stand among others. Go's lz4 is longer: one batch holds less."""
    options = options_of(file)
    for case in cases(file):
        ours = protocol_named("open_protocol").encode(events_in(case), options)
        theirs = [Message(key=key, value=value) for key, value in zip(case.keys, case.values, strict=True)]
        contents = [[content_of("open_protocol", m, options) for m in messages] for messages in (ours, theirs)]
        assert contents[0] == contents[1], case.id
        for message in ours:
            named = re.findall(rb'"ccl":"([^"]+)"', message.key or b"")
            assert [*stored_by([message])] == [location.decode() for location in named]


COLUMNS = (Column(name="id", type="int(11)", key=True, flags=11), Column(name="v", type="text", flags=64))


def row(text: str = "x" * 5000, columns: tuple[Column, ...] = COLUMNS) -> RowChange:
    return RowChange(
        op=Op.UPDATE, database="d", table="t", commit_ts=5 << 18, commit_ms=5, columns=columns, schema_version=3,
        before={"id": "1", "v": "old"}, after={"id": "1", "v": text},
    )  # fmt: skip


def sink(base: str, **more: object) -> SinkOptions:
    given = BASE[base] | {name.replace("_", "-"): value for name, value in more.items()}
    return sink_options(base.split(maxsplit=1)[0], given)


def encode(base: str, events: Sequence[Event], **more: object) -> list[Message]:
    return protocol_named(base.split(maxsplit=1)[0]).encode(events, sink(base, **more))


def size(message: Message) -> int:
    """As TiCDC counts it (tiflow C/common/message.go)."""
    return len(message.key or b"") + len(message.value or b"") + 36


HANDLING = {
    "handle-key-only": {"large_message_handle_option": "handle-key-only"},
    "claim-check": {"large_message_handle_option": "claim-check", "claim_check_storage_uri": PLACE},
}


@pytest.mark.parametrize("option", HANDLING)
@pytest.mark.parametrize("base", BASE)
def test_a_message_is_large_by_ticdcs_measure(base: str, option: str) -> None:
    (whole,) = encode(base, [row()])
    (same,) = encode(base, [row()], max_message_bytes=size(whole), **HANDLING[option])
    (cut,) = encode(base, [row()], max_message_bytes=size(whole) - 1, **HANDLING[option])
    assert same == whole
    assert size(cut) < 700


@pytest.mark.parametrize("base", BASE)
def test_a_compressed_message_is_measured_compressed(base: str) -> None:
    given = {"max_message_bytes": 2000, "large_message_handle_compression": "lz4"}
    (message,) = encode(base, [row()], **given, **HANDLING["claim-check"])
    assert not isinstance(message, ClaimCheck)


@pytest.mark.parametrize("option", HANDLING)
@pytest.mark.parametrize("base", BASE)
def test_what_stays_too_large_is_named(base: str, option: str) -> None:
    """TiCDC stops then: nothing is left out in silence (wire.md 1.6)."""
    handling = {"max_message_bytes": 60, **HANDLING[option]}
    with pytest.raises(ConfigError, match=rf"max-message-bytes=60: the update of d\.t .*-option={option} cannot"):
        encode(base, [row()], **handling)
    ddl = Ddl(
        database="d", table="t", commit_ts=5, commit_ms=0, query=f"CREATE TABLE t (c INT) -- {'x' * 900}", type="3"
    )
    with pytest.raises(ConfigError, match=rf"max-message-bytes=700: Ddl\(.*CREATE TABLE.*-option={option} cannot"):
        encode(base, [ddl], **handling | {"max_message_bytes": 700})


@pytest.mark.parametrize("option", HANDLING)
@pytest.mark.parametrize("base", BASE)
def test_a_row_of_which_the_key_alone_is_known_is_written_so(base: str, option: str) -> None:
    alone = replace(row(), before={"id": "1"}, after={"id": "1"}, columns=COLUMNS[:1], handle_only=True)
    for handling in ({}, HANDLING[option]):
        (message,) = encode(base, [alone], **handling)
        context = DecoderContext(schemas={("d", "t", 3): COLUMNS})
        batch = Decoder(base.split(maxsplit=1)[0], sink(base), context).decode([message.key], [message.value])
        ((_, found),) = events_of(batch)
        assert isinstance(found, RowChange)
        assert (found.handle_only, found.before, found.after) == (True, {"id": "1"}, {"id": "1"})


@pytest.mark.parametrize("base", BASE)
def test_an_object_without_the_whole_row_is_refused(base: str) -> None:
    """Stored is what names an object itself, the handle key alone, and an update's row as that of an insert."""
    protocol = base.split(maxsplit=1)[0]
    limits = {option: handling | {"max_message_bytes": 999} for option, handling in HANDLING.items()}
    (claim,) = encode(base, [row()], **limits["claim-check"])
    (cut,) = encode(base, [row()], **limits["handle-key-only"])
    (other,) = encode(base, [replace(row(), op=Op.INSERT, before=None)])
    ((location, content),) = stored_by([claim]).items()

    def found(content: bytes) -> Event:
        context = DecoderContext(objects={location: content}, schemas={("d", "t", 3): COLUMNS})
        batch = Decoder(protocol, sink(base), context).decode([claim.key], [claim.value])
        ((_, event),) = events_of(batch)
        return event

    assert isinstance(found(content), RowChange)
    for inner in (claim, cut, other):
        key, value = (None if part is None else base64.b64encode(part).decode() for part in (inner.key, inner.value))
        event = found(json.dumps({"key": key, "value": value}).encode())
        assert isinstance(event, Failure)
        assert (event.reason, event.table) == ("claim_check_mismatch", "t")


def test_a_stored_row_of_open_protocol_that_is_no_json_is_refused() -> None:
    limits = HANDLING["claim-check"] | {"max_message_bytes": 999}
    (claim,) = encode("open_protocol", [row()], **limits)
    ((location, content),) = stored_by([claim]).items()
    stored = stored_message(content)
    parts = (stored.key or b"", (stored.value or b"").replace(b'{"u"', b'["u"'))
    key, value = (base64.b64encode(part).decode() for part in parts)
    objects = {location: json.dumps({"key": key, "value": value}).encode()}
    (found,) = decoded("open_protocol", sink("open_protocol"), [claim], objects)
    assert isinstance(found, Failure)
    assert (found.reason, found.table, f"in the object at {location}: " in found.detail) == ("wrong_type", "t", True)


def test_names_are_of_the_content() -> None:
    messages = encode("simple json", [row(), row(), row("y" * 5000)], max_message_bytes=999, **HANDLING["claim-check"])
    (one,), (same,), (other,) = (m.stored for m in messages if isinstance(m, ClaimCheck))
    assert one == same
    assert one.name != other.name
    assert UUID4.fullmatch(one.name)
    assert one.location == f"{PLACE}/{one.name}"
    slash = HANDLING["claim-check"] | {"claim_check_storage_uri": f"{PLACE}/"}
    assert stored_by(encode("simple json", [row()], max_message_bytes=999, **slash)) == {one.location: one.content}


def test_a_row_that_names_no_key() -> None:
    """An error in Open Protocol (wire.md 1.2.6), no column in the others (1.4.1); a claim check needs none."""
    bare = row(columns=tuple(replace(column, key=False, flags=None) for column in COLUMNS))
    for option, handling in HANDLING.items():
        with pytest.raises(ConfigError, match=rf"option={option}: the update of d\.t .* names no handle key"):
            encode("open_protocol", [bare], max_message_bytes=999, **handling)
    (message,) = encode("canal_json", [bare], max_message_bytes=999, **HANDLING["handle-key-only"])
    assert b'"sqlType":null,"mysqlType":{},"old":[{}],"data":[{}]' in (message.value or b"")
    for base, image in (("simple json", None), ("simple avro", {})):
        (message,) = encode(base, [bare], max_message_bytes=999, **HANDLING["handle-key-only"])
        said = content_of("simple", message, sink(base))
        assert (said.get("data"), said.get("old")) == (image, image)
        context = DecoderContext(schemas={("d", "t", 3): bare.columns})
        batch = Decoder("simple", sink(base), context).decode([message.key], [message.value])
        ((_, found),) = events_of(batch)
        # Of such a row TiCDC's JSON has no images, and its Avro has empty ones (wire.md 1.3.6).
        reason = found.reason if isinstance(found, Failure) else None
        assert reason == ("missing_member" if image is None else None)
        if isinstance(found, RowChange):
            assert (found.before, found.after, found.handle_only) == ({}, {}, True)
    for base in ("canal_json", "simple json", "simple avro"):
        (claim,) = encode(base, [bare], max_message_bytes=999, **HANDLING["claim-check"])
        context = DecoderContext(objects=stored_by([claim]), schemas={("d", "t", 3): bare.columns})
        batch = Decoder(base.split()[0], sink(base), context).decode([claim.key], [claim.value])
        ((_, found),) = events_of(batch)
        assert isinstance(found, RowChange)
        assert (found.after, found.handle_only) == (bare.after, False)


@pytest.mark.parametrize("encoding", ["json", "avro"])
@pytest.mark.parametrize("option", HANDLING)
def test_a_checksum_is_of_the_whole_row(encoding: str, option: str) -> None:
    """wire.md 1.3.2 has one beside a claim check. Of a row that is known by its key alone there is none."""
    given = {"integrity_check_level": "correctness"}
    whole, cut, alone = (
        content_of("simple", encode(f"simple {encoding}", [each], **given, **more)[0], sink(f"simple {encoding}"))
        for each, more in (
            (row(), {}),
            (row(), HANDLING[option] | {"max_message_bytes": 999}),
            (replace(row(), before={"id": "1"}, after={"id": "1"}, handle_only=True), {}),
        )
    )
    assert cut["checksum"] == whole["checksum"]
    assert (alone["checksum"]["current"], alone["checksum"]["previous"]) == (0, 0)


def test_options_that_cannot_be() -> None:
    for base in BASE:
        with pytest.raises(ConfigError, match="claim-check-storage-uri: missing"):
            encode(base, [], large_message_handle_option="claim-check")
    with pytest.raises(ConfigError, match=r"large-message-handle-option: .*enable-tidb-extension"):
        encode("canal_json", [], enable_tidb_extension=False, **HANDLING["handle-key-only"])


@pytest.mark.parametrize("base", BASE)
def test_without_the_option_any_size_is_written(base: str) -> None:
    (message, watermark) = encode(base, [row(), Resolved(commit_ts=9)], max_message_bytes=1)
    assert size(message) > 5000
    assert size(watermark) > 36


@pytest.mark.parametrize(
    "content", ['{"key":null,"value":"\u00e9"}', '{"key":"\u00e9","value":""}', '{"key":null,"value":"="}']
)
def test_an_object_that_is_no_base64_is_refused(content: str) -> None:
    with pytest.raises(DecodeError) as refused:
        stored_message(content.encode())
    assert refused.value.reason == "bad_value"
