#!/usr/bin/python3
"""Builds the page of the lab from what the experiments printed.

    lab/page.py CSV_FOLDER -o REPORT.html

First a Bloom filter to play with, then one section a paper: what it claims, what holds, what does not
and what tamis does instead, then figures, tables, and every published number beside formula and
measurement with its verdict. All numbers on the page come from the CSV files, from lab/expected/ (what
was published) or from counting those; style, script and pictures are inside the one file.
"""
import argparse
import html
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import labdata  # noqa: E402
import plot     # noqa: E402
import prose    # noqa: E402
import stamp    # noqa: E402

COLORS = 9                              # of page.css
CELLS = 32                              # of the filter to play with


def text_of(name):
    with open(os.path.join(labdata.HERE, name)) as f:
        return f.read()


def esc(text):
    return html.escape(str(text), quote=True)


def typeset(text):
    """Formulas in a sentence: powers raised, indices lowered, names in italics."""
    text = esc(text)
    text = re.sub(r"\^(\{([^}]*)\}|\(([^)]*)\)|[\w.]+)",
                  lambda m: "<sup>%s</sup>" % (m.group(2) or m.group(3) or m.group(1)), text)
    text = re.sub(r"\b([a-zA-Z])_([a-z]+)\b", r"<i>\1</i><sub>\2</sub>", text)
    text = re.sub(r"\b(n|P|f)([0-9])\b(?=\W)", r"<i>\1</i><sub>\2</sub>", text)
    text = re.sub(r"([λδ])([0-9])", r"\1<sub>\2</sub>", text)
    text = re.sub(r"\bf([+−-])(?=[\s,.;)]|$)", r"<i>f</i><sup>\1</sup>", text)
    return re.sub(r"\b(log|ln)2\b", r"\1<sub>2</sub>", text)


class Paper:
    def __init__(self, name, folder):
        self.name, self.expected = name, labdata.read_expected(name)
        self.data = labdata.read_folder(folder, name)
        self.found = list(labdata.values(self.data, self.expected))

    def say(self, text):
        return typeset(prose.render(text, self.data, self.found))


def heading(level, anchor, text):
    return '<h%d id="%s">%s<a class="anchor" href="#%s" aria-label="Link to: %s">#</a></h%d>' % (
        level, anchor, typeset(text), anchor, esc(text), level)


# ---- figures ---------------------------------------------------------------------------------------

def curves_of(figure, paper):
    """[(Curve...)] a legend entry: the measured curve, its formula (dashed) and published points."""
    entries, source = [], labdata.source_of(figure)
    for place, wanted in enumerate(figure["curves"]):
        color, curves = wanted.get("color", place) % COLORS, []
        for series in (wanted["series"], wanted.get("formula")):
            rows = paper.data.get((source, series))
            if rows:
                rows = list(rows.values())
                curves.append(plot.Curve(wanted["label"], rows[0].kind, rows, color))
        points = [labdata.Row("published", float(x), y, 0, 0, 0, 0)
                  for group in paper.expected.get("values", []) for x, y in group["points"]
                  if (group["figure"], group.get("series")) == (source, wanted["series"])]
        if points and curves:
            curves.append(plot.Curve(wanted["label"], "published", points, color))
        if curves:
            entries.append(curves)
    return entries


def figure_id(paper, figure):
    return "fig-%s-%s" % (paper, "".join(c if c.isalnum() else "-" for c in figure["id"]))


def figure_html(paper, figure):
    entries = curves_of(figure, paper)
    if not entries:
        return ""
    return '<p class="as">%s</p><figure id="%s" data-figure="%s"><div class="plot">%s%s</div>%s' \
           "<figcaption>%s</figcaption></figure>" % (
               typeset(figure["published_as"]), figure_id(paper.name, figure), esc(figure["id"]),
               plot.draw(figure, entries, False), plot.draw(figure, entries, True),
               plot.legend(entries), paper.say(figure["reading"]))


