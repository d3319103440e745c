"""The prompt of ``ticdc-lake sql`` as its keys work: a real terminal, no Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pseudo_terminal import conversation, on_a_terminal

PROMPT = """
from ticdc_local.cli import sql
with sql.line_editing(["gold.crm_customers", "gold.crm_orders", "ops.feeds"]):
    print([*sql.typed(sql._read_line)])
"""
WITHOUT_SPARK = """
import sys, threading
from types import SimpleNamespace
from ticdc_local.cli import main, sql

cancelled = threading.Event()

def execute(_, statement, *__):
    print("runs", statement.split())
    if statement == "slow":
        cancelled.wait()
        print("is cancelled")

sql.open_lake = lambda *_, **__: SimpleNamespace(
    spark=SimpleNamespace(sparkContext=SimpleNamespace(cancelAllJobs=cancelled.set)),
    schemas={},
)
sql.refresh_views = lambda *_: {}
sql.execute = execute
sys.argv = ["ticdc-lake", "sql", "--lake", "."]
sys.exit(main())
"""
"""The command with statements that are only shown, of which ``slow`` waits to be cancelled."""
UP, CTRL_C, CTRL_D = "\x1b[A", "\x03", "\x04"
has_readline = (
    subprocess.run([sys.executable, "-c", "import readline"], check=False, capture_output=True).returncode == 0
)
has_proc = pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks at processes through /proc")

pytestmark = pytest.mark.skipif(not has_readline, reason="this Python has no readline")


def statements(folder: Path, typed: str) -> str:
    """The last line that is shown: the statements, as a list."""
    shown = on_a_terminal(PROMPT, typed, HOME=str(folder), TERM="xterm")
    return shown.splitlines()[-1]


def test_tab_completes_a_name(tmp_path: Path) -> None:
    assert statements(tmp_path, "SELECT * FROM gold.crm_o\t;\nquit\n") == "['SELECT * FROM gold.crm_orders']"


def test_statements_of_an_earlier_session_are_in_the_history(tmp_path: Path) -> None:
    statements(tmp_path, "SELECT 1;\nquit\n")
    assert statements(tmp_path, f"{UP}{UP}\nquit\n") == "['SELECT 1']"


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lake without tables, as the working directory."""
    (tmp_path / "bronze").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@has_proc
@pytest.mark.parametrize("end", ["quit\n", CTRL_D])
def test_ctrl_c_drops_what_is_typed_and_the_prompt_stays(lake: Path, end: str) -> None:
    turns = [
        ("sql> ", "first;\n"),
        ("sql> ", "SELECT\n"),
        ("  -> ", "of no use"),
        ("no use", CTRL_C),
        ("sql> ", CTRL_C),
        ("sql> ", f"{UP}{UP}\n"),
        ("sql> ", end),
    ]
    shown, code = conversation(WITHOUT_SPARK, turns, HOME=str(lake))
    assert [line for line in shown.splitlines() if line.startswith("runs")] == ["runs ['first']", "runs ['first']"]
    assert (code, "interrupted" in shown) == (0, False)
    assert "first;\n" in (lake / ".ticdc_lake_history").read_text()


@has_proc
def test_ctrl_c_cancels_a_statement_and_the_prompt_stays(lake: Path) -> None:
    turns = [
        ("sql> ", "slow;\n"),
        ("runs ['slow']", CTRL_C),
        ("sql> ", CTRL_C),
        ("sql> ", "next;\n"),
        ("sql> ", CTRL_D),
    ]
    shown, code = conversation(WITHOUT_SPARK, turns, HOME=str(lake))
    assert "is cancelled" in shown
    assert ("runs ['next']" in shown, code) == (True, 0)


@has_proc
def test_a_second_ctrl_c_during_a_statement_leaves(lake: Path) -> None:
    program = WITHOUT_SPARK.replace("cancelled.wait()", "cancelled.wait(); print('waits'); threading.Event().wait()")
    turns = [("sql> ", "slow;\n"), ("runs ['slow']", CTRL_C), ("waits", CTRL_C)]
    shown, code = conversation(program, turns, HOME=str(lake))
    assert "ticdc-lake sql: interrupted; run it again" in shown
    assert code == 130


@has_proc
def test_the_prompt_says_how_to_leave_and_what_ctrl_c_does(lake: Path) -> None:
    shown, _ = conversation(WITHOUT_SPARK, [("sql> ", CTRL_D)], HOME=str(lake))
    assert "leave with quit or Ctrl-D. Ctrl-C drops what is typed, or cancels the statement that runs" in shown
