"""A message from its events: header, bodies, term dictionary, size tables (wire.md 1.1.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ticdc_codec.bounded_cache import make_room
from ticdc_codec.craft.frame import NO_TERM, VERSION, EventType
from ticdc_codec.craft.plan import Plan
from ticdc_codec.message import Message
from ticdc_codec.number import delta_uvarints, delta_varints, uvarint, varint

Groups = Sequence[tuple[Plan, bytes]]
"""A row's column groups: the plan of each, and its values' lengths and bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What the header says of each event."""

    kind: EventType
    commit_ts: list[int]
    partitions: list[int]
    databases: list[str | None]
    tables: list[str | None]


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    """What messages of the same tables repeat."""

    terms: dict[str | None, int]
    """Ids in order of first use: databases, tables, then columns."""
    heads: dict[Plan, bytes]
    """What stands before the values of a column group."""
    dictionary: bytes


class Composer:
    """Makes messages; keeps what they repeat."""

    def __init__(self) -> None:
        self._vocabularies: dict[tuple[tuple[object, ...], ...], _Vocabulary] = {}

    def rows(self, header: Header, rows: Sequence[Groups]) -> Message:
        """A message of row changes."""
        plans = [plan for groups in rows for plan, _ in groups]
        vocabulary = self._vocabulary(header, plans)
        heads = vocabulary.heads
        sizes = [[len(heads[plan]) + len(values) for plan, values in groups] for groups in rows]
        body = b"".join([piece for groups in rows for plan, values in groups for piece in (heads[plan], values)])
        return _message(header, vocabulary, body, [*map(sum, sizes)], b"".join(map(_size_table, sizes)))

    def alone(self, header: Header, body: bytes) -> Message:
        """A message of another event."""
        return _message(header, self._vocabulary(header, ()), body, [len(body)], b"")

    def _vocabulary(self, header: Header, plans: Sequence[Plan]) -> _Vocabulary:
        used = tuple(dict.fromkeys(header.databases)), tuple(dict.fromkeys(header.tables)), tuple(dict.fromkeys(plans))
        found = self._vocabularies.get(used)
        if found is None:
            make_room(self._vocabularies)
            found = self._vocabularies[used] = _vocabulary(*used)
        return found


def _vocabulary(databases: Iterable[str | None], tables: Iterable[str | None], plans: Iterable[Plan]) -> _Vocabulary:
    terms: dict[str | None, int] = {None: NO_TERM}
    for name in (*databases, *tables):
        terms.setdefault(name, len(terms) - 1)
    heads = {plan: _head(plan, terms) for plan in plans}
    return _Vocabulary(terms, heads, _dictionary([name.encode() for name in terms if name is not None]))


def _head(plan: Plan, terms: dict[str | None, int]) -> bytes:
    names = [terms.setdefault(name, len(terms) - 1) for name in plan.names]
    return plan.kind + uvarint(len(names)) + delta_varints(names) + plan.described


def _dictionary(names: list[bytes]) -> bytes:
    return b"".join([uvarint(len(names)), *[uvarint(len(name)) for name in names], *names]) if names else b""


def _message(header: Header, vocabulary: _Vocabulary, bodies: bytes, sizes: list[int], group_tables: bytes) -> Message:
    """One message; ``sizes`` are those of the bodies, ``group_tables`` the size tables of the rows' column groups."""
    terms, dictionary = vocabulary.terms, vocabulary.dictionary
    head = b"".join(
        [
            delta_uvarints(header.commit_ts),
            bytes([header.kind]) * len(sizes),
            delta_varints(header.partitions),
            delta_varints([terms[name] for name in header.databases]),
            delta_varints([terms[name] for name in header.tables]),
        ]
    )
    tables = _size_table([len(head), len(dictionary)]) + _size_table(sizes) + group_tables
    value = b"".join([uvarint(VERSION), head, bodies, dictionary, tables, uvarint(len(tables))[::-1]])
    return Message(key=None, value=value)


def _size_table(sizes: list[int]) -> bytes:
    return b"\x01" + varint(sizes[0]) if len(sizes) == 1 else uvarint(len(sizes)) + delta_varints(sizes)
