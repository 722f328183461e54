#!/usr/bin/python3
"""Builds the page of the lab from what the experiments printed.

    lab/page.py CSV_FOLDER -o REPORT.html

One section a paper: figures, tables, and every published number beside formula and measurement with a
verdict. All numbers on the page come from the CSV files, from lab/expected/ (what was published) or
from counting those; style, script and pictures are inside the one file.
"""
import argparse
import html
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import labdata  # noqa: E402
import plot     # noqa: E402

COLORS = 9                              # of page.css


def text_of(name):
    with open(os.path.join(labdata.HERE, name)) as f:
        return f.read()


def esc(text):
    return html.escape(str(text), quote=True)


# ---- figures ---------------------------------------------------------------------------------------

def curves_of(figure, data, expected):
    """The curves to draw, published points last in the colour of what they belong to."""
    curves, rings, source = [], [], labdata.source_of(figure)
    for color, wanted in enumerate(figure["curves"]):
        rows = data.get((source, wanted["series"]))
        if not rows:
            continue
        rows = list(rows.values())
        color = wanted.get("color", color) % COLORS
        curves.append(plot.Curve(wanted["label"], rows[0].kind, rows, color))
        points = [labdata.Row("published", float(x), y, 0, 0, 0, 0)
                  for group in expected.get("values", []) for x, y in group["points"]
                  if (group["figure"], group.get("series")) == (source, wanted["series"])]
        if points:
            rings.append(plot.Curve("published: " + wanted["label"], "published", points, color))
    return curves + rings


def figure_id(paper, figure):
    return "fig-%s-%s" % (paper, "".join(c if c.isalnum() else "-" for c in figure["id"]))


def figure_html(paper, figure, data, expected):
    curves = curves_of(figure, data, expected)
    if not curves:
        return ""
    return """
<h3>%s</h3>
<p class="as">%s</p>
<figure id="%s" data-figure="%s">
%s
%s
%s
<div class="readout" aria-live="polite"></div>
<figcaption>%s</figcaption>
</figure>""" % (esc(figure["title"]), esc(figure["published_as"]), figure_id(paper, figure), esc(figure["id"]),
                plot.draw(figure, curves, False), plot.draw(figure, curves, True),
                plot.legend(curves), esc(figure["reading"]))


# ---- tables ----------------------------------------------------------------------------------------

def table_html(caption, heads, rows, words=()):
    """heads: names of the columns; rows: lists of (shown, sort value, class)."""
    out = ['<div class="scroll"><table class="sortable"><caption>%s</caption><thead><tr>' %
           esc(caption)]
    for i, head in enumerate(heads):
        out.append('<th scope="col"%s><button type="button">%s</button></th>' % (
            ' class="w"' if i in words else "", esc(head)))
    out.append("</tr></thead><tbody>")
    for row in rows:
        out.append("<tr>")
        for i, (shown, value, kind) in enumerate(row):
            classes = " ".join(filter(None, ["w" if i in words else "", kind]))
            out.append("<td%s%s>%s</td>" % (
                ' class="%s"' % classes if classes else "",
                ' data-v="%s"' % esc(value) if value is not None else "", esc(shown)))
        out.append("</tr>")
    return "".join(out) + "</tbody></table></div>"


def cell(value):
    return (plot.number(value), "%r" % value if value is not None else "", "")


def data_table(spec, data):
    columns = [data.get((spec["figure"], series), {}) for series, _ in spec["columns"]]
    places = sorted({x for column in columns for x in column})
    if not places:
        return ""
    names = spec.get("names", {})
    rows = []
    for x in places:
        first = (names["%g" % x], x, "") if "%g" % x in names else cell(x)
        rows.append([first] + [cell(column[x].y if x in column else None) for column in columns])
    return table_html(spec["title"], [spec["x"]] + [head for _, head in spec["columns"]], rows,
                      (0,) if names else ())


def values_html(found, names):
    rows = []
    for v in found:
        interval = " ± " + plot.number((v.high - v.low) / 2) if v.low is not None and v.high > v.low else ""
        measured = plot.number(v.measured) + interval if v.measured is not None else ""
        rows.append([(v.where, v.where, ""),
                     (names.get((v.figure, "%g" % v.x), plot.number(v.x)), "%r" % v.x, ""),
                     cell(v.published), cell(v.formula),
                     (measured, "%r" % v.measured if measured else "", ""),
                     (v.verdict, v.verdict, kind_of(v.verdict)), (v.why, v.why, "soft")])
    return table_html("Published, computed, measured (99.9 % interval)",
                      ["where", "at", "published", "computed", "measured", "verdict", "why"], rows,
                      (0, 6))


def count(found):
    return {verdict: sum(v.verdict == verdict for v in found) for verdict in labdata.VERDICTS}


def count_text(counts):
    words = {"agrees": "agree", "bound holds": "bounds hold", "explained": "explained",
             "differs": "differ"}
    return ", ".join('<span class="%s">%d %s</span>' % (kind_of(v), counts[v], words[v])
                     for v in labdata.VERDICTS if counts[v])


def kind_of(verdict):
    return verdict.split()[-1]          # a class of page.css


# ---- the page --------------------------------------------------------------------------------------

