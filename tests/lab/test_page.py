"""The page of the lab in headless Chromium: the one built from a small run, and the committed one."""
import json
import os
import shutil
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.environ.get("TAMIS_ROOT") or os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(ROOT, "lab"))
import browser  # noqa: E402
import labdata  # noqa: E402
import page     # noqa: E402
import small as small_run  # noqa: E402

SHOTS = os.path.join(ROOT, "build/lab/shots")
COMMITTED = os.path.join(ROOT, "docs/lab/index.html")
PROGRAM = browser.find()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no chromium: apt-get install chromium")

WIDER = """[...document.querySelectorAll("body *")].filter(e => {
    if (e.closest(".scroll") || e.closest("svg")) return false;
    const box = e.getBoundingClientRect();
    return box.width > 0 && (box.right > innerWidth + 1 || box.left < -1);
  }).map(e => e.tagName + "." + e.className).slice(0, 5)"""


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A page of a small run."""
    folder = tmp_path_factory.mktemp("lab")
    for name in os.listdir(small_run.folder()):
        if name.endswith(".csv"):
            shutil.copy(os.path.join(small_run.folder(), name), folder)
    with open(folder / "run.json", "w") as f:
        json.dump({"report": {"date": "2000-01-01", "commit": "0123456789ab", "size": "small",
                              "seed": "1", "seconds": 1, "machine": "a machine"}}, f)
    path = folder / "report.html"
    path.write_text(page.build(str(folder)))
    return str(path)


@pytest.fixture(scope="module")
def chromium():
    started = browser.Browser(PROGRAM)
    yield started
    started.close()


def pages(small):
    return [small] + ([COMMITTED] if os.path.exists(COMMITTED) else [])


@pytest.mark.parametrize("width,height", [(360, 740), (1440, 900)])
@pytest.mark.parametrize("dark", [False, True])
def test_fits(chromium, small, width, height, dark):
    os.makedirs(SHOTS, exist_ok=True)
    for path in pages(small):
        chromium.show(path, width, height, dark)
        assert chromium.ask("document.documentElement.scrollWidth") <= width
        assert chromium.ask(WIDER) == []
        back = chromium.ask("getComputedStyle(document.body).backgroundColor")
        assert (back == "rgb(20, 24, 28)") == dark
        name = "committed" if path == COMMITTED else "small"
        chromium.screenshot(os.path.join(SHOTS, "%s-%d-%s.png" % (
            name, width, "dark" if dark else "light")), whole=False)
    assert chromium.complaints() == []


def test_every_figure_is_there(chromium, small):
    for path in pages(small):
        for width in (360, 1440):
            chromium.show(path, width, 900, False)
            for paper in labdata.PAPERS:
                for figure in labdata.read_expected(paper)["figures"]:
                    where = "#" + page.figure_id(paper, figure)
                    assert chromium.ask("!!document.querySelector('#%s %s')" % (paper, where)), where
                    if "curves" not in figure:
                        continue
                    shown = chromium.ask("""[...document.querySelectorAll('#%s %s > svg')]
                        .map(s => s.getBoundingClientRect().width).filter(w => w > 0)""" % (
                        paper, where))
                    assert len(shown) == 1 and shown[0] > 0.8 * min(width, 860) - 40, where
                    points = chromium.ask("document.querySelectorAll('#%s %s > svg .p').length" % (
                        paper, where))
                    assert points >= 4, where
                    outside = chromium.ask("""[...document.querySelectorAll('#%s %s > svg')].filter(
                        s => s.getBoundingClientRect().width > 0).flatMap(s =>
                        [...s.querySelectorAll('text')].filter(t => {
                            const a = t.getBoundingClientRect(), b = s.getBoundingClientRect();
                            return a.left < b.left - 1 || a.right > b.right + 1;
                        }).map(t => t.textContent))""" % (paper, where))
                    assert outside == [], where
    assert chromium.complaints() == []


def test_hover_hide_sort(chromium, small):
    chromium.show(small, 1440, 900, False)
    read = chromium.ask("""(() => {
        const figure = document.querySelector("figure[data-figure]");
        const point = figure.querySelector("svg.wide .p").getBoundingClientRect();
        figure.querySelector("svg.wide").dispatchEvent(new PointerEvent("pointermove",
            {clientX: point.x + point.width / 2, clientY: point.y + point.height / 2}));
        return figure.querySelector(".readout").textContent;
      })()""")
    assert ": " in read and " at " in read
    hidden = chromium.ask("""(() => {
        const figure = document.querySelector("figure[data-figure]");
        figure.querySelector(".legend button").click();
        return [...figure.querySelectorAll('svg g[data-s="0"]')]
            .map(g => getComputedStyle(g).display);
      })()""")
    assert hidden == ["none", "none"]
    column = """[...table.tBodies[0].rows].map(r => parseFloat(r.cells[0].dataset.v))"""
    down, up = chromium.ask("""(() => {
        const table = document.querySelector("table.sortable");
        const button = table.tHead.rows[0].cells[0].querySelector("button");
        button.click(); const up = %s; button.click(); return [%s, up];
      })()""" % (column, column))
    assert len(up) > 3 and up == sorted(up) and down == up[::-1]


def test_print(chromium, small):
    """On paper: black on white whatever the colours of the screen, nothing cut off."""
    chromium.show(small, 794, 1123, True, media="print")
    assert chromium.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert chromium.ask("getComputedStyle(document.querySelector('nav')).display") == "none"
    made = chromium.call("Page.printToPDF")
    assert len(made["data"]) > 10000
