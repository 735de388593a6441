"""Where the page's files lie."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import pytest

from monitor.web import assets


def test_in_a_checkout_the_folders_lie_beside_the_package():
    """An editable install finds them second."""
    assert (assets.folder("static") / "app" / "main.js").is_file()
    assert (assets.folder("templates") / "index.html").is_file()


def test_installed_they_lie_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """And are looked for there first."""
    (tmp_path / "web" / "static").mkdir(parents=True)
    (tmp_path / "static").mkdir()
    monkeypatch.setattr(assets, "__file__", str(tmp_path / "web" / "assets.py"))
    assert assets.folder("static") == tmp_path / "web" / "static"
    assert assets.folder("templates") == tmp_path / "templates"


def test_plotly_is_found_without_being_imported():
    """Importing it takes a second and 50 MB."""
    bundle = assets.plotly()
    assert bundle is not None
    assert bundle.path.stat().st_size > 1_000_000
    assert "plotly" not in sys.modules


def test_the_bundle_is_compressed_once_and_the_old_one_goes(tmp_path: Path):
    """A new version replaces the last one in the state folder."""
    source = tmp_path / "plotly.min.js"
    source.write_text("first" * 1000)
    first = assets.Bundle(source, "1").compressed()
    assert first is not None
    stamp = first.stat().st_mtime_ns
    assert assets.Bundle(source, "1").compressed().stat().st_mtime_ns == stamp
    source.write_text("second" * 1000)
    second = assets.Bundle(source, "2").compressed()
    assert gzip.decompress(second.read_bytes()) == source.read_bytes()
    assert list(first.parent.iterdir()) == [second]


def test_only_the_pages_kinds_of_files_are_given_out():
    """No Python, no hidden file, no folder."""
    files = assets.static_files()
    assert files["app/main.js"] == assets.folder("static") / "app" / "main.js"
    assert {path.suffix for path in files.values()} <= set(assets.TYPES)
    assert files.keys().isdisjoint(
        ("__init__.py", "", ".", "..", "app", "app/main.js/", "../static/app/main.js")
    )
