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


@pytest.mark.parametrize("width,height", [(390, 844), (1440, 900)])
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


SHOWN = """[...document.querySelectorAll('#%s .plot > svg, #%s.plot > svg')].filter(
           s => s.getBoundingClientRect().width > 0)"""


def test_every_figure_is_there(chromium, small):
    for width in (390, 1440):
        chromium.show(small, width, 900, False)
        for paper in labdata.PAPERS:
            for figure in labdata.read_expected(paper)["figures"]:
                where = page.figure_id(paper, figure)
                assert chromium.ask("!!document.getElementById('%s')" % where), where
                if "curves" not in figure:
                    continue
                widths = chromium.ask(SHOWN % (where, where) + ".map(s => s.getBoundingClientRect().width)")
                least = 280 if figure.get("group") else 0.8 * min(width, 860) - 40
                assert len(widths) == 1 and widths[0] > least, where
                assert chromium.ask(SHOWN % (where, where) +
                                    "[0].querySelectorAll('.p').length") >= 4, where
    assert chromium.complaints() == []


# Text of a plot that leaves the plot, and pairs of texts of one plot whose boxes overlap.
LABELS = """[...document.querySelectorAll('.plot > svg')].filter(s => s.getBoundingClientRect().width > 0)
  .flatMap(s => {
    const frame = s.getBoundingClientRect(), found = [];
    const texts = [...s.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
    texts.forEach(([text, a], i) => {
      if (a.left < frame.left - 1 || a.right > frame.right + 1) found.push(text + " leaves");
      texts.slice(i + 1).forEach(([other, b]) => {
        if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
            Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2) found.push(text + " over " + other);
      });
    });
    return found.map(text => s.getAttribute('aria-label').slice(0, 40) + ": " + text);
  })"""


@pytest.mark.parametrize("width", [390, 1440])
def test_labels_do_not_overlap(chromium, small, width):
    for path in pages(small):
        chromium.show(path, width, 900, False)
        assert chromium.ask("document.querySelectorAll('.plot > svg text').length") > 100
        assert chromium.ask(LABELS) == []


# Every element with text of its own: colour against the nearest ground that is not transparent.
CONTRAST = """(() => {
  const rgb = text => text.match(/[\\d.]+/g).map(Number);
  const light = c => { const [r, g, b] = c.map(v => { v /= 255;
      return v <= 0.03928 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4); });
      return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = e => { for (; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
  const seen = new Set();
  document.querySelectorAll("body *").forEach(e => {
    if (!e.getClientRects().length || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) return;
    const style = getComputedStyle(e), color = rgb(e instanceof SVGElement ? style.fill : style.color);
    const a = light(color.slice(0, 3)), b = light(ground(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    let opacity = 1;
    for (let p = e; p; p = p.parentElement) opacity *= +getComputedStyle(p).opacity;
    if (ratio < 4.5 || opacity < 1) seen.add(`${e.tagName}.${e.getAttribute("class")}: ${ratio.toFixed(2)}`);
  });
  return [...seen];
})()"""


@pytest.mark.parametrize("dark", [False, True])
def test_contrast(chromium, small, dark):
    """No text below 4.5:1, with everything opened, a curve hidden and the filter in use."""
    for path in pages(small):
        chromium.show(path, 1440, 900, dark)
        chromium.ask("""(() => {
            document.querySelectorAll("details").forEach(d => { d.open = true; });
            document.querySelector(".legend button").click();
            document.querySelector("#play button[value=add]").click();
          })()""")
        assert chromium.ask(CONTRAST) == []


