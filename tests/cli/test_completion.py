"""``ticdc-lake completion``: the script, in the shell that it is for."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import redirect_stdout
from io import StringIO
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


# An interactive shell on a terminal of its own, as the help sets it up. What is offered is written to a file.
COMPLETE_IN_ZSH = """
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "fpath+=$1; autoload -Uz compinit && compinit -u -D"
zpty -w shell "compadd() {
  builtin compadd \\"\\$@\\" || return
  [[ \\${@[1,(i)(-|--)]} == *-[OAD]* ]] || { builtin compadd -O found \\"\\$@\\"; print -l -- \\$found >> $1/found }
}"
zpty -w shell "comppostfuncs=(exit); bindkey '^I' complete-word"
zpty -n -w shell "$2"$'\\t'
while zpty -r shell; do :; done
"""
SECONDS = 60
CASES = pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("stat", {"status"}),
        ("verify-", {"verify-source", "verify-stream"}),
        ("status --ma", {"--max-age"}),
        ("table s", {"skip-ddl"}),
        ("sql --format m", {"markdown"}),
        ("run --feed shop_c", {"shop_canal", "shop_craft"}),
        ("feed check shop_c", {"shop_canal", "shop_craft"}),
        ("decode --protocol can", {"canal-json"}),
        ("generate --workload s", {"shop", "sysbench"}),
        ("report --output READ", {"README.md"}),
    ],
)


def needs(shell: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"needs {shell}")


def script(shell: str) -> str:
    """What ``ticdc-lake completion`` prints."""
    with redirect_stdout(StringIO()) as printed:
        assert main(["completion", shell]) == 0
    return printed.getvalue()


def output_of(*command: str, given: str = "") -> str:
    ended = subprocess.run(
        command, cwd=PROJECT, input=given, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    assert "error" not in ended.stderr.lower(), ended.stderr
    return ended.stdout


@needs("bash")
@CASES
def test_bash_completes(typed: str, expected: set[str]) -> None:
    words = ["ticdc-lake", *typed.split(" ")]
    assert set(output_of("bash", "--norc", "-c", COMPLETE, "bash", *words, given=script("bash")).split()) == expected


@needs("zsh")
@CASES
def test_zsh_completes(typed: str, expected: set[str], tmp_path: Path) -> None:
    (tmp_path / "_ticdc-lake").write_text(script("zsh"))
    output_of("zsh", "-f", "-c", COMPLETE_IN_ZSH, "zsh", str(tmp_path), f"ticdc-lake {typed}")
    assert set((tmp_path / "found").read_text().split()) == expected


@needs("fish")
@CASES
def test_fish_completes(typed: str, expected: set[str], tmp_path: Path) -> None:
    (tmp_path / "ticdc-lake.fish").write_text(script("fish"))
    ask = f"source {tmp_path}/ticdc-lake.fish; complete -C 'ticdc-lake {typed}'"
    offered = output_of("fish", "--no-config", "-c", ask).splitlines()
    assert {line.partition("\t")[0] for line in offered} == expected


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_names_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    shown = capsys.readouterr().out
    for command in COMMANDS:
        assert command in shown
