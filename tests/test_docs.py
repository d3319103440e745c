"""Pages: links lead somewhere, and what a page names of the code is there."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path

import pytest

from ticdc_codec.protocols import PROTOCOLS
from ticdc_lakehouse import stream_checkpoint
from ticdc_local.cli import EXIT_CODES

PROJECT = Path(__file__).parents[1]
SRC = PROJECT / "src"
PAGES = sorted([*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md")])
LAKEHOUSE = SRC / "ticdc_lakehouse"
FOLDERS = "|".join(sorted(path.parent.name for path in LAKEHOUSE.glob("*/__init__.py")))
TABLES_AND_KEYS = {"name", "schema", "views", "mode", "retention_days", "on_irregular", "on_drop", "on_unsupported_ddl"}
"""What follows `gold.` and the like in the names of tables and of keys in a feed file."""

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))


def without_code_blocks(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def resolves(dotted: str) -> bool:
    """True if a dotted name is a package, a module, or a name in one."""
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        path = SRC.joinpath(*parts[:end])
        module = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if module.exists():
            return all(re.search(rf"\b{re.escape(name)}\b", module.read_text("utf-8")) for name in parts[end:])
    return False


@pages
def test_links_lead_to_pages_and_headings(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)#?([^)\s:]*)\)", without_code_blocks(page)):
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), f"{target}#{anchor}"


@pages
def test_modules_and_names_that_a_page_gives_are_there(page: Path) -> None:
    for dotted in re.findall(r"`(ticdc_(?:codec|lakehouse|local|testkit)(?:\.\w+)+)", page.read_text(encoding="utf-8")):
        assert resolves(dotted), dotted


@pages
def test_members_of_classes_that_a_page_gives_are_there(page: Path) -> None:
    for owner, member in re.findall(r"`([A-Z]\w+)\.(\w+)[`(]", page.read_text(encoding="utf-8")):
        assert owner not in members() or member in members()[owner], f"{owner}.{member}"


@cache
def members() -> dict[str, set[str]]:
    """The names of methods and fields of each class of the code."""
    found: dict[str, set[str]] = {}
    for path in SRC.rglob("*.py"):
        for owner in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(owner, ast.ClassDef):
                named = found.setdefault(owner.name, set())
                for node in owner.body:
                    match node:
                        case ast.FunctionDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                            named.add(name)
                        case ast.Assign(targets=[ast.Name(id=name)]):
                            named.add(name)
    return found


@pytest.mark.parametrize(("page", "least"), [("architecture", 20), ("guarantees", 20), ("developer", 10)])
def test_modules_of_the_lakehouse_that_a_page_on_the_code_gives_are_there(page: str, least: int) -> None:
    text = (PROJECT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    names = re.findall(rf"`((?:{FOLDERS})\.(\w+)[\w.]*)[`(]", text)
    assert len(names) > least
    for dotted, first in names:
        is_table = dotted.startswith("ops.") and not (LAKEHOUSE / "ops" / f"{first}.py").exists()
        assert is_table or first in TABLES_AND_KEYS or resolves(f"ticdc_lakehouse.{dotted}"), dotted


@pages
def test_files_that_a_page_gives_are_there(page: Path) -> None:
    for path in re.findall(r"`((?:src|tests|bench|notebooks|resources|docs)/[\w/.-]+\w)`", page.read_text("utf-8")):
        assert (PROJECT / path).exists(), path


@pages
def test_a_page_has_no_paths_of_a_machine_and_no_merge_markers(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w.])/(?:work|home|tmp|root|Users)/", text)
    assert not re.search(r"^(?:<{7}|={7}|>{7})(?: |$)", text, re.MULTILINE)


@pages
def test_cells_of_tables_are_short(page: Path) -> None:
    """But for lists of sources: the specification of the wire, and the pages of tests and of recordings."""
    rows = re.findall(r"^\| (.+) \|$", page.read_text(encoding="utf-8"), re.MULTILINE)
    long = [cell for row in rows for cell in row.split(" | ") if len(cell) > 270]
    assert page.stem in ("wire", "cases", "verified") or not long


def test_sections_of_the_wire_that_code_and_pages_cite_are_headings() -> None:
    wire = (PROJECT / "docs" / "wire.md").read_text(encoding="utf-8")
    headings = set(re.findall(r"^#+ ([\d.]*\d)\.? ", wire, re.MULTILINE))
    number = r"\d(?:\.\d+)+"
    sources = [path for name in ("src", "tests", "bench", "docs") for path in (PROJECT / name).rglob("*.[pm][yd]")]
    for path in sources:
        text = re.sub(r"\n *#? *", " ", path.read_text(encoding="utf-8"))
        for cited in re.findall(rf"wire\.md\)? ({number}(?:(?:, | and | to ){number})*)", text):
            assert {*re.findall(number, cited)} <= headings, f"{path.relative_to(PROJECT)}: wire.md {cited}"


def test_changelog_begins_with_the_version_of_the_package() -> None:
    [newest, *_] = re.findall(r"^## (\S+)", (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest == tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def test_page_of_what_was_verified_begins_with_its_answer_in_short_paragraphs() -> None:
    _, lead, newest, *others = (PROJECT / "docs" / "verified.md").read_text(encoding="utf-8").split("\n\n")
    commits = re.findall(r"`[0-9a-f]{7}`", lead)
    assert len(commits) == 2
    assert set(commits) <= set(re.findall(r"\| (`[0-9a-f]{7}`) \|", newest))
    assert not [part for part in others if not part.startswith(("|", "- ")) and len(part.split()) > 90]


def test_symptoms_of_the_runbook_are_texts_of_the_code() -> None:
    runbook = (PROJECT / "docs" / "operator.md").read_text(encoding="utf-8").partition("## Runbook")[2]
    rows = re.findall(r"^\| (.+) \|$(?!\n\|-)", runbook.partition("\n## ")[0], re.MULTILINE)
    assert {row.count(" | ") for row in rows} == {2}, "symptom, cause, way out"
    symptoms = [symptom for row in rows for symptom in row.partition(" | ")[0].split("<br>")]
    assert len(symptoms) > 40
    texts = [text for path in SRC.rglob("*.py") for text in literals(path)]
    for symptom in symptoms:
        said = re.sub(r"^(table BLOCKED|waiting on|silver fails|the task fails with|table)\b:? *", "", symptom)
        pattern = re.compile(".*".join(re.escape(part.strip()) for part in said.split("…")))
        assert any(pattern.search(text) for text in texts), symptom


def test_operators_read_every_exit_code_of_the_help() -> None:
    runs = (PROJECT / "docs" / "operator.md").read_text(encoding="utf-8").partition("\n## Runs\n")[2]
    assert re.findall(r"^- (\d+): ", runs, re.MULTILINE) == re.findall(r"^  (\d+) ", EXIT_CODES, re.MULTILINE)


def test_operators_read_what_goes_with_a_checkpoint() -> None:
    page = (PROJECT / "docs" / "operator.md").read_text(encoding="utf-8")
    ours = re.findall(r"^\| ``\w+_<feed>`` \| (``[\w.]+``) ", stream_checkpoint.__doc__ or "", re.MULTILINE)
    assert len(ours) == 6
    assert re.findall(r"^\| (`[\w.]+`) \| (?:bronze|silver): ", page, re.MULTILINE) == [each[1:-1] for each in ours]


@pytest.mark.parametrize(("column", "contract"), [(1, "floors of the lakehouse"), (2, "floors of the codec library")])
def test_table_of_floors_is_that_of_the_contracts(column: int, contract: str) -> None:
    contracts = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    [layers] = [each["layers"] for each in contracts if each["name"] == contract]
    floors = [re.findall(r"\.(\w+)", layer) for layer in layers if " : " not in layer]
    page = (PROJECT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|.*", page.partition("\n## Floors\n")[2].partition("\n## ")[0], re.MULTILINE)
    cells = [row.split("|")[1 + column] for row in rows[2:]]
    assert [names for cell in cells if (names := re.findall(r"`(\w+)`", cell))] == floors


def test_readme_and_contributing_give_the_minutes_of_the_measured_runs() -> None:
    runs = (PROJECT / "docs" / "benchmarks.md").read_text(encoding="utf-8").partition("\n## make test\n")[2]
    rows = re.findall(r"^\| \d+ November.*? \| [^|]+ \| (.+?) \|", runs.partition("\n## ")[0], re.MULTILINE)
    taken = [int(minutes) + int(seconds) / 60 for cell in rows for minutes, seconds in re.findall(r"(\d+):(\d+)", cell)]
    slow, others = [each for each in taken if each > 20], [each for each in taken if each <= 20]
    said = f"[{round(min(others))} to {round(max(others))} minutes on two cores](docs/benchmarks.md#make-test), "
    for page in ("README.md", "CONTRIBUTING.md"):
        assert f"{said}{round(max(slow))} on a machine half as fast" in (PROJECT / page).read_text(encoding="utf-8")


def literals(module: Path) -> list[str]:
    """The texts of a module; "…" for what is put into one."""
    found = []
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        match node:
            case ast.JoinedStr(values=parts):
                found.append("".join(part.value if isinstance(part, ast.Constant) else "…" for part in parts))
            case ast.Constant(value=str(text)):
                found.append(text)
    return found


ADDING = (PROJECT / "docs" / "protocols" / "adding.md").read_text(encoding="utf-8")
STEP_TWO = ADDING.partition("\n2. ")[2].partition("\n3. ")[0]


def marks(record: object) -> Iterator[str]:
    """The names of a record's fields; in the place of a field that is a record, the names of its fields."""
    assert is_dataclass(record)
    for field in fields(record):
        value = getattr(record, field.name)
        yield from marks(value) if is_dataclass(value) else (field.name,)


