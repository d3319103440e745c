"""What the files of a checkpoint say about a stream's batches."""

from __future__ import annotations

from pathlib import Path

import pytest

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse import stream_checkpoint


def plan(checkpoint: Path, number: int, end: int) -> None:
    (checkpoint / "offsets").mkdir(exist_ok=True)
    offsets = f'v1\n{{"batchWatermarkMs":0}}\n{{"a":{{"0":{end},"1":2}}}}'
    (checkpoint / "offsets" / str(number)).write_text(offsets, encoding="utf-8")


def commit(checkpoint: Path, number: int) -> None:
    (checkpoint / "commits").mkdir(exist_ok=True)
    (checkpoint / "commits" / str(number)).write_text("v1\n{}", encoding="utf-8")
    (checkpoint / "commits" / f".{number}.crc").touch()


def test_before_the_first_start(tmp_path: Path) -> None:
    checkpoint = str(tmp_path / "none")
    assert stream_checkpoint.query_id(checkpoint) is None
    assert stream_checkpoint.next_batch(checkpoint) == 0
    assert stream_checkpoint.interrupted(checkpoint) is None
    assert stream_checkpoint.messages_read(checkpoint) == 0
    assert stream_checkpoint.first_offsets(checkpoint) == {}


def test_a_batch_that_was_planned_and_not_committed_is_interrupted(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text('{"id":"q"}', encoding="utf-8")
    checkpoint = str(tmp_path)
    plan(tmp_path, 8, 5)
    assert stream_checkpoint.interrupted(checkpoint) == 8
    commit(tmp_path, 8)
    assert (stream_checkpoint.interrupted(checkpoint), stream_checkpoint.next_batch(checkpoint)) == (None, 9)
    for number in (9, 10):
        plan(tmp_path, number, number)
    commit(tmp_path, 9)
    assert (stream_checkpoint.interrupted(checkpoint), stream_checkpoint.next_batch(checkpoint)) == (10, 10)
    assert stream_checkpoint.query_id(checkpoint) == "q"
    assert stream_checkpoint.planned_offsets(checkpoint, 10) == {("a", 0): 10, ("a", 1): 2}
    assert stream_checkpoint.messages_read(checkpoint) == 12


@pytest.mark.parametrize("text", ["", "v1\n{", "v1\n", 'v1\n{"batchWatermarkMs":0}', "\0\0", "v1\n[]"])
def test_a_file_that_a_loss_of_power_left_damaged_is_named(tmp_path: Path, text: str) -> None:
    plan(tmp_path, 8, 5)
    for file, read in (("offsets/8", stream_checkpoint.planned_topics), ("metadata", stream_checkpoint.query_id)):
        (tmp_path / file).write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError, match=rf"{file} is empty or cut off.*\. Delete the folder {tmp_path}: bronze"):
            read(str(tmp_path))


def test_a_checkpoint_that_lacks_batches_of_the_tables_is_an_older_copy(tmp_path: Path) -> None:
    asked: list[tuple[str, int]] = []

    def refuse_older(newest_in_table: int | None) -> list[tuple[str, int]]:
        asked.clear()

        def batch_after(query: str, last: int) -> int | None:
            asked.append((query, last))
            return newest_in_table

        stream_checkpoint.refuse_older("feed f: silver", str(tmp_path), batch_after, "silver continues")
        return asked

    def plan_and_append_meanwhile(number: int) -> None:
        def batch_after(_query: str, _last: int) -> int:
            plan(tmp_path, number, 6)
            return number

        stream_checkpoint.refuse_older("feed f: silver", str(tmp_path), batch_after, "")

    assert refuse_older(None) == [], "no query, no copy of its checkpoint"
    (tmp_path / "metadata").write_text('{"id":"q"}', encoding="utf-8")
    assert refuse_older(None) == [("q", -1)]
    plan_and_append_meanwhile(0)  # another run
    plan(tmp_path, 8, 5)
    with pytest.raises(
        ConfigError, match=rf"^feed f: silver has batch 9, its checkpoint {tmp_path} ends with batch 8:"
    ):
        refuse_older(9)
    assert refuse_older(None) == [("q", 8)]
    plan_and_append_meanwhile(9)
    (tmp_path / "offsets" / "9").unlink()
    stream_checkpoint.note_end(str(tmp_path))
    assert refuse_older(None) == [], "as this process left it"
    for number in ("0", "8"):
        (tmp_path / "offsets" / number).unlink()
    assert refuse_older(None) == [("q", -1)]


def test_a_file_of_our_own_is_whole_or_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = str(tmp_path / "new folder")
    assert stream_checkpoint.read_beside(checkpoint, "first_batch") is None
    stream_checkpoint.write_beside(checkpoint, "first_batch", "7")
    assert stream_checkpoint.read_beside(checkpoint, "first_batch") == "7"
    for left_by_a_loss_of_power in ("", "\0\0"):
        (Path(checkpoint) / "time_zone").write_text(left_by_a_loss_of_power, encoding="utf-8")
        assert stream_checkpoint.read_beside(checkpoint, "time_zone") is None

    def full(self: Path, *_args: object, **_options: object) -> None:
        self.write_bytes(b"")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space left"):
        stream_checkpoint.write_beside(checkpoint, "first_batch", "12")
    assert stream_checkpoint.read_beside(checkpoint, "first_batch") == "7"
