"""What the doctor says of a machine."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from ticdc_codec.errors import ConfigError
from ticdc_local.broker import free_ports
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


def test_a_feeds_file_is_the_machines_matter_and_its_broker_is_not(tmp_path: Path) -> None:
    feeds = tmp_path / "resources" / "feeds"
    feeds.mkdir(parents=True)
    (tmp_path / "databricks.yml").write_text("bundle: {name: b}\n")
    servers = f"127.0.0.1:{free_ports(1)[0]}"
    kafka = f"kafka: {{bootstrap_servers: '{servers}', topics: [t]}}"
    (feeds / "away.yml").write_text(f"protocol: craft\ntime_zone: UTC\n{kafka}\n")
    (feeds / "odd.yml").write_text("protocol: crafty\n")
    (feeds / "other.yaml").write_text("protocol: craft\n")
    secret = "security: {security.protocol: SASL_SSL, sasl.jaas.config: {secret: no/such}}"
    (feeds / "secret.yml").write_text(f"protocol: craft\ntime_zone: UTC\n{kafka.replace(']}', f'], {secret}}}')}\n")
    options = argparse.Namespace(project=tmp_path, lake=None)
    for hidden in ("._away.yml", "._other.yaml"):  # macOS's, of a copied file
        (feeds / hidden).write_bytes(b"\x00\x05\x16\x07")
    away, odd, other, secret_missing = doctor.examine_feeds(options)
    assert (away.good, away.is_of_machine, odd.good, odd.is_of_machine) == (False, False, False, True)
    assert "brokers do not answer (127.0.0.1:" in away.detail
    assert "odd.yml: protocol: expected one of" in odd.detail
    assert (other.subject, other.good, other.is_of_machine) == ("feed other", False, True)
    assert other.detail == f"{feeds}/other.yaml: expected the ending .yml; rename it to other.yml"
    assert "LAKEHOUSE_SECRET_NO_SUCH" in secret_missing.detail
    assert doctor.text_of([away]).startswith("note  feed away  brokers do not answer")


def test_a_java_home_without_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    [java] = (each for each in doctor.examine(tmp_path) if each.subject == "Java")
    assert not java.good
    assert f"JAVA_HOME is {tmp_path}, which has no bin/java" in java.detail


def test_a_folder_that_is_no_project_is_reported(tmp_path: Path) -> None:
    [found] = doctor.examine_feeds(argparse.Namespace(project=tmp_path, lake=None))
    assert (found.good, found.is_of_machine) == (False, False)
    assert found.detail == f"{tmp_path}: expected a folder with databricks.yml; name it with --project"
