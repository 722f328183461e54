"""Every experiment of the lab in its small form, against what was published and what must hold."""
import math
import os
import re
import subprocess
import sys

import pytest

ROOT = os.environ.get("TAMIS_ROOT") or os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "lab"))
import check    # noqa: E402
import labdata  # noqa: E402
import page     # noqa: E402
import stamp    # noqa: E402

SIZE = "normal" if os.environ.get("TAMIS_LONG") else "small"
SEED = os.environ.get("TAMIS_SEED") or 1
SAVED = os.path.join(ROOT, "build/lab/tested")
PAPERS = {}


@pytest.mark.parametrize("program", check.programs())
def test_small(program):
    os.makedirs(SAVED, exist_ok=True)       # for the test of the page
    data = check.run(program, SIZE, int(SEED) % (1 << 32), os.path.join(SAVED, program + ".csv"))
    paper = labdata.paper_of(program)
    looked, wrong = labdata.broken(data, labdata.read_expected(paper))
    assert looked > 0, "nothing that %s prints is checked" % program
    assert not wrong, "\n".join(wrong)
    PAPERS.setdefault(paper, {}).update(data)


@pytest.mark.parametrize("paper", labdata.PAPERS)
def test_nothing_is_missing(paper):
    """Each published series is printed by some experiment, and each figure has a curve or a table."""
    expected, data = labdata.read_expected(paper), PAPERS.get(paper, {})
    assert labdata.missing(data, expected) == []
    for figure in expected["figures"]:
        tables = [t for t in expected.get("tables", []) if t["figure"] == figure["id"]]
        wanted = [c["series"] for c in figure.get("curves", [])] + \
                 [series for t in tables for series, _ in t["columns"]]
        assert wanted, "%s shows nothing" % figure["id"]
        source = labdata.source_of(figure)
        assert [s for s in wanted if (source, s) not in data and (figure["id"], s) not in data] == []


def test_verdicts():
    """The comparison itself: it must be able to say no."""
    text = "figure,series,kind,x,y,error,spread,runs,asked\n" \
           "f,s,measured,1,0.5,0.01,0.1,100,0\nf,t,formula,1,0.6,,,,\nf,u,formula,1,0.505,,,,\n"
    data = labdata.read_csv(text)

    def verdict(**group):
        spec = dict({"figure": "f", "where": "w", "series": "s", "unit": 0, "points": [[1, 0.6]]}, **group)
        return [v.verdict for v in labdata.values(data, {"values": [spec]})]

    def wrong(**claim):
        return len(labdata.broken(data, {"holds": [dict({"figure": "f", "measured": "s"},
                                                        **claim)]})[1])
    assert verdict() == ["differs"]
    assert verdict(known={"1": "seen"}) == ["differs"]
    assert verdict(unit=0.2) == ["agrees"] and verdict(runs=4) == ["agrees"] and verdict(runs=100) == ["differs"]
    assert verdict(points=[[1, 0.515]]) == ["agrees"]
    assert verdict(points=[[2, 0.5]]) == []
    assert verdict(bound="at_most") == ["bound holds"] and verdict(bound="at_least") == ["differs"]
    slip = {"1": {"reason": "r", "as": "t", "corrected": "u"}}
    assert verdict(explained=slip) == ["explained"]
    assert verdict(explained=slip, points=[[1, 0.7]]) == ["differs"]
    assert verdict(explained={"1": dict(slip["1"], corrected="t")}) == ["differs"]
    assert wrong(formula="t") == 1 and wrong(formula="t", rel=0.1) == 0
    assert wrong(at_most=0.4) == 1 and wrong(at_most=0.6) == 0 and wrong(at_least=0.6) == 1
    assert wrong(equals=0.4) == 1 and wrong(equals=0.5) == 0


def test_page_is_whole(tmp_path):
    """A page of no data at all still builds; its text stays inside one file."""
    text = page.build(str(tmp_path))
    assert "<title>tamis" in text and "http:" not in text and "https:" not in text