def test_marks_that_a_new_protocol_may_set_are_the_fields_of_a_protocol() -> None:
    listed = sorted(re.findall(r"^   - `(\w+)`: ", STEP_TWO, re.MULTILINE))
    for protocol in PROTOCOLS.values():
        assert listed == sorted({*marks(protocol)} - {"decoder", "encode"})


def test_contracts_that_a_new_protocol_extends_name_every_protocol() -> None:
    packages = {f"ticdc_codec.{name}" for name in PROTOCOLS}
    contracts = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    named = {each["name"]: packages.intersection(re.findall(r"[\w.]+", str(each))) for each in contracts}
    extended = re.findall(r'"(.+?)"', STEP_TWO)
    assert {name: found for name, found in named.items() if found} == dict.fromkeys(extended, packages)


def test_modules_that_protocols_import_are_in_the_table_of_what_they_share() -> None:
    table = ADDING.partition("## What they share")[2]
    shared = {name for cell in re.findall(r"^\| (`.+?) \|", table, re.MULTILINE) for name in re.findall(r"\w+", cell)}
    texts = [path.read_text("utf-8") for name in PROTOCOLS for path in (SRC / "ticdc_codec" / name).rglob("*.py")]
    imported = {name for text in texts for name in re.findall(r"^from ticdc_codec\.(\w+)", text, re.MULTILINE)}
    assert imported <= shared | PROTOCOLS.keys()
