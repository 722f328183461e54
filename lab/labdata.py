"""What the experiments printed, and what was published: read and compared.

An experiment prints figure,series,kind,x,y,low,high (lab/common.h). lab/expected/PAPER.json holds for
its paper the figures with their texts, and two lists:

  values   numbers as published. {"figure", "where", "series", "points": [[x, value]...]} and
           optionally "formula" (a series to show beside), "abs" and "rel" (what the printed number may
           be off, for its rounding or its own sampling), "reason" (why it cannot be had: then a
           difference is explained, not an error) and "except" ({"x": reason} for single points).
  holds    what must be true of the measurements. {"figure", "measured"} with "formula" (equal within
           six standard errors and "rel", "abs"), "at_most" or "at_least" (a number, or the name of a
           series), "equals" (a number).
"""
import csv
import json
import os
from collections import namedtuple

HERE = os.path.dirname(os.path.abspath(__file__))
PAPERS = [name for name in ("report", "dbf", "sfbf", "pbf", "replica", "beyond")
          if os.path.exists(os.path.join(HERE, "expected", name + ".json"))]
SIGMAS = 6                              # for what must hold: red means a bug
NORMAL95 = 1.96

Row = namedtuple("Row", "kind x y low high")
Value = namedtuple("Value", "figure where series x published formula measured low high verdict why")


def error_of(row):
    """The standard error that the interval stands for."""
    return (row.high - row.low) / 2 / NORMAL95 if row.low is not None else 0.0


def read_csv(text):
    """{(figure, series): {x: Row}}, in the order printed."""
    data = {}
    for line in csv.DictReader(text.splitlines()):
        number = {name: float(line[name]) if line[name] else None
                  for name in ("x", "y", "low", "high")}
        row = Row(line["kind"], number["x"], number["y"], number["low"], number["high"])
        data.setdefault((line["figure"], line["series"]), {})[row.x] = row
    return data


def read_folder(folder, paper):
    data = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".csv") and paper_of(name[:-4]) == paper:
            with open(os.path.join(folder, name)) as f:
                data.update(read_csv(f.read()))
    return data


def paper_of(program):
    return program.split("_")[0]


def source_of(figure):
    """The name under which the experiments print what a figure shows."""
    return figure.get("data", figure["id"])


def read_expected(paper):
    with open(os.path.join(HERE, "expected", paper + ".json")) as f:
        return json.load(f)


def values(data, expected, sigmas=1.0):
    """Each published number beside what was measured, with a verdict."""
    for group in expected.get("values", []):
        rows = data.get((group["figure"], group["series"]))
        formulas = data.get((group["figure"], group.get("formula")), {})
        if rows is None:
            continue
        for x, published in group["points"]:
            row = rows.get(float(x))
            if row is None:
                continue
            formula = formulas.get(float(x))
            reason = group.get("except", {}).get("%g" % x, group.get("reason"))
            slack = group.get("abs", 0) + group.get("rel", 0) * abs(published)
            agrees = abs(row.y - published) <= \
                slack * (1 + 1e-9) + sigmas * NORMAL95 * error_of(row) + 1e-12
            verdict = "agrees" if agrees else "explained" if reason else "differs"
            yield Value(group["figure"], group["where"], group["series"], x, published,
                        formula.y if formula else None, row.y, row.low, row.high, verdict,
                        reason if verdict == "explained" else "")


def bound_of(data, figure, bound, x):
    """A number, or the value of a series at x (None if it has none there)."""
    if isinstance(bound, (int, float)):
        return bound
    row = data.get((figure, bound), {}).get(x)
    return row.y if row else None


def broken(data, expected):
    """(how many claims were looked at, texts of those that do not hold)."""
    looked, wrong = 0, []
    for value in values(data, expected, SIGMAS / NORMAL95):
        looked += 1
        if value.verdict == "differs":
            wrong.append("%s %s at %g: published %g, measured %g" % (
                value.figure, value.series, value.x, value.published, value.measured))
    for claim in expected.get("holds", []):
        figure = claim["figure"]
        for x, row in data.get((figure, claim["measured"]), {}).items():
            if not claim.get("from", x) <= x <= claim.get("to", x):
                continue
            sigma = SIGMAS * error_of(row)
            for kind in ("formula", "equals", "at_most", "at_least"):
                bound = bound_of(data, figure, claim[kind], x) if kind in claim else None
                if bound is None:
                    continue
                looked += 1
                slack = sigma + claim.get("abs", 0) + claim.get("rel", 0) * abs(bound) + 1e-12
                above, below = row.y - bound > slack, bound - row.y > slack
                if (above and kind != "at_least") or (below and kind != "at_most"):
                    wrong.append("%s %s at %g: %g, but %s %g (may be off %g)" % (
                        figure, claim["measured"], x, row.y, kind, bound, slack))
    return looked, wrong


def missing(data, expected):
    """Published series and claims that no experiment printed anything for."""
    wanted = {(v["figure"], v["series"]) for v in expected.get("values", [])} | \
             {(h["figure"], h["measured"]) for h in expected.get("holds", [])}
    return sorted("%s %s" % pair for pair in wanted if pair not in data)
