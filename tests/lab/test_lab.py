"""Every experiment of the lab in its small form, against what was published and what must hold."""
import os
import sys

import pytest

ROOT = os.environ.get("TAMIS_ROOT") or os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "lab"))
import check    # noqa: E402
import labdata  # noqa: E402
import page     # noqa: E402

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