def section_html(paper, expected, data, found):
    out = ['<section id="%s"><h2>%s</h2>' % (paper, esc(expected["title"]))]
    if expected.get("cite"):
        out.append('<p class="cite">%s</p>' % esc(expected["cite"]))
    out.append("<p>%s</p>" % esc(expected["about"]))
    tables = expected.get("tables", [])
    for figure in expected["figures"]:
        out.append(figure_html(paper, figure, data, expected) if "curves" in figure else
                   '<h3>%s</h3><p class="as">%s</p><p id="%s">%s</p>' % (
                       esc(figure["title"]), esc(figure["published_as"]), figure_id(paper, figure),
                       esc(figure["reading"])))
        out += [data_table(t, data) for t in tables if t["figure"] == figure["id"]]
    if expected.get("notes"):
        out.append('<h3>What to know</h3><ul class="notes">%s</ul>' % "".join(
            "<li>%s</li>" % esc(note) for note in expected["notes"]))
    if found:
        names = {(t["figure"], x): name for t in tables for x, name in t.get("names", {}).items()}
        out.append("<details><summary>All %d published numbers: %s</summary>%s</details>" % (
            len(found), count_text(count(found)), values_html(found, names)))
    return "".join(out) + "</section>"


PICTURE = [1, 4, 6, 9, 13, 15, 18, 20]         # the bits that are set in the drawing of the first screen


def picture():
    """Three keys asked: one stored, one refused by a bit that is not set, one wrong "maybe"."""
    cells = "".join('<rect class="cell%s" x="%d" y="92" width="22" height="22"/>' % (
        " on" if i in PICTURE else "", 20 + 26 * i) for i in range(23))
    asked = [("“apple”, stored", "maybe", "hit", 110, (1, 6, 13)),
             ("“pear”, not stored", "no, for sure", "miss", 320, (9, 11, 18)),
             ("“plum”, not stored", "maybe (wrong)", "hit", 530, (4, 15, 20))]
    out = []
    for text, answer, kind, x, bits in asked:
        out.append('<text text-anchor="middle" x="%d" y="20">%s</text>' % (x, text))
        out.append("".join('<line class="%s" x1="%d" y1="28" x2="%d" y2="90"/>' % (
            kind if b in PICTURE else "miss", x, 31 + 26 * b) for b in bits))
        out.append('<text text-anchor="middle" x="%d" y="138">%s</text>' % (x, answer))
    return ('<svg class="picture" viewBox="0 0 640 146" width="100%%" role="img" aria-label="A row of '
            'bits; each key looks at three of them">%s%s</svg>' % ("".join(out), cells))


def first_screen(papers):
    total = {v: sum(count(found)[v] for _, _, _, found in papers) for v in labdata.VERDICTS}
    figures = sum(len(expected["figures"]) for _, expected, _, _ in papers)
    tiles = [("", figures, "figures and tables, run again"),
             ("agrees", total["agrees"], "published numbers agree within 99.9 %"),
             ("holds", total["bound holds"], "published bounds hold"),
             ("explained", total["explained"], "come out once a slip is repeated"),
             ("differs", total["differs"], "differ")]
    links = "".join('<a href="#%s">%s</a>' % (paper, esc(expected["title"]))
                    for paper, expected, _, _ in papers)
    return """
<h1>Could this be here?</h1>
<p class="lead">A program often needs to know whether it has seen something before: a web address, a
file, a user. A <b>Bloom filter</b> answers from a few bits a thing instead of keeping the things. Each
thing switches on a few bits in a row of bits; to ask, one looks at the same bits. If one of them is off,
the thing was never there: that “no” is certain. If all are on, the answer is “maybe”, and now and then
it is wrong, because other things switched those bits on.</p>
%s
<p>How often “maybe” is wrong, how many bits that takes, and what happens when the set grows, shrinks or
is copied to other machines: five works studied it. <b>tamis</b> builds what they describe; this page
runs their experiments again with it and shows what they printed, what the formulas say and what was
measured.</p>
<ul class="tiles">%s</ul>
<nav aria-label="Sections">%s</nav>""" % (picture(), "".join(
        '<li><b class="%s">%d</b>%s</li>' % (kind, n, what) for kind, n, what in tiles), links)


def foot(folder):
    try:
        with open(os.path.join(folder, "run.json")) as f:
            runs = json.load(f).values()
    except OSError:
        return ""

    def all_of(name):
        return esc(", ".join(sorted({run[name] for run in runs})))
    seconds = sum(run["seconds"] for run in runs)
    return """
<footer><p>Run on %s at commit <code>%s</code>, size “%s”, seed %s, in %d seconds on %s. Repeat it with
<code>make lab</code>%s. Dots are measured, with bars for the 99.9 %% interval where it is wider than the
dot; dashed lines are formulas; rings are published values. A published number “agrees” when it lies within
the 99.9 %% interval of the measurement, its own sampling error and rounding included; it is “explained”
when a slip of the paper, repeated here, gives it and the measurement agrees with the corrected form;
otherwise it “differs”.</p></footer>""" % (
        all_of("date"), all_of("commit"), all_of("size"), all_of("seed"), seconds,
        all_of("machine"), "" if all_of("size") == "full" else
        " (<code>make lab LAB=full</code> for the papers' own sizes)")


def build(folder):
    papers = []
    for paper in labdata.PAPERS:
        if not os.path.exists(os.path.join(labdata.HERE, "expected", paper + ".json")):
            continue
        expected, data = labdata.read_expected(paper), labdata.read_folder(folder, paper)
        papers.append((paper, expected, data, list(labdata.values(data, expected))))
    sections = "".join(section_html(*paper) for paper in papers)
    return """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>tamis: the experiments of five works, run again</title>
<link rel="icon" href="data:,">
<style>%s</style></head><body><main>%s%s</main>%s<script>%s</script></body></html>
""" % (text_of("page.css"), first_screen(papers), sections, foot(folder), text_of("page.js"))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("-o", dest="output", required=True)
    options = parser.parse_args()
    page = build(options.folder)
    with open(options.output, "w") as f:
        f.write(page)


if __name__ == "__main__":
    main()
