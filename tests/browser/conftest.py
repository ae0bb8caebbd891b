"""A real browser for tests of pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

INSTALL = "apt-get install chromium (Debian), or any chromium or google-chrome on PATH; pip install playwright"


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium. Without it the tests are skipped, or fail where GCAPS_REQUIRE_BROWSER=1."""
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next((found for name in names if (found := shutil.which(name))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sync_playwright = None
    if program is None or sync_playwright is None:
        missing = "a browser" if program is None else "playwright"
        give_up = pytest.fail if os.environ.get("GCAPS_REQUIRE_BROWSER") == "1" else pytest.skip
        give_up(f"needs {missing}: {INSTALL}")
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=program, args=["--no-sandbox"] if root else [])
        yield running
        running.close()
