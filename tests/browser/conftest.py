"""A real browser, if this machine has one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

HOW = "apt-get install chromium (Debian), or any chromium or google-chrome on PATH; pip install playwright"


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, headless; the tests are skipped where there is none."""
    program = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    if program is None:
        pytest.skip(f"needs a browser: {HOW}")
    playwright = pytest.importorskip("playwright.sync_api", reason=f"needs playwright: {HOW}")
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=program, args=["--no-sandbox"] if root else [])
        yield running
        running.close()
