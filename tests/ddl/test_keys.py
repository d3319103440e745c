"""Names of keys and indexes, and of those that a FOREIGN KEY makes: as TiDB gives them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from altered import alter, table

from ticdc_codec.errors import ApplyError
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.key import changes_unique_key
from ticdc_lakehouse.schema.read import read_ddl
from ticdc_lakehouse.schema.statement import AlterTable, NoChange


@pytest.mark.parametrize(
    ("more", "texts"),
    [
        ("", ("ADD INDEX(a, (b+1))", "ADD UNIQUE(a)")),
        (", KEY a (c)", ("DROP INDEX a, ADD UNIQUE(a)",)),
        (", KEY a (c)", ("RENAME INDEX a TO z, ADD UNIQUE(a)",)),
        (", KEY a (x)", ("DROP COLUMN x, ADD UNIQUE(a)",)),
    ],
)
def test_a_key_without_a_name_gets_one_that_is_free_when_the_statement_begins(
    more: str, texts: tuple[str, ...]
) -> None:
    """After its first column, also beside an expression; a real TiDB v8.5.6 called each of them a_2."""
    now = table(f"a INT NOT NULL, b INT NOT NULL, c INT NOT NULL, x INT, UNIQUE KEY bc (b, c){more}")
    for text in texts:
        now = alter(now, text).table
    assert now.key == ("a",)
    assert alter(now, "DROP INDEX a_2").table.key == ("b", "c")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("PRIMARY KEY /*T![clustered_index] NONCLUSTERED */ UNIQUE KEY", "PRIMARY a_2"),
        ("KEY UNIQUE", "PRIMARY a_2"),
        ("NOT NULL AUTO_INCREMENT UNIQUE KEY PRIMARY KEY", "a PRIMARY"),
        ("PRIMARY KEY UNIQUE KEY PRIMARY KEY UNIQUE KEY", "PRIMARY a_2 a_3"),
        ("NOT NULL UNIQUE UNIQUE KEY", "a a_2"),
        ("NOT NULL UNIQUE KEY, PRIMARY KEY (b, a), UNIQUE (b)", "PRIMARY b_2 a"),
        ("NOT NULL UNIQUE KEY, PRIMARY KEY a (b)", "PRIMARY a_2"),
        ("NOT NULL UNIQUE KEY, UNIQUE (b), PRIMARY KEY (b)", "b PRIMARY a"),
    ],
)
def test_a_column_has_all_keys_that_it_names(text: str, names: str) -> None:
    """TiDB v8.5.6, ``columnDefToCol``: a key for each UNIQUE (the flag that it looks for is another one than it sets),
    and one for all PRIMARY KEYs. A PRIMARY KEY takes a name from other keys (``setEmptyConstraintName``): TiDB's own
    ``TestMultiSchemaDropListColumnsDefaultPartition`` has ``a_2`` beside ``PRIMARY KEY (a, b)``."""
    before = table(f"a INT {text}, b INT")
    assert " ".join(key.name for key in before.keys or ()) == names


def test_a_unique_column_names_rows_once_it_is_the_primary_key_no_more() -> None:
    before = table("a INT PRIMARY KEY /*T![clustered_index] NONCLUSTERED */ UNIQUE KEY, b INT, c INT")
    after = alter(before, "DROP PRIMARY KEY")
    assert (after.table.key, after.effects) == (("a",), ())
    assert alter(after.table, "DROP INDEX a_2").table.key == ()


@pytest.mark.parametrize(
    "before",
    [
        alter(table("id INT PRIMARY KEY, v VECTOR(3)"), "ADD VECTOR INDEX ((VEC_L2_DISTANCE(v)))").table,
        table("id INT PRIMARY KEY, v VECTOR(3), VECTOR INDEX ((VEC_L2_DISTANCE(v)))"),
    ],
)
def test_a_vector_index_without_a_name_is_called_vector_index(before: Table) -> None:
    now = alter(before, "ADD INDEX ((id + 1)), ADD VECTOR INDEX ((VEC_COSINE_DISTANCE(v)))").table
    assert {key.name for key in now.keys or ()} == {"PRIMARY", "vector_index", "expression_index", "vector_index_2"}


@pytest.mark.parametrize(
    "text", ["DROP INDEX b", "RENAME INDEX b TO c", "DROP PRIMARY KEY", "ADD COLUMN c INT, DROP KEY b"]
)
def test_an_index_that_a_table_without_primary_key_lacks_is_not_passed_over(text: str) -> None:
    """It may be a unique key under another name."""
    before = table("a INT NOT NULL, UNIQUE KEY a (a), KEY k (a)")
    with pytest.raises(ApplyError, match="the table's definition has none of this name"):
        alter(before, text)
    (statement,) = read_ddl(f"ALTER TABLE d.t {text}", None, None)
    assert isinstance(statement, AlterTable)
    assert changes_unique_key(before, statement)


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ("UNIQUE KEY a (a)", "DROP INDEX IF EXISTS b"),
        ("UNIQUE KEY a (a), KEY k (b)", "DROP COLUMN b, DROP INDEX k"),
        ("PRIMARY KEY (a)", "DROP INDEX b, RENAME INDEX c TO d"),
        ("KEY a (a)", "DROP INDEX b"),
    ],
)
def test_an_index_on_which_no_handle_key_depends_is(entries: str, text: str) -> None:
    before = table(f"a INT NOT NULL, b INT, {entries}")
    assert alter(before, text).table.key == before.key


A, B = "FOREIGN KEY (a) REFERENCES p (id)", "FOREIGN KEY (b) REFERENCES p (id) ON DELETE SET NULL"


@pytest.mark.parametrize(
    ("entries", "texts", "names"),
    [
        (f", {A}", (), "fk_1"),
        (f", CONSTRAINT c {A}, {B}", (), "c fk_2"),
        (", CONSTRAINT c FOREIGN KEY f (a) REFERENCES p (id), FOREIGN KEY g (B) REFERENCES p (id)", (), "c g"),
        (f", {A}, KEY k (A, b)", (), "k"),
        (f", {A}, {A.replace('id', 'u')}, FOREIGN KEY (b, a) REFERENCES p (u, v)", (), "fk_1 fk_3"),
        (", FOREIGN KEY (id) REFERENCES p (id)", (), ""),
        ("", ("ADD FOREIGN KEY (id) REFERENCES p (id)",), "fk_1"),
        ("", (f"ADD {A}, ADD {B}",), "fk_1 fk_2"),
        ("", (f"ADD CONSTRAINT x {A}, ADD UNIQUE (a)",), "x a"),
        ("", (f"ADD UNIQUE (a), ADD CONSTRAINT x {A}",), "a x"),
        ("", (f"ADD {A}", f"DROP FOREIGN KEY fk_1, ADD {A}", f"ADD {B}"), "fk_1 fk_3"),
        (f", {B}", ("RENAME INDEX fk_1 TO b", "ADD UNIQUE (b)"), "b b_2"),
        ("", ("ADD FOREIGN KEY IF NOT EXISTS q (a) REFERENCES p (id)",), "q"),
        ("", ("ADD COLUMN c INT REFERENCES p (id)",), ""),
    ],
)
def test_a_foreign_key_has_an_index_of_its_name_unless_another_one_begins_with_its_columns(
    entries: str, texts: tuple[str, ...], names: str
) -> None:
    """As a real TiDB v8.5.6 did it."""
    now = table(f"id INT, a INT, b INT{entries}, PRIMARY KEY (id)")
    for text in texts:
        now = alter(now, text).table
    assert [key.name for key in now.keys or () if not key.primary] == names.split()
    assert now.key == ("id",)


def test_a_primary_key_that_is_added_does_not_say_which_other_keys_there_are() -> None:
    unknown = replace(table("a INT NOT NULL, b INT NOT NULL"), keys=None, key=("a",))
    added = alter(unknown, "ADD PRIMARY KEY (b)").table
    assert (added.key, added.keys) == (("b",), None)
    with pytest.raises(ApplyError):
        alter(added, "DROP PRIMARY KEY")


@pytest.mark.parametrize(
    ("keys", "names"),
    [
        ("UNIQUE (Id, b), INDEX id (c)", "Id id"),
        ("UNIQUE (id, b), INDEX Id (c)", "id_2 Id"),
        ("UNIQUE (Id), UNIQUE (ID, b), UNIQUE (iD, c), UNIQUE (ID, c)", "Id ID iD ID_2"),
        ("UNIQUE ID (Id), UNIQUE (ID, b), UNIQUE (id, c)", "ID ID id_2"),
        ("INDEX id_2 (c), UNIQUE (id), UNIQUE (id, b)", "id_2 id id_3"),
        ("INDEX id_2 (c), UNIQUE (Id), UNIQUE (Id, b)", "id_2 Id Id_2"),
    ],
)
def test_names_that_differ_in_case_alone_are_two_to_a_create_table(keys: str, names: str) -> None:
    """TiDB v8.5.6, ``setEmptyConstraintName``, which has the text's own spelling of a column."""
    made = table(f"Id INT NOT NULL, b INT NOT NULL, c INT NOT NULL, {keys}")
    assert " ".join(key.name for key in made.keys or ()) == names


