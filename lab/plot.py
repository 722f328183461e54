"""Plots as SVG text: lines with markers, axes with units, in the colours of the page (page.css).

A plot is drawn twice, wide and narrow, so that its letters can be read on a phone; the style sheet
shows the one that fits. Measured series have markers and bars for their 99.9 % interval, formulas are
dashed, published points are rings; the curves of one legend entry share its colour and marker.
"""
import html
import math
import re

import labdata

SHAPES = ["circle", "square", "diamond", "triangle", "cross", "down"]
POINTS_MAX = 60                         # of one line


def number(value):
    """For people: four digits, thousands apart, powers of ten below 0.001."""
    if value is None:
        return ""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e4 and value == int(value):
        return "{:,}".format(int(value)).replace(",", "\u202f")
    if size >= 1e7 or size < 1e-3:
        power = math.floor(math.log10(size))
        return "%s·10%s" % (("%.3f" % (value / 10 ** power)).rstrip("0").rstrip("."), raised(power))
    if size >= 1e4:
        return "{:,.0f}".format(value).replace(",", "\u202f")
    return ("%.4g" % value)


def raised(power):
    return "".join("⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".index(c)] for c in str(power))


def tick_text(value, log):
    if log:
        power = round(math.log10(value))
        if abs(value / 10 ** power - 1) < 1e-6:
            return "10" + raised(power)
    if abs(value) >= 1e6:
        return "%g M" % (value / 1e6)
    if abs(value) >= 1e4:
        return "%g k" % (value / 1e3)
    return "%g" % value


class Axis:
    def __init__(self, spec, values, start, end, room):
        self.log = bool(spec.get("log"))
        self.start, self.end = start, end
        values = [v for v in values if v is not None and (v > 0 or not self.log)] or [1.0]
        low, high = spec.get("min", min(values)), spec.get("max", max(values))
        if self.log:
            low, high = math.log10(low), math.log10(high)
            if high - low < 0.3:
                low, high = low - 0.2, high + 0.2
        elif "min" not in spec and low > 0 and low < 0.5 * high:
            low = 0
        if high <= low:
            high = low + (abs(low) or 1)
        margin = 0.03 * (high - low)
        self.low = low if not self.log and low == 0 else low - margin
        self.high = high + margin
        self.ticks = self.choose(room)

    def choose(self, room):
        if self.log:
            first, last = math.ceil(self.low), math.floor(self.high)
            if last - first >= 2:
                step = max(1, math.ceil((last - first + 1) / room))
                return [10.0 ** p for p in range(first, last + 1, step)]
            steps = [10.0 ** p * m for p in range(first - 1, last + 2) for m in (1, 2, 5)]
            return [s for s in steps if self.low <= math.log10(s) <= self.high][:room + 2]
        rough = (self.high - self.low) / room
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * 0.999)
        first = math.ceil(self.low / step)
        return [round(i * step, 12) for i in range(first, int(self.high / step + 1e-9) + 1)]

    def at(self, value, clip=False):
        """Where a value goes; None if that is outside (with clip, the edge it is beyond)."""
        if self.log:
            value = math.log10(value) if value > 0 else -math.inf
        share = (value - self.low) / (self.high - self.low)
        if not clip and not -0.02 <= share <= 1.02:
            return None
        return self.start + min(max(share, 0), 1) * (self.end - self.start)


def thin(points):
    if len(points) <= POINTS_MAX:
        return points
    step = (len(points) - 1) / (POINTS_MAX - 1)
    return [points[round(i * step)] for i in range(POINTS_MAX)]


def marker(shape, x, y, r, more=""):
    if shape == "circle":
        return '<circle%s cx="%.1f" cy="%.1f" r="%.1f"/>' % (more, x, y, r)
    if shape == "square":
        return '<rect%s x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>' % (
            more, x - r, y - r, 2 * r, 2 * r)
    corners = {"diamond": [(0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)],
               "triangle": [(0, -1.3), (1.2, 0.9), (-1.2, 0.9)],
               "down": [(0, 1.3), (1.2, -0.9), (-1.2, -0.9)],
               "cross": [(-.4, -1.2), (.4, -1.2), (.4, -.4), (1.2, -.4), (1.2, .4), (.4, .4), (.4, 1.2),
                         (-.4, 1.2), (-.4, .4), (-1.2, .4), (-1.2, -.4), (-.4, -.4)]}[shape]
    return '<path%s d="M%sZ"/>' % (more, "L".join(
        "%.1f %.1f" % (x + r * a, y + r * b) for a, b in corners))


LOWERED = str.maketrans("0123456789abn", "₀₁₂₃₄₅₆₇₈₉ₐ_ₙ")


def plain(text):
    """Indices for text without markup."""
    text = re.sub(r"([λδ])([0-9])", lambda m: m.group(1) + m.group(2).translate(LOWERED), text)
    return html.escape(text.replace("n_a", "nₐ").replace("n_b", "n of B"))


class Curve:
    """One series to draw: its label, what it is (formula, measured, published) and its points."""

    def __init__(self, label, kind, rows, color):
        self.label, self.kind, self.color = label, kind, color
        self.rows = thin(sorted(rows, key=lambda row: row.x))


