"""The verdicts themselves: what is wrong must be called different, whatever was written about it."""
import math
import os
import random
import sys

import pytest

ROOT = os.environ.get("TAMIS_ROOT") or os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "lab"))
sys.path.insert(0, os.path.join(ROOT, "tests/lab"))
import labdata  # noqa: E402
import small    # noqa: E402

PAPERS = [paper for paper in labdata.PAPERS if labdata.read_expected(paper).get("values")]


@pytest.fixture(scope="module")
def data():
    folder = small.folder()
    return {paper: labdata.read_folder(folder, paper) for paper in labdata.PAPERS}


def test_student():
    """Two-sided quantiles of Student's t as tables print them."""
    for runs, value in ((2, 636.62), (3, 31.599), (4, 12.924), (12, 4.437), (31, 3.646), (1001, 3.300)):
        assert abs(labdata.quantile(1e-3, runs) - value) < 2e-4 * value
    assert abs(labdata.quantile(0.05, 0) - 1.95996) < 1e-4


def test_wilson():
    """As published for 1 of 10 and 95 %; and nothing found in a thousand is not nothing."""
    low, high = labdata.wilson(0.1, 10, 0.05)
    assert abs(low - 0.0179) < 1e-4 and abs(high - 0.4042) < 1e-4
    low, high = labdata.wilson(0, 1000, 1e-3)
    assert abs(low) < 1e-12 and 0.01 < high < 0.011


def test_intervals_cover():
    """Of means of few normal values, 99.9 % intervals miss one in a thousand."""
    draw = random.Random(7)
    missed = 0
    for _ in range(20000):
        values = [draw.gauss(5, 2) for _ in range(6)]
        mean = sum(values) / 6
        spread = math.sqrt(sum((v - mean) ** 2 for v in values) / 5)
        low, high = labdata.interval(labdata.Row("measured", 0, mean, spread / math.sqrt(6), spread, 6, 0))
        missed += not low <= 5 <= high
    assert 5 <= missed <= 40


def planted(group, x, value):
    return dict(group, points=[[p, value if p == x else y] for p, y in group["points"]])


def judged(data, expected, group, x):
    changed = dict(expected, values=[group if g["where"] == group["where"] else g
                                     for g in expected["values"]])
    return next(v for v in labdata.values(data, changed) if v.where == group["where"] and v.x == x)


def wrong_value(draw, group, row, value):
    """Off by a half to three times, or by twice what can be told apart in a run as small as the
    tests': the papers' runs and ours together, and the rounding."""
    middle = row.y if row else value
    sigma = math.hypot(row.error, row.spread / math.sqrt(group.get("runs", 1e9))) if row else 0
    told = 2 * (labdata.quantile(1e-3, row.runs if row else 0) * sigma + group["unit"] / 2)
    if row and row.asked:
        told = max(told, 4 * (labdata.wilson(row.y, min(row.asked, group.get("asked", 1e9)), 1e-3)[1] - row.y))
    off = max(told, abs(middle) * draw.uniform(0.5, 2), 2 * group["unit"]) or 1
    up = draw.random() < 0.5
    if "bound" in group:
        up = group["bound"] == "at_least"
    return middle + off if up else middle - off


@pytest.mark.parametrize("paper", PAPERS)
def test_wrong_published_values_differ(paper, data):
    """Each published number in turn is replaced by a wrong one."""
    expected, draw, seen = labdata.read_expected(paper), random.Random(20), 0
    for group in expected["values"]:
        rows = data[paper].get((group["figure"], group.get("series")), {})
        for x, value in group["points"]:
            row = rows.get(float(x))
            if row is None and "computed" not in group:
                continue
            for _ in range(5):
                wrong = planted(group, x, wrong_value(draw, group, row, value))
                got = judged(data[paper], expected, wrong, x)
                assert got.verdict == "differs", (group["where"], x, got)
                seen += 1
    assert seen >= 5 * len(expected["values"])


@pytest.mark.parametrize("paper", PAPERS)
def test_wrong_measurements_differ(paper, data):
    """Each measurement in turn is replaced by a wrong one, its error kept."""
    expected, draw, seen = labdata.read_expected(paper), random.Random(21), 0
    for group in expected["values"]:
        rows = data[paper].get((group["figure"], group.get("series")), {})
        for x, published in group["points"]:
            row = rows.get(float(x))
            if row is None:
                continue
            for _ in range(5):
                off = wrong_value(draw, group, row._replace(y=published), published)
                if "bound" in group:
                    off = 2 * published - off       # beyond the bound
                changed = {**data[paper], (group["figure"], group["series"]): {
                    **rows, float(x): row._replace(y=off)}}
                got = judged(changed, expected, group, x)
                assert got.verdict == "differs", (group["where"], x, off, got)
                seen += 1
    assert seen > 0 or not any("series" in g for g in expected["values"])


FACTORS = {"formula": (5, 0.2), "at_most": (5,), "at_least": (0.2,), "equals": (5, 0.2)}


def moved(claim, kind, factor, data, rows):
    """Measurements five times what a claim says or a fifth of it, shares at most 1; the error is kept.
    (Small runs hold few rare events: 50 % more may be chance there, five times as many may not.)"""
    out = {}
    for x, row in rows.items():
        bound = labdata.bound_of(data, claim["figure"], claim[kind], x)
        if bound is not None:
            y = bound * factor if bound else 0.05 if factor > 1 else -0.05
            out[x] = row._replace(y=min(y, 1) if row.asked else y)
    return out


@pytest.mark.parametrize("paper", labdata.PAPERS)
def test_no_tolerance_meets_any_outcome(paper, data):
    """Each claim breaks when all its measurements are wrong, one way or the other."""
    met = []
    for claim in labdata.read_expected(paper).get("holds", []):
        key = (claim["figure"], claim["measured"])
        rows = data[paper].get(key, {})
        for kind in FACTORS:
            if kind in claim and not any(labdata.broken_claims(
                    {**data[paper], key: moved(claim, kind, factor, data[paper], rows)},
                    {"holds": [claim]})[1] for factor in FACTORS[kind]):
                met.append((claim, kind))
    assert not met, "\n".join("%s %s" % pair for pair in met)


@pytest.mark.parametrize("paper", labdata.PAPERS)
def test_what_is_written_about_a_number(paper):
    """Every published number says how it is rounded; nothing widens its interval; an explanation can be
    checked; no entry is for a point that is not there."""
    fields = {"figure", "where", "series", "points", "unit", "runs", "asked", "formula", "bound", "computed",
              "explained", "known"}
    for group in labdata.read_expected(paper).get("values", []):
        assert set(group) <= fields, group
        assert group["unit"] >= 0 and ("series" in group) != ("computed" in group), group
        for name in ("explained", "known"):
            for place, entry in group.get(name, {}).items():
                assert place == "each" or float(place) in [p for p, _ in group["points"]], group["where"]
                if name == "explained" and "computed" in group:
                    assert {"from", "plus", "cut"} & set(entry) and entry["reason"], entry
                elif name == "explained":
                    assert place != "each" and {"reason", "as", "corrected"} <= set(entry), entry
                    assert entry.get("rel", 0) <= 0.002