def test_of_two_keys_with_one_name_the_first_is_dropped_or_renamed() -> None:
    """``FindIndexByName``."""
    before = table("Id INT NOT NULL, b INT NOT NULL, c INT NOT NULL, UNIQUE (Id,b), INDEX id (c), UNIQUE x (b,c,Id)")
    assert before.key == ("Id", "b")
    after = alter(before, "DROP INDEX iD")
    assert (after.table.key, [key.name for key in after.table.keys or ()]) == (("b", "c", "Id"), ["id", "x"])
    renamed = alter(before, "RENAME INDEX ID TO y").table
    assert [key.name for key in renamed.keys or ()] == ["y", "id", "x"]


def test_tidb_makes_no_full_text_index() -> None:
    """It only warns; but in CREATE TABLE no other key gets its name (TiDB v8.5.6, ``BuildTableInfo``)."""
    columns = "a VARCHAR(9) NOT NULL, b INT NOT NULL, c INT NOT NULL, UNIQUE bc (b, c)"
    plain = table(f"{columns}, FULLTEXT (a)")
    assert [key.name for key in plain.keys or ()] == ["bc"]
    keyed = alter(plain, "ADD UNIQUE (a)").table
    assert keyed.key == ("a",)
    assert alter(keyed, "DROP INDEX a").table.key == ("b", "c"), "the unique key, which has the name alone"
    taken = table(f"{columns}, FULLTEXT (a), UNIQUE (a)")
    assert [key.name for key in taken.keys or ()] == ["bc", "a_2"]
    named = table(f"{columns}, FULLTEXT f (a)")
    assert alter(named, "ADD UNIQUE f (a)").table.key == ("a",)