def panels_html(paper, figures):
    """Small multiples: near-equal plots side by side under one legend and one scale."""
    drawn = [(figure, curves_of(figure, paper)) for figure in figures]
    drawn = [(figure, entries) for figure, entries in drawn if entries]
    if not drawn:
        return ""
    spans = plot.spans([entries for _, entries in drawn])
    out = ['<p class="as">%s</p><figure class="panels" data-figure="%s"><div class="grid">' % (
        typeset("; ".join(dict.fromkeys(f["published_as"] for f in figures))), esc(figures[0]["group"]))]
    for figure, entries in drawn:
        out.append('<div class="panel" id="%s"><h4>%s</h4><div class="plot">%s</div></div>' % (
            figure_id(paper.name, figure), typeset(figure["panel"]),
            plot.draw(figure, entries, True, spans)))
    out.append("</div>%s<figcaption>%s</figcaption></figure>" % (
        plot.legend(max((entries for _, entries in drawn), key=len)),
        " ".join(paper.say(figure["reading"]) for figure in figures)))
    return "".join(out)


# ---- tables ----------------------------------------------------------------------------------------

def table_html(caption, heads, rows, words=()):
    """heads: names of the columns; rows: lists of (shown, sort value, class)."""
    out = ['<div class="scroll" tabindex="0"><table class="sortable"><caption>%s</caption><thead><tr>' %
           typeset(caption)]
    for i, head in enumerate(heads):
        out.append('<th scope="col"%s><button type="button">%s</button></th>' % (
            ' class="w"' if i in words else "", typeset(head)))
    out.append("</tr></thead><tbody>")
    for row in rows:
        out.append("<tr>")
        for i, (shown, value, kind) in enumerate(row):
            classes = " ".join(filter(None, ["w" if i in words else "", kind]))
            out.append("<td%s%s>%s</td>" % (
                ' class="%s"' % classes if classes else "",
                ' data-v="%s"' % esc(value) if value is not None else "", shown))
        out.append("</tr>")
    return "".join(out) + "</tbody></table></div>"


def cell(value, interval=""):
    return (plot.number(value) + interval, "%r" % value if value is not None else "", "")


def within(row):
    """The 99.9 % interval of a measurement, as " ± half of it"."""
    low, high = labdata.interval(row)
    return " ± " + plot.number((high - low) / 2) if high > low else ""


def data_table(spec, data):
    columns = [data.get((spec["figure"], series), {}) for series, _ in spec["columns"]]
    places = sorted({x for column in columns for x in column})
    if not places:
        return ""
    names = spec.get("names", {})
    rows = []
    for x in places:
        first = (typeset(names["%g" % x]), x, "") if "%g" % x in names else cell(x)
        shown = within if spec.get("interval") else lambda row: ""
        rows.append([first] + [cell(column[x].y, shown(column[x])) if x in column else cell(None)
                               for column in columns])
    return table_html(spec["title"], [spec["x"]] + [head for _, head in spec["columns"]], rows,
                      (0,) if names else ())


def values_html(paper, names):
    rows = []
    for v in paper.found:
        interval = " ± " + plot.number((v.high - v.low) / 2) if v.low is not None and v.high > v.low else ""
        measured = plot.number(v.measured) + interval if v.measured is not None else ""
        rows.append([(typeset(v.where), v.where, ""),
                     (typeset(names.get((v.figure, "%g" % v.x), plot.number(v.x))), "%r" % v.x, ""),
                     cell(v.published), cell(v.formula),
                     (measured, "%r" % v.measured if measured else "", ""),
                     (v.verdict, v.verdict, kind_of(v.verdict)), (paper.say(v.why), v.why, "soft")])
    return table_html("Published, computed, measured (99.9 % interval)",
                      ["where", "at", "published", "computed", "measured", "verdict", "why"], rows, (0, 6))


def count(found):
    return {verdict: sum(v.verdict == verdict for v in found) for verdict in labdata.VERDICTS}


def kind_of(verdict):
    return verdict.split()[-1]          # a class of page.css


