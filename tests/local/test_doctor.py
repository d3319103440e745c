"""What the doctor says of a machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from ticdc_codec.errors import ConfigError
from ticdc_local.cli import doctor


def test_every_subject_is_looked_at_although_one_is_bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_java() -> None:
        raise ConfigError("no Java 17 or 21; found none")

    monkeypatch.setattr(doctor, "find_java", no_java)
    monkeypatch.setattr(doctor, "FREE_BYTES", 1 << 80)
    monkeypatch.setenv("TICDC_LAKE_CACHE", str(tmp_path / "cache"))
    findings = {finding.subject: finding for finding in doctor.examine(tmp_path / "lake" / "not" / "there")}
    assert {subject: finding.good for subject, finding in findings.items()} == {
        "Python": True,
        "Java": False,
        "jars of spark": False,
        "jars of broker": False,
        "disk": False,
        "ports": True,
    }
    assert findings["Java"].detail == "no Java 17 or 21; found none"
    assert "6 of 6 are not in" in findings["jars of spark"].detail
    assert "45 of 46 are not in" in findings["jars of broker"].detail
    assert f"free at {tmp_path}, found" in findings["disk"].detail
    assert list(tmp_path.iterdir()) == []