def test_keyboard(chromium, small):
    """Tab comes to every control, to each plot and each table, shows where it is, and Enter works it."""
    chromium.show(small, 1440, 900, False)
    missed = chromium.ask("""[...document.querySelectorAll(
        "a[href], button, input, summary, .plot > svg, .scroll")].filter(e =>
        e.getClientRects().length && (e.tabIndex < 0 || e.closest("[inert]"))).map(e => e.outerHTML.slice(0, 80))""")
    assert missed == []

    def press(key, code):
        for kind in ("rawKeyDown", "keyUp") if key != "Enter" else ("keyDown", "keyUp"):
            more = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            chromium.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                          **more)
    chromium.ask("document.getElementById('word').focus()")
    press("Tab", 9)
    assert chromium.ask("document.activeElement.value") == "add"
    assert chromium.ask("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    press("Enter", 13)
    assert "switched on bits" in chromium.ask("document.getElementById('answer').textContent")
    chromium.ask("document.querySelector('.plot > svg').focus()")
    press("ArrowRight", 39)
    assert " at " in chromium.ask("document.querySelector('.plot .tip').textContent")


def test_filter_to_play_with(chromium, small):
    """It is on the first screen, never denies a word that was added, and errs as it says."""
    chromium.show(small, 390, 844, False)
    assert chromium.ask("document.getElementById('play').getBoundingClientRect().top") < 844 - 120
    said = chromium.ask("""(() => {
        const word = document.getElementById("word"), answer = document.getElementById("answer");
        const press = (text, what) => { word.value = text;
            document.querySelector(`#play button[value=${what}]`).click(); return answer.textContent; };
        const members = ["apple", "pear", "plum", "fig", "kiwi"];
        const first = press("apple", "ask");
        members.forEach(text => press(text, "add"));
        const denied = members.filter(text => !press(text, "ask").includes("maybe")).length;
        let wrong = 0;
        for (let i = 0; i < 2000; i++) wrong += press("word " + i, "ask").includes("wrong") ? 1 : 0;
        return [first, denied, wrong / 2000, document.getElementById("state").textContent];
      })()""")
    first, denied, wrong, state = said
    assert "no, for sure" in first and denied == 0
    stated = float(state.split("= ")[1].split(" ")[0]) / 100
    assert abs(wrong - stated) < 6 * (stated * (1 - stated) / 2000) ** 0.5 + 0.0005


def test_contents_and_anchors(chromium, small):
    """The contents stay in view, and every heading can be linked to."""
    for width in (390, 1440):
        chromium.show(small, width, 900, False)
        chromium.ask("window.scrollTo(0, document.body.scrollHeight / 2)")
        box = chromium.ask("""(() => { const b = document.querySelector("#contents summary")
            .getBoundingClientRect(); return [b.top, b.bottom]; })()""")
        assert 0 <= box[0] < 60, width
    assert chromium.ask("""[...document.querySelectorAll("h2, h3")].filter(h =>
        !h.id || h.querySelector("a.anchor").getAttribute("href") !== "#" + h.id).length""") == 0
    assert chromium.ask("""[...document.querySelectorAll("a[href^='#']")].filter(a =>
        !document.getElementById(a.getAttribute("href").slice(1))).map(a => a.href)""") == []
    assert chromium.ask("""(() => { const ids = [...document.querySelectorAll("[id]")].map(e => e.id);
        return ids.length - new Set(ids).size; })()""") == 0


def test_hover_hide_sort(chromium, small):
    chromium.show(small, 1440, 900, False)
    read, marked = chromium.ask("""(() => {
        const plot = [...document.querySelectorAll(".plot")].find(p => p.querySelector("svg.wide"));
        plot.scrollIntoView();
        const point = plot.querySelector("svg.wide .p").getBoundingClientRect();
        plot.querySelector("svg.wide").dispatchEvent(new PointerEvent("pointermove",
            {clientX: point.x + point.width / 2, clientY: point.y + point.height / 2}));
        const tip = plot.querySelector(".tip").getBoundingClientRect();
        const near = Math.abs(tip.y - point.y) < 80;
        return [plot.querySelector(".tip").textContent, near && plot.querySelectorAll(".p.at").length];
      })()""")
    assert ": " in read and " at " in read and marked == 1
    hidden = chromium.ask("""(() => {
        const figure = document.querySelector("figure[data-figure]");
        figure.querySelector(".legend button").click();
        return [...figure.querySelectorAll('.plot > svg g[data-s="0"]')]
            .map(g => getComputedStyle(g).display);
      })()""")
    assert hidden and set(hidden) == {"none"}
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