def count_text(counts):
    words = {"agrees": "agree", "bound holds": "bounds hold", "explained": "explained", "differs": "differ"}
    return ", ".join('<span class="%s">%d %s</span>' % (kind_of(v), counts[v], words[v])
                     for v in labdata.VERDICTS if counts[v])


# ---- the page --------------------------------------------------------------------------------------

# The sentences of a paper's summary, by their names in its JSON, with their headings.
SUMMARY = (("claims", "What it claims"), ("stands", "What holds"), ("fails", "What does not"),
           ("instead", "What tamis does instead"))


def summary_html(paper):
    rows = "".join("<dt>%s</dt><dd>%s</dd>" % (title, paper.say(paper.expected[name]))
                   for name, title in SUMMARY if paper.expected.get(name))
    return '<dl class="summary">%s</dl>' % rows if rows else ""


def grouped(figures):
    """Runs of figures that are panels of one."""
    runs = []
    for figure in figures:
        if runs and figure.get("group") and runs[-1][0].get("group") == figure["group"]:
            runs[-1].append(figure)
        elif figure.get("group") and any(run[0].get("group") == figure["group"] for run in runs):
            next(run for run in runs if run[0].get("group") == figure["group"]).append(figure)
        else:
            runs.append([figure])
    return runs


def section_html(paper):
    expected, tables = paper.expected, paper.expected.get("tables", [])
    out = ['<section aria-labelledby="%s">' % paper.name, heading(2, paper.name, expected["title"])]
    if expected.get("cite"):
        out.append('<p class="cite">%s</p>' % esc(expected["cite"]))
    out += ["<p>%s</p>" % paper.say(expected["about"]), summary_html(paper)]
    for figures in grouped(expected["figures"]):
        figure = figures[0]
        out.append(heading(3, "%s-%s" % (paper.name, figure_id("", figure)[5:]),
                           figure.get("group_title", figure["title"])))
        if len(figures) > 1:
            out.append(panels_html(paper, figures))
        elif "curves" in figure:
            out.append(figure_html(paper, figure))
        else:
            out.append('<p class="as">%s</p><p id="%s">%s</p>' % (
                typeset(figure["published_as"]), figure_id(paper.name, figure), paper.say(figure["reading"])))
        out += [data_table(t, paper.data) for f in figures for t in tables if t["figure"] == f["id"]]
    if expected.get("notes"):
        out.append('%s<ul class="notes">%s</ul>' % (
            heading(3, paper.name + "-notes", "What to know"),
            "".join("<li>%s</li>" % paper.say(note) for note in expected["notes"])))
    if paper.found:
        names = {(t["figure"], x): name for t in tables for x, name in t.get("names", {}).items()}
        out.append('<details id="%s-values"><summary>All %d published numbers: %s</summary>%s</details>' % (
            paper.name, len(paper.found), count_text(count(paper.found)), values_html(paper, names)))
    return "".join(out) + "</section>"


def playground():
    """A filter of 32 bits and three hashes; page.js makes it work."""
    cells = "".join('<span class="cell" data-b="%d"></span>' % i for i in range(CELLS))
    return """
<div class="play" id="play">
<form><label for="word">A word</label> <input id="word" value="apple" maxlength="24" autocomplete="off">
<button type="submit" value="add">Add it</button> <button type="submit" value="ask">Ask for it</button>
<button type="button" id="empty">Empty</button></form>
<div class="cells" aria-hidden="true">%s</div>
<p id="answer" aria-live="polite">Each word switches on three of these %d bits.</p>
<p id="state" class="soft">Nothing added yet.</p>
<noscript><p class="soft">With scripts switched on, this filter can be played with.</p></noscript>
</div>""" % (cells, CELLS)


