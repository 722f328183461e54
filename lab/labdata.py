"""What the experiments printed, and what was published: read, compared, judged.

An experiment prints figure,series,kind,x,y,error,spread,runs,asked (lab/common.h). lab/expected/PAPER.json
holds for its paper the figures with their texts, and three lists:

  values   numbers as published: {"figure", "where", "series", "unit", "points": [[x, value]...]}.
           "unit" is one step of the last printed digit. Optionally "runs" (how many runs the printed
           number is the mean of, so that its own sampling error is known), "asked" (questions of a
           printed share), "formula" (a series to show beside), "bound" ("at_most" or "at_least": the
           number is a bound), "computed" (from other printed numbers; see COMPUTED), "explained" and
           "known" ({"x": ...}, below).
  inputs   printed numbers that only serve to compute others: {"where", "unit", "points"}.
  holds    what must be true of the measurements. {"figure", "measured"} with "formula" (equal within
           six standard errors and "rel", "abs"), "at_most" or "at_least" (a number, or the name of a
           series), "equals" (a number).

The verdict on a published number is computed, and any number can fail:

  agrees       within the 99.9 % interval of the measurement, where the interval holds our sampling
               error, the paper's own and the rounding of the printed digits, and nothing else;
  bound holds  a published bound that the measurement does not contradict at 99.9 %;
  explained    {"reason", "as", "corrected"}: the series "as" repeats the paper's slip and gives the
               printed number, and the measurement agrees with the series "corrected". Both are checked.
               Of a number computed from printed ones: {"reason"} with "from" (other readings of these),
               "plus" (a series to add) or "cut" (digits were cut off, not rounded);
  differs      all else. "known" is a remark for the reader: it changes no verdict, it only tells the
               tests that the difference has been seen.
"""
import csv
import json
import math
import os
from collections import namedtuple
from statistics import NormalDist

HERE = os.path.dirname(os.path.abspath(__file__))
PAPERS = [name for name in ("report", "dbf", "sfbf", "pbf", "replica", "beyond")
          if os.path.exists(os.path.join(HERE, "expected", name + ".json"))]
VERDICTS = ["agrees", "bound holds", "explained", "differs"]
CHANCE = 1e-3                           # outside the interval of a verdict
ALARM = 2e-9                            # six standard errors, for the tests: red means a bug

Row = namedtuple("Row", "kind x y error spread runs asked")
Value = namedtuple("Value", "figure where series x published formula measured low high verdict why")


# ---- intervals -------------------------------------------------------------------------------------