def test_a_key_gets_no_name_that_a_check_has() -> None:
    """TiDB looks for both in one list (``checkConstraintNames``), also where it ignores CHECKs."""
    checked = table("a INT NOT NULL, b INT NOT NULL, CONSTRAINT A CHECK (a > 0), CHECK (b > 0), UNIQUE (a), UNIQUE (b)")
    assert [key.name for key in checked.keys or ()] == ["a_2", "b"]
    assert alter(checked, "DROP INDEX a_2").table.key == ("b",)
    (statement,) = read_ddl("ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0)", "d", "t")
    assert isinstance(statement, NoChange)
    (statement,) = read_ddl("ALTER TABLE t ADD COLUMN (d INT, CONSTRAINT c CHECK (a > 0))", "d", "t")
    assert isinstance(statement, AlterTable)
    assert len(statement.actions) == 1


def test_a_full_text_index_that_is_added_changes_nothing() -> None:
    before = table("a VARCHAR(9) NOT NULL, b INT, UNIQUE b (b)")
    for text in ("ADD FULLTEXT INDEX a (a)", "ADD FULLTEXT (a), ADD FULLTEXT INDEX IF NOT EXISTS b (a)"):
        assert alter(before, text).table == before
    assert alter(before, "ADD FULLTEXT (a), ADD UNIQUE (a)").table.key == ("a",)
