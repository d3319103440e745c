"""The prompt of ``ticdc-lake sql`` as its keys work: a real terminal, no Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pseudo_terminal import on_a_terminal

PROMPT = """
from ticdc_local.cli import sql
with sql.line_editing(["gold.crm_customers", "gold.crm_orders", "ops.feeds"]):
    print([*sql.typed(sql._read_line)])
"""
UP = "\x1b[A"
has_readline = (
    subprocess.run([sys.executable, "-c", "import readline"], check=False, capture_output=True).returncode == 0
)

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