def quantile(chance, runs):
    """Student's t for the error of `runs` repetitions, two-sided (Hill, Algorithm 396); the normal
    distribution's where the error was not taken from repetitions, and for the tests' alarm, since so far
    out Student's tails for a handful of runs would let anything pass."""
    if runs < 2 or chance <= ALARM:
        return NormalDist().inv_cdf(1 - chance / 2)
    n = runs - 1
    if n == 1:
        return 1 / math.tan(chance * math.pi / 2)
    if n == 2:
        return math.sqrt(2 / (chance * (2 - chance)) - 2)
    a = 1 / (n - 0.5)
    b = 48 / (a * a)
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * n
    x = d * chance
    y = x ** (2 / n)
    if y > 0.05 + a:
        x = NormalDist().inv_cdf(chance / 2)
        y = x * x
        if n < 5:
            c += 0.3 * (n - 4.5) * (x + 0.6)
        c = (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b + c
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
        y = math.expm1(a * y * y)
    else:
        y = ((1 / (((n + 6) / (n * y) - 0.089 * d - 0.822) * (n + 2) * 3) + 0.5 / (n + 4)) * y -
             1) * (n + 1) / (n + 2) + 1 / y
    return math.sqrt(n * y)


def wilson(share, asked, chance):
    """Interval of a share of questions; it has a width where nothing was found, too."""
    z, share = quantile(chance, 0), min(max(share, 0), 1)
    middle = (share + z * z / (2 * asked)) / (1 + z * z / asked)
    half = z / (1 + z * z / asked) * math.sqrt(
        share * (1 - share) / asked + z * z / (4 * asked * asked))
    return middle - half, middle + half


def interval(row, chance=CHANCE, runs=None, asked=None):
    """Where the true value lies, or with the paper's `runs` and `asked`: where its number should. Of a
    share the answers vary at least as much as independent ones, so the wider of both is right."""
    if row.kind == "formula":
        return row.y, row.y
    sigma = math.hypot(row.error, row.spread / math.sqrt(runs) if runs else 0)
    half = quantile(chance, row.runs) * sigma if sigma else 0
    low, high = row.y - half, row.y + half
    if row.asked:
        below, above = wilson(row.y, min(row.asked, asked or row.asked), chance)
        low, high = min(low, below), max(high, above)
    return low, high


# ---- reading ---------------------------------------------------------------------------------------

def read_csv(text):
    """{(figure, series): {x: Row}}, in the order printed."""
    data = {}
    for line in csv.DictReader(text.splitlines()):
        row = Row(line["kind"], *(float(line[name] or 0) for name in Row._fields[1:]))
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


# ---- numbers that follow from other printed numbers ------------------------------------------------

def stale_copy(k, n, delta0, delta1, m=1200):
    """The replica paper's (12): false positives of a stale copy, in per cent."""
    ones = 1 - math.exp(-k * n / m)
    return 100 * (ones + delta0 - delta1) ** k


def five_hosts(k, n, delta0, delta1, m=1200, hosts=5):
    """Its (16): a lookup over a host's own filter and four copies fails, in per cent."""
    ones = 1 - math.exp(-k * n / m)
    clear_plus = (1 - ones ** k) * (1 - (ones + delta0 - delta1) ** k) ** (hosts - 1)
    clear_minus = (1 - (ones ** k - (ones - delta1) ** k)) ** (hosts - 1)
    return 100 * (1 - clear_plus * clear_minus)


COMPUTED = {"(12)": stale_copy, "(16)": five_hosts, "quotient": lambda a, b: a / b}


def computed(spec, x, groups):
    """Lowest and highest result of the formula over what the printed digits may stand for."""
    given = list(spec.get("given", {}).get("%g" % x, []))
    ends = [[value] for value in given]
    for where, place in spec["from"]:
        group = next(g for g in groups if g["where"] == where)
        value, half = dict(group["points"])[x if place is None else place], group["unit"] / 2
        ends.append([value - half, value + half])
    corners = [[]]
    for choices in ends:
        corners = [corner + [choice] for corner in corners for choice in choices]
    results = [COMPUTED[spec["by"]](*corner) for corner in corners]
    return min(results), max(results)


# ---- verdicts --------------------------------------------------------------------------------------

def inside(value, low, high, unit):
    """Within the interval, given that a printed value may stand for half a unit more or less."""
    half = unit / 2 * (1 + 1e-6) + 1e-9 * abs(value)
    return low - half <= value <= high + half


def explains(entry, data, group, x, row, published, groups, chance):
    """A slip that is repeated must give the printed number, and what is right the measured one."""
    figure, unit = group["figure"], group["unit"]
    if "computed" in group:
        low, high = computed(dict(group["computed"], **entry), x, groups)
        if "cut" in entry:              # digits cut off, not rounded
            return inside(published + unit / 2, low, high, unit)
        more = data.get((figure, entry.get("plus")), {}).get(float(x))
        below, above = interval(more, chance, runs=1) if more else (0, 0)
        return inside(published, low + below, high + above, unit)
    slip = data.get((figure, entry["as"]), {}).get(row.x)
    right = data.get((figure, entry["corrected"]), {}).get(row.x)
    return slip is not None and right is not None and \
        inside(published, *interval(slip, chance, group.get("runs"), group.get("asked")), unit) and \
        inside(right.y, *interval(row, chance), entry.get("rel", 0) * abs(right.y))


def judge(group, x, published, row, data, groups, chance):
    """(verdict, why) of one published number."""
    entry, remark = at(group, "explained", x), at(group, "known", x) or ""
    if "bound" in group:
        low, high = interval(row, chance)
        holds = low <= published if group["bound"] == "at_most" else high >= published
        return ("bound holds", "") if holds else ("differs", remark)
    if "computed" in group:
        low, high = computed(group["computed"], x, groups)
    else:
        low, high = interval(row, chance, group.get("runs"), group.get("asked"))
    if inside(published, low, high, group["unit"]):
        return "agrees", ""
    if entry and explains(entry, data, group, x, row, published, groups, chance):
        return "explained", entry["reason"]
    return "differs", remark


def at(group, name, x):
    """The entry for this very point, or one whose check is made anew at each of them."""
    entries = group.get(name, {})
    return entries.get("%g" % x, entries.get("each"))


def values(data, expected, chance=CHANCE):
    """Each published number beside what was measured, with a verdict."""
    groups = expected.get("values", []) + expected.get("inputs", [])
    printed = {figure for figure, _ in data}
    for group in expected.get("values", []):
        rows = data.get((group["figure"], group.get("series")), {})
        formulas = data.get((group["figure"], group.get("formula")), {})
        for x, published in group["points"]:
            row, formula = rows.get(float(x)), formulas.get(float(x))
            if row is None and ("computed" not in group or group["figure"] not in printed):
                continue
            verdict, why = judge(group, x, published, row, data, groups, chance)
            shown = formula.y if formula else None
            if "computed" in group:
                shown = sum(computed(group["computed"], x, groups)) / 2
            elif row.kind == "formula":
                shown, row = row.y, None
            low, high = interval(row) if row else (None, None)
            yield Value(group["figure"], group["where"], group.get("series"), x, published, shown,
                        row.y if row else None, low, high, verdict, why)


def bound_of(data, figure, bound, x):
    """A number, or the value of a series at x (None if it has none there)."""
    if isinstance(bound, (int, float)):
        return bound
    row = data.get((figure, bound), {}).get(x)
    return row.y if row else None


def broken_claims(data, expected):
    """(how many claims were looked at, texts of those that do not hold)."""
    looked, wrong = 0, []
    for claim in expected.get("holds", []):
        figure = claim["figure"]
        for x, row in data.get((figure, claim["measured"]), {}).items():
            if not claim.get("from", x) <= x <= claim.get("to", x):
                continue
            low, high = interval(row, ALARM)
            for kind in ("formula", "equals", "at_most", "at_least"):
                bound = bound_of(data, figure, claim[kind], x) if kind in claim else None
                if bound is None:
                    continue
                looked += 1
                slack = claim.get("abs", 0) + claim.get("rel", 0) * abs(bound) + 1e-12
                above, below = low - bound > slack, bound - high > slack
                if (above and kind != "at_least") or (below and kind != "at_most"):
                    wrong.append("%s %s at %g: %g in %g..%g, but %s %g" % (
                        figure, claim["measured"], x, row.y, low, high, kind, bound))
    return looked, wrong


def broken(data, expected):
    """(how many claims were looked at, texts of those that do not hold). A published number that
    differs is one of them, unless that difference is known."""
    looked, wrong = broken_claims(data, expected)
    known = {(group["where"], x) for group in expected.get("values", [])
             for x, _ in group["points"] if at(group, "known", x)}
    for value in values(data, expected, ALARM):
        looked += 1
        if value.verdict == "differs" and (value.where, value.x) not in known:
            wrong.append("%s %s at %g: published %g, measured %s" % (
                value.figure, value.where, value.x, value.published, value.measured))
    return looked, wrong


def missing(data, expected):
    """Published series and claims that no experiment printed anything for."""
    wanted = {(v["figure"], v["series"]) for v in expected.get("values", []) if "series" in v} | \
             {(h["figure"], h["measured"]) for h in expected.get("holds", [])}
    return sorted("%s %s" % pair for pair in wanted if pair not in data)
