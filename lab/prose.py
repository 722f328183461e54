"""Sentences whose numbers come from the data.

A text of lab/expected/ holds references in braces:

    {figure; series; x}            the value there; x may be first, last, min or max (of the values)
    {figure; series; x : %}        in per cent; "+%" less 1, "-%" of what is missing to 1; without: the number
    {A / B : x}, {A - B}           a quotient, a difference of two references
    {verdict: WHERE: agrees}       how many published numbers have this verdict; WHERE is how the
                                   place begins, "of" instead of a verdict counts all

so that no sentence can say what its table does not. A text may also state numbers that were given
(sizes, published values); tests/lab/test_prose.py keeps results out of them.
"""
import re

import plot

REFERENCE = re.compile(r"\{((?:verdict:|[^{};]+;)[^{}]+)\}")


def pick(data, figure, series, x):
    rows = data.get((figure, series))
    if not rows:
        return None
    if x in ("min", "max"):
        return {"min": min, "max": max}[x](row.y for row in rows.values())
    if x in ("first", "last"):
        x = {"first": min, "last": max}[x](rows)
    row = rows.get(float(x))
    return row.y if row else None


def value_of(data, term):
    return pick(data, *(part.strip() for part in term.split(";")))


def evaluate(data, text):
    for sign in (" / ", " - "):
        if sign in text:
            a, b = (value_of(data, term) for term in text.split(sign))
            if a is None or b is None or (sign == " / " and b == 0):
                return None
            return a / b if sign == " / " else a - b
    return value_of(data, text)


def shown(value, form):
    if value is None:
        return "?"
    if form.endswith("%"):
        value = 100 * {"%": value, "+%": value - 1, "-%": 1 - value}[form]
        if value > 99.5 and value < 100:        # 99.99996 must not become 100
            return "100\u00a0%% less %s" % shown(1 - value / 100, "%")
        return "%s\u00a0%%" % plot.number(float("%.2g" % value))
    if form == "x":
        return plot.number(float("%.2g" % value))
    return plot.number(float("%.3g" % value) if abs(value) < 1000 else round(value))


def render(text, data, found=()):
    """The text with its numbers; `found` are the published numbers with their verdicts."""
    def one(match):
        inside = match.group(1)
        if inside.startswith("verdict:"):
            _, where, verdict = (part.strip() for part in inside.rsplit(":", 1)[0].split(":", 1) +
                                 [inside.rsplit(":", 1)[1]])
            return str(sum(v.where.startswith(where) and verdict in ("of", v.verdict) for v in found))
        body, _, form = inside.partition(" : ")
        return shown(evaluate(data, body), form.strip())
    return REFERENCE.sub(one, text)


def texts(expected):
    """All sentences of a paper: (where they stand, the text)."""
    for name in ("about", "claims", "stands", "fails", "instead"):
        if expected.get(name):
            yield name, expected[name]
    for figure in expected["figures"]:
        yield figure["id"], figure["reading"]
    for i, note in enumerate(expected.get("notes", [])):
        yield "note %d" % (i + 1), note
    for group in expected.get("values", []):
        for entry in group.get("known", {}).values():
            yield group["where"], entry
        for entry in group.get("explained", {}).values():
            yield group["where"], entry["reason"]


def missing(text, data):
    """References of a text that have no value."""
    return [inside for inside in REFERENCE.findall(text)
            if not inside.startswith("verdict:") and evaluate(data, inside.partition(" : ")[0]) is None]
