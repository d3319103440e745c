"""The size of the source code by package, as Markdown tables: ``python docs/figures.py [REVISION …]``, HEAD by default.

``Code`` counts lines that are neither empty nor comments nor docstrings; a function's length includes its docstring.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tarfile
import tokenize
from collections import Counter, defaultdict
from statistics import median

COLUMNS = ("files", "lines", "code", "docstrings", "comments", "functions", "median", "longest", "over 30 lines")
OF_CODEC = ("codec", "inspection", "tso.py", "mysql_type.py", "event.py", "errors.py", "canonical.py")
MOVED = {**dict.fromkeys(OF_CODEC, "ticdc_codec"), **dict.fromkeys(("local", "cli"), "ticdc_local")}
"""Where the first version's parts of ``ticdc_lakehouse`` are today."""
LENGTH_LIMIT = 30


def sources(revision: str) -> dict[str, list[str]]:
    """The texts of a revision's modules below ``src``, by today's package."""
    archive = subprocess.run(["git", "archive", revision, "src"], capture_output=True, check=True).stdout
    packages = defaultdict(list)
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        for member in files:
            parts = member.name.split("/")
            content = files.extractfile(member) if member.name.endswith(".py") else None
            if content is not None:
                part = "ticdc_testkit" if parts[2] == "workload" else MOVED.get(parts[2], parts[1])
                packages[part].append(content.read().decode())
    return packages


def docstring_lines(node: ast.AST) -> set[int]:
    """The lines of a node's docstring, and of the texts that document its attributes."""
    body = node.body if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) else []
    texts = (each for each in body if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
    return {
        line for text in texts if isinstance(text.value.value, str) for line in range(text.lineno, text.end_lineno + 1)
    }


def measured(texts: list[str]) -> tuple[Counter[str], list[int]]:
    """Counts of lines by kind over all modules of a package, and the length of each function."""
    counts, lengths = Counter(files=len(texts)), []
    for text in texts:
        nodes = [*ast.walk(ast.parse(text))] if text.strip() else []
        functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        lengths += [node.end_lineno - node.lineno + 1 for node in functions]
        documented = set().union(*map(docstring_lines, nodes))
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        comments = {
            token.start[0] for token in tokens if token.type == tokenize.COMMENT and token.line.lstrip()[0] == "#"
        }
        empty = {number for number, line in enumerate(text.splitlines(), start=1) if not line.strip()}
        total = len(text.splitlines())
        counts += Counter(lines=total, docstrings=len(documented), comments=len(comments))
        counts["code"] += total - len(documented | comments | empty)
    return counts, lengths


def row(name: str, counts: Counter[str], lengths: list[int]) -> str:
    """A line of the table."""
    counts["functions"], counts["over 30 lines"] = len(lengths), sum(each > LENGTH_LIMIT for each in lengths)
    counts["median"], counts["longest"] = round(median(lengths)), max(lengths)
    return f"| {name} | {' | '.join(f'{counts[column]:,}' for column in COLUMNS)} |"


def table(revision: str) -> str:
    """The figures of a revision."""
    figures = {name: measured(texts) for name, texts in sorted(sources(revision).items())}
    totals = sum((counts for counts, _ in figures.values()), Counter())
    all_lengths = [length for _, lengths in figures.values() for length in lengths]
    rows = [row(f"`{name}`", *figure) for name, figure in figures.items()]
    heads = f"| package | {' | '.join(COLUMNS)} |\n|---|{'---|' * len(COLUMNS)}"
    return "\n".join([heads, *rows, row("all", totals, all_lengths)])


if __name__ == "__main__":
    print("\n\n".join(f"{revision}:\n\n{table(revision)}" for revision in sys.argv[1:] or ["HEAD"]))
