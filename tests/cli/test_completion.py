"""``ticdc-lake completion``: the script, in the shell that it is for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ticdc_local.cli import COMMANDS, main
from ticdc_local.cli.completion import SHELLS

PROJECT = Path(__file__).parents[2]
# Readline's part: the words so far and the one that is being typed, then the function that was registered.
COMPLETE = """
source /dev/stdin
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE} COMP_TYPE=9
registered=$(complete -p ticdc-lake)
function_name=${registered#*-F } && ${function_name%% *} ticdc-lake "${!#}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def script(capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", "bash"]) == 0
    return capsys.readouterr().out


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("stat", {"status"}),
        ("verify-", {"verify-source", "verify-stream"}),
        ("status --ma", {"--max-age"}),
        ("table s", {"skip-ddl"}),
        ("sql --format m", {"markdown"}),
        ("run --feed shop_c", {"shop_canal", "shop_craft"}),
        ("report --output READ", {"README.md"}),
    ],
)
def test_bash_completes(script: str, typed: str, expected: set[str]) -> None:
    words = ["ticdc-lake", *typed.split(" ")]
    ended = subprocess.run(
        ["bash", "--norc", "-c", COMPLETE, "bash", *words],
        cwd=PROJECT,
        input=script,
        capture_output=True,
        text=True,
        check=False,
    )
    assert set(ended.stdout.split()) == expected, ended.stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_names_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    shown = capsys.readouterr().out
    for command in COMMANDS:
        assert command in shown
