"""axe-core finds nothing in any page, light, dark and 390 pixels wide: in Chromium, so it is slow and needs what is not of Python.

npm install --prefix DIRECTORY axe-core puppeteer-core
KFORENSICS_AXE=DIRECTORY CHROMIUM=/usr/bin/chromium pytest -m slow tests/render/formats/test_axe.py
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.render.formats.test_structure import PAGES, SHAPES_WITH_PAGES, page_of_shape

SCRIPT = Path(__file__).parents[1] / "axe.mjs"


@pytest.mark.slow
@pytest.mark.process
def test_axe_finds_nothing(tmp_path):
    modules, node = os.environ.get("KFORENSICS_AXE"), shutil.which("node")
    if modules is None or node is None:
        pytest.skip("KFORENSICS_AXE names no directory with axe-core and puppeteer-core, or there is no node")
    files = []
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    pages = {name: make() for name, make in PAGES.items()}
    pages |= {shape.replace(" ", "-"): page_of_shape(shape, scratch) for shape in SHAPES_WITH_PAGES}
    for name, page in pages.items():
        files.append(tmp_path / f"{name}.html")
        files[-1].write_text(page, encoding="utf-8")

    done = subprocess.run([node, SCRIPT, *files], cwd=modules, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("0 violations, 0 requests, 0 pixels too wide") == 3 * len(files)