def run_lab(tmp_path, *options, **env):
    """lab/run of one experiment, on a machine that has no git."""
    done = subprocess.run([os.path.join(ROOT, "lab/run"), "--folder", str(tmp_path / "csv"), "-o",
                           str(tmp_path / "page.html"), *options, "beyond_delta"],
                          env=dict({"LAB": "small", "PATH": str(tmp_path)}, **env), capture_output=True, text=True)
    assert "beyond_delta" in done.stdout and done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_runs_without_git(tmp_path):
    """From a tarball: the page is made and says so."""
    run_lab(tmp_path)
    assert "commit <code>unknown</code>" in (tmp_path / "page.html").read_text()


def test_a_run_goes_on(tmp_path):
    """What was run with the same sources, size and seed is kept; anything else is run again."""
    assert "kept" not in run_lab(tmp_path)
    assert "kept" in run_lab(tmp_path)
    assert "kept" not in run_lab(tmp_path, "--again")
    assert "kept" not in run_lab(tmp_path, LAB_SEED="7")
    notes = tmp_path / "csv/run.json"
    notes.write_text(notes.read_text().replace('"sources": "', '"sources": "other'))
    assert "kept" not in run_lab(tmp_path, LAB_SEED="7")
    assert "kept" in run_lab(tmp_path, LAB_SEED="7")
    (tmp_path / "csv/beyond_delta.csv").unlink()
    assert "kept" not in run_lab(tmp_path, LAB_SEED="7")


def test_stamps(monkeypatch, tmp_path):
    """The stamp of an experiment follows its own source, what it shares and the library, not the others'."""
    for path in ("src/a.c", "include/a.h", "lab/common.c", "lab/one.c", "lab/one_more.c", "lab/page.css"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("1")
    monkeypatch.setattr(stamp, "ROOT", str(tmp_path))
    for path, moves in (("src/a.c", True), ("include/a.h", True), ("lab/common.c", True), ("lab/one.c", True),
                        ("lab/one_more.c", False), ("lab/page.css", False)):
        before, page_before = stamp.of_program("one"), stamp.of_page()
        (tmp_path / path).write_text("2")
        assert (stamp.of_program("one") != before) == moves, path
        assert stamp.of_page() != page_before


def test_a_page_of_older_results_says_so(tmp_path):
    """Results of an experiment that has changed since do not carry the stamp of the present sources."""
    run_lab(tmp_path)
    current = 'data-sources="%s"' % stamp.of_page()
    assert current in (tmp_path / "page.html").read_text()
    notes = tmp_path / "csv/run.json"
    notes.write_text(notes.read_text().replace('"sources": "', '"sources": "other'))
    assert current not in page.build(str(tmp_path / "csv"))


def test_committed_page_is_of_these_sources():
    """Says when the lab or the library changed since docs/lab/index.html was made."""
    with open(os.path.join(ROOT, "docs/lab/index.html")) as f:
        made = f.read(500)
    if 'data-sources="%s"' % stamp.of_page() not in made:
        pytest.skip("docs/lab/index.html was made from other sources: make lab-page")


# Machado, Oliveira, Fernandes 2009: how linear colours look without the red or the green cones.
BLIND = {"full sight": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
         "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                    [-0.003882, -0.048116, 1.051998]],
         "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                      [-0.011820, 0.042940, 0.968881]]}


def lab_color(code, matrix):
    """CIE L*a*b* of a colour of the style sheet as an eye with this matrix sees it."""
    linear = [int(code[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in linear]
    seen = [min(max(sum(m * c for m, c in zip(row, linear)), 0), 1) for row in matrix]
    xyz = [sum(m * c for m, c in zip(row, seen)) / white for row, white in (
        ((0.4124, 0.3576, 0.1805), 0.9505), ((0.2126, 0.7152, 0.0722), 1), ((0.0193, 0.1192, 0.9505), 1.089))]
    f = [v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz]
    return 116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])


@pytest.mark.parametrize("eye", BLIND)
def test_colors_can_be_told_apart(eye):
    """The first six colours, which have six different markers too, in both themes; and colours beyond
    those from the ones whose marker they share."""
    themes = page.text_of("page.css").split("@media screen and (prefers-color-scheme: dark)")
    for theme in themes:
        found = dict(re.findall(r"--(c\d): (#[0-9a-f]{6});", theme))
        colors = [lab_color(found["c%d" % i], BLIND[eye]) for i in range(9)]
        for i in range(9):
            for j in range(i):
                if (i < 6 and j < 6) or (i - j) % 6 == 0:
                    assert math.dist(colors[i], colors[j]) > 12, (eye, i, j)