def draw_curve(curve, index, xs, ys, small):
    parts = ['<g class="s%d k-%s" data-s="%d">' % (curve.color, curve.kind, index)]
    placed = [(xs.at(row.x), ys.at(row.y), row) for row in curve.rows]
    placed = [p for p in placed if p[0] is not None and p[1] is not None]
    if curve.kind != "published" and len(placed) > 1:
        parts.append('<polyline points="%s"/>' % " ".join("%.1f,%.1f" % p[:2] for p in placed))
    radius = 2.6 if small else 3.2
    for x, y, row in placed:
        data = ' class="p" data-x="%s" data-y="%s" data-k="%s"' % (
            number(row.x), number(row.y), curve.kind)
        if curve.kind == "measured":
            low, high = (ys.at(end, True) for end in labdata.interval(row))
            if low - high > 2:
                parts.append('<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>' % (x, x, low, high))
            shape = SHAPES[curve.color % len(SHAPES)]
            parts.append(marker(shape, x, y, radius, data))
        elif curve.kind == "published":
            parts.append(marker("circle", x, y, radius + 2.2, data))
        else:
            parts.append(marker("circle", x, y, 1, data))
    return "".join(parts) + "</g>"


def draw_axes(xs, ys, spec, width, height, left, bottom, top):
    parts = []
    for tick in ys.ticks:
        y = ys.at(tick)
        parts.append('<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>'
                     '<text class="t" text-anchor="end" x="%d" y="%.1f">%s</text>' % (
                         left, width - 8, y, y, left - 6, y + 4, tick_text(tick, ys.log)))
    free = -math.inf                    # a label that would touch the one before is left out
    for tick in xs.ticks:
        x, text = xs.at(tick), tick_text(tick, xs.log)
        half = LETTER / 2 * len(text) + 3
        middle = min(x, width - half)
        parts.append('<line class="grid" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>' % (
            x, x, top, height - bottom))
        if middle - half >= free:
            parts.append('<text class="t" text-anchor="middle" x="%.1f" y="%d">%s</text>' % (
                middle, height - bottom + 16, text))
            free = middle + half
    parts.append('<text class="l" text-anchor="middle" x="%d" y="%d">%s</text>' % (
        (left + width - 8) / 2, height - 6, plain(spec["x"]["label"])))
    parts.append('<text class="l" x="4" y="13">%s</text>' % plain(spec["y"]["label"]))
    return "".join(parts)


LETTER = 7.5                            # widest digit of the plots' letters


def spans(panels):
    """Values that the panels of one figure show, so that all have the same scale."""
    return [row.y for entries in panels for curves in entries for curve in curves for row in curve.rows]


def draw(spec, entries, small, shared=()):
    """entries: the curves of each entry of the legend; shared: values of the other panels."""
    width, height = (344, 270) if small else (760, 380)
    left, bottom, top = (48 if small else 62), 42, 30
    rows = [row for curves in entries for curve in curves for row in curve.rows]
    line = spec.get("line")
    ys_seen = [row.y for row in rows] + list(shared) + ([line["y"]] if line else [])
    xs = Axis(spec["x"], [row.x for row in rows], left, width - 8, 4 if small else 9)
    ys = Axis(spec["y"], ys_seen, height - bottom, top, 5 if small else 7)
    parts = ['<svg class="%s" viewBox="0 0 %d %d" role="img" tabindex="0" aria-label="%s">' % (
        "narrow" if small else "wide", width, height, html.escape(
            "%s. Arrow keys read the values." % spec["title"], quote=True))]
    parts.append(draw_axes(xs, ys, spec, width, height, left, bottom, top))
    if line:
        y = ys.at(line["y"])
        parts.append('<line class="limit" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text class="t" '
                     'text-anchor="end" x="%d" y="%.1f">%s</text>' % (
                         left, width - 8, y, y, width - 10, y - 5, plain(line["label"])))
    for index, curves in enumerate(entries):
        for curve in curves:
            parts.append(draw_curve(curve, index, xs, ys, small))
    return "".join(parts) + "</svg>"


def legend(entries):
    """One entry a curve; what dashes and rings are is said once."""
    items, kinds = [], {curve.kind for curves in entries for curve in curves}
    for index, curves in enumerate(entries):
        curve = curves[0]
        sign = '<line x1="1" x2="25" y1="7" y2="7"/>'
        if curve.kind == "measured":
            sign += marker(SHAPES[curve.color % len(SHAPES)], 13, 7, 3.4)
        items.append('<button type="button" data-s="%d" aria-pressed="true"><svg class="sign" '
                     'viewBox="0 0 26 14" aria-hidden="true"><g class="s%d k-%s">%s</g></svg>'
                     '<span>%s</span></button>' % (
                         index, curve.color, curve.kind, sign, plain(curve.label)))
    words = [word for kind, word in (("formula", "dashed: formula"), ("published", "rings: published"))
             if kind in kinds]
    return '<div class="legend">%s%s</div>' % (
        "".join(items), '<span class="key">%s</span>' % ", ".join(words) if words else "")