def first_screen(papers):
    total = {v: sum(count(paper.found)[v] for paper in papers) for v in labdata.VERDICTS}
    figures = sum(len(paper.expected["figures"]) for paper in papers)
    tiles = [("", figures, "figures and tables, run again"),
             ("agrees", total["agrees"], "published numbers agree within 99.9 %"),
             ("holds", total["bound holds"], "published bounds hold"),
             ("explained", total["explained"], "come out once a slip is repeated"),
             ("differs", total["differs"], "differ")]
    works = "".join('<li><a href="#%s">%s</a><span class="soft">%s</span></li>' % (
        paper.name, esc(paper.expected["title"]),
        count_text(count(paper.found)) if paper.found else "measured on this library")
        for paper in papers)
    return """
<h1>Could this be here?</h1>
<p class="lead">A <b>Bloom filter</b> remembers which things it has seen in a few bits each. A thing
switches on a few bits of a row; to ask, one looks at the same bits. If one of them is off, the thing was
never there: that “no” is certain. If all are on, the answer is “maybe”, and now and then it is wrong,
because other things switched those bits on. Try it:</p>
%s
<p>How often “maybe” is wrong, how many bits that takes, and what happens when the set grows, shrinks or
is copied to other machines: five works studied it. <b>tamis</b> builds what they describe; this page
runs their experiments again with it and shows what they printed, what the formulas say and what was
measured.</p>
<ul class="tiles">%s</ul>
<ul class="works">%s</ul>""" % (playground(), "".join(
        '<li><b class="%s">%d</b>%s</li>' % (kind, n, what) for kind, n, what in tiles), works)


def contents(papers):
    items = []
    for paper in papers:
        inner = "".join('<li><a href="#%s-%s">%s</a></li>' % (
            paper.name, figure_id("", figures[0])[5:],
            typeset(figures[0].get("group_title", figures[0]["title"])))
            for figures in grouped(paper.expected["figures"]))
        items.append('<li><a href="#%s">%s</a><ul>%s</ul></li>' % (
            paper.name, esc(paper.expected["title"]), inner))
    return '<nav id="contents" aria-label="Contents"><details open><summary>Contents</summary>' \
           "<ul>%s</ul></details></nav>" % "".join(items)


def notes_of(folder):
    """What lab/run noted of each experiment."""
    try:
        with open(os.path.join(folder, "run.json")) as f:
            return json.load(f)
    except OSError:
        return {}


def sources_of(folder):
    """The stamp of the page, if all that is on it comes from the sources as they are now."""
    current = all(run.get("sources") == stamp.of_program(name) for name, run in notes_of(folder).items())
    return stamp.of_page() if current else "before"


def foot(folder):
    notes = notes_of(folder)
    runs = notes.values()
    if not runs:
        return ""
    sizes = "; ".join("“%s”%s" % (size, "" if len({run["size"] for run in runs}) == 1 else " of " + ", ".join(
        name for name in notes if notes[name]["size"] == size)) for size in sorted({run["size"] for run in runs}))

    def all_of(name):
        return esc(", ".join(sorted({run[name] for run in runs})))
    return """
<footer><p>Run on %s at commit <code>%s</code>, size %s, seed %s, on %s. Repeat it with
<code>make lab</code>%s. Dots are measured, with bars for the 99.9 %% interval where it is wider than the
dot; dashed lines are formulas; rings are published values. A published number “agrees” when it lies
within the 99.9 %% interval of the measurement, its own sampling error and rounding included; it is
“explained” when a slip of the paper, repeated here, gives it and the measurement agrees with the
corrected form; otherwise it “differs”.</p></footer>""" % (
        all_of("date"), all_of("commit"), esc(sizes), all_of("seed"),
        all_of("machine"), "" if all_of("size") == "full" else
        " (<code>make lab LAB=full</code> for the papers' own sizes)")


def build(folder):
    papers = [Paper(name, folder) for name in labdata.PAPERS]
    return """<!DOCTYPE html>
<html lang="en" data-sources="%s"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>tamis: the experiments of five works, run again</title>
<link rel="icon" href="data:,">
<style>%s</style></head><body>%s<main>%s%s</main>%s<script>%s</script></body></html>
""" % (sources_of(folder), text_of("page.css"), contents(papers), first_screen(papers),
       "".join(section_html(paper) for paper in papers), foot(folder), text_of("page.js"))


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
