"""Pictures of the page of `gcaps serve`, in Chromium: desktop, dark, phone.

    python docs/pictures/make_serve.py MODEL

MODEL is a calibrated model of molecules; the pictures in the documentation show one of BACE (`--method ecfp`).
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

FOLDER = Path(__file__).parent
TEXT = """Cc1ccccc1-c1ccc2nc(N)c(CC(C)C(=O)NCC3CCCCO3)cc2c1 quinoline
NC1=NC(c2ccc(OC(F)(F)F)cc2)(c2cccc(-c3cccnc3F)c2)C(=O)N1C aminohydantoin
CC(=O)Oc1ccccc1C(=O)O aspirin
CN1C=NC2=C1C(=O)N(C(=O)N2C)C caffeine
CC(C)Cc1ccc(cc1)C(C)C(=O)O ibuprofen
c1ccccc no molecule"""
PICTURES = {
    "serve": {"viewport": {"width": 1100, "height": 1180}},
    "serve-dark": {"viewport": {"width": 1100, "height": 1180}, "color_scheme": "dark"},
    "serve-phone": {"viewport": {"width": 390, "height": 1500}},
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Pictures of the page of gcaps serve.")
    parser.add_argument("model")
    model = parser.parse_args().model
    command = [sys.executable, "-m", "gcaps", "serve", model, "--port", "0", "--workers", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server, sync_playwright() as driver:
        assert server.stderr is not None
        address = next(found[1] for line in server.stderr if (found := re.search(r"at (http://\S+?);", line)))
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, options in PICTURES.items():
            page = browser.new_page(**options)
            page.goto(address)
            page.fill("#text", TEXT)
            page.press("#text", "Control+Enter")
            page.wait_for_selector("#explanation svg")
            page.evaluate("document.activeElement.blur()")
            image = Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("RGB")
            image.quantize(256, Image.Quantize.MAXCOVERAGE).save(FOLDER / f"{name}.png", optimize=True)
        browser.close()
        server.terminate()


if __name__ == "__main__":
    main()
