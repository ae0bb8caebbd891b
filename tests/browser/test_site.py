"""The documentation builds without a warning, and the site works offline from disk, its search too."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / "mkdocs.yml").is_file(), reason="this copy has no docs"),
    pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="needs pip install 'gcaps[docs]'"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    return folder


def test_search_works_offline_and_nothing_is_fetched(site, browser):
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    fetched, errors = [], []
    page.on("request", lambda request: fetched.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((site / "index.html").as_uri())
    page.click(".md-search__input")
    page.keyboard.type("covariance")
    page.wait_for_selector(".md-search-result__item a")
    assert "covariance" in page.inner_text(".md-search-result__list").lower()
    page.close()
    assert errors == []
    assert [url for url in fetched if not url.startswith(("file:", "data:", "blob:"))] == []


def test_formulas_are_drawn(site, browser):
    page = browser.new_page()
    page.goto((site / "reference" / "nn.html").as_uri())
    boxes = [formula.bounding_box() for formula in page.query_selector_all("svg.formula")]
    page.close()
    assert len(boxes) >= 3
    assert all(box is not None and box["width"] > 5 and box["height"] > 5 for box in boxes)
