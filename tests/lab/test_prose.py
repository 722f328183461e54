"""The sentences of the page: their numbers come from the data, so no sentence can contradict a table."""
import os
import re
import sys
import zlib

import pytest

ROOT = os.environ.get("TAMIS_ROOT") or os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "lab"))
sys.path.insert(0, os.path.join(ROOT, "tests/lab"))
import labdata  # noqa: E402
import page     # noqa: E402
import prose    # noqa: E402
import small    # noqa: E402

# What a sentence may state by itself: settings, published values and places in the papers.
GIVEN = re.compile(r"""
    (figures?|tables?|sections?|[tT]heorems?|lemma|line|eq\.)\ [\d.]+(,\ ?[\d.]+)*(\ (and|to)\ [\d.]+)*
  | \(\d+\)(\ to\ \(\d+\))? | [A-Za-zδλσγβαP̂n]+\d\b | 0\.61?2?85 | 2\^\S+ | e\^\S+
  | (rate|rates|limit|target|made\ for|stated|up\ to|below|share|bound|bounds|bounded\ by|γ\ =|at|of|than|under|passes|their|its|published|most)\ (of\ |is\ |the\ )*0?\.?[\d.,]+(\ %)?
  | \b\d[\d,]*\ (bits|items|objects|additions|hosts|hashes|records|questions|attributes|units|changes|mixed|row|full\ vectors|wrong|digits)
  | [nmpkqcsN]̂?\ =\ [\d,.]+ | \b(1|2|3)\b """, re.X)
RESULT = re.compile(r"\d+(\.\d+)?\ ?%|\b\d*\.\d+|\b\d+\ times")


@pytest.fixture(scope="module")
def data():
    folder = small.folder()
    return {paper: labdata.read_folder(folder, paper) for paper in labdata.PAPERS}


@pytest.mark.parametrize("paper", labdata.PAPERS)
def test_references_have_values(paper, data):
    for where, text in prose.texts(labdata.read_expected(paper)):
        assert prose.missing(text, data[paper]) == [], where


@pytest.mark.parametrize("paper", labdata.PAPERS)
def test_results_are_not_typed(paper):
    """A share, a decimal fraction or a factor in a sentence is a reference, or it was given."""
    for where, text in prose.texts(labdata.read_expected(paper)):
        rest = GIVEN.sub(" ", prose.REFERENCE.sub(" ", text))
        assert not RESULT.search(rest), "%s: %s in: %s" % (where, RESULT.search(rest).group(0), text)


@pytest.mark.parametrize("paper", labdata.PAPERS)
def test_every_summary_sentence_is_checked(paper):
    expected = labdata.read_expected(paper)
    seen = {where for where, _ in prose.texts(expected)}
    assert {name for name, _ in page.SUMMARY if expected.get(name)} <= seen


@pytest.mark.parametrize("paper", labdata.PAPERS)
def test_a_sentence_follows_its_table(paper, data):
    """With other measurements every sentence that has a reference says another number."""
    changed = {key: {x: row._replace(y=(row.y + 0.2) * (0.2 + zlib.crc32(repr(key).encode()) % 1000 / 1500))
                     for x, row in rows.items()} for key, rows in data[paper].items()}
    for where, text in prose.texts(labdata.read_expected(paper)):
        for inside in prose.REFERENCE.findall(text):
            if inside.startswith("verdict:"):
                continue
            one = "{%s}" % inside
            assert prose.render(one, data[paper]) != prose.render(one, changed), (where, inside)


@pytest.mark.parametrize("paper", labdata.PAPERS)
def test_the_page_says_what_the_tables_say(paper, data):
    """What the finished page prints for each reference is the value of the table, to its digits."""
    html = page.build(small.folder())
    for where, text in prose.texts(labdata.read_expected(paper)):
        for inside in prose.REFERENCE.findall(text):
            body, _, form = inside.partition(" : ")
            if inside.startswith("verdict:") or form:
                continue
            value = prose.evaluate(data[paper], body)
            said = prose.render("{%s}" % inside, data[paper])
            plain = float(said.replace("\u202f", "")) if "·" not in said else value
            assert abs(plain - value) <= 0.006 * abs(value) + 1e-12, (where, inside, said, value)
            assert said in html


def test_counts_in_sentences():
    """{verdict: ...} counts what the table of published numbers shows."""
    rows = [labdata.Value("f", "table 1, a", "s", x, 1, None, 1, 1, 1, verdict, "")
            for x, verdict in enumerate(["agrees", "agrees", "differs"])]
    text = "{verdict: table 1: agrees} of {verdict: table 1: of}, {verdict: table 2: of}"
    assert prose.render(text, {}, rows) == "2 of 3, 0"
