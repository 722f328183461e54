"""What reading costs, in instructions counted by valgrind: twice the text, twice the cost, whatever
the text is made of."""
import json
import os
import random

import pytest

from costs import instructions
from test_reader import DUMP

TAMIS = os.environ["TAMIS"]


def reading(path, form):
    """The instructions of reading a file in segments of 64 KiB."""
    command = [DUMP, "--dump", form, "65536", str(path), "1" if form == "csv" else "a"]
    return instructions(command, path.parent)


TEXTS = {
    "a long header": ("csv", lambda n: "x" * n),
    "a long header behind blanks": ("csv", lambda n: "\n" * (n // 2) + "x" * (n // 2) + "\n1\n"),
    "a header behind blanks that end as on Windows": ("csv", lambda n: "\r\n" * (n // 2) + "a\n1\n"),
    "a long first line": ("jsonl", lambda n: '{"a":"' + "x" * n + '"}\n'),
    "a quote left open in every line": ("csv", lambda n: "a,b\n" + '1,"2\n' * (n // 5)),
    "a quote left open, then doubled ones": ("csv", lambda n: "a,b\n" + '1,"2\n' + '1,"",2\n' * (n // 7)),
    "a quote left open now and then": (
        "csv", lambda n: "a,b\n" + ('1,"2\n' + '1,"2",3\n' * 40) * (n // 326)),
    "odd runs of quotes": ("csv", lambda n: "a,b\n" + ('"""a\n' + '"""""b\n') * (n // 13)),
    "quotes in line ends": ("csv", lambda n: "a,b\n" + '"\n' * (n // 2)),
    "brackets": ("auto", lambda n: "[" * n),
}


@pytest.mark.parametrize("name", TEXTS)
def test_cost_is_linear(name, tmp_path):
    form, make = TEXTS[name]
    path = tmp_path / "text"
    counts = []
    for n in (15000, 30000, 60000):  # all within the first 64 KiB
        path.write_text(make(n))
        counts.append(reading(path, form))
    first, second = counts[1] - counts[0], counts[2] - counts[1]
    assert second < 2.5 * max(first, 20000), counts


def test_cost_of_quotes_is_linear_beyond_a_segment(tmp_path):
    form, make = TEXTS["a quote left open now and then"]
    path = tmp_path / "text"
    counts = []
    for n in (1 << 20, 1 << 21, 1 << 22):
        path.write_text(make(n))
        counts.append(reading(path, form))
    assert counts[2] - counts[1] < 2.5 * (counts[1] - counts[0]), counts


def test_choosing_among_columns_is_linear(tmp_path):
    """Without --attrs, index looks at every column, up to 4,096 of them."""
    counts = []
    for n in (1000, 2000, 4000):
        rows = [["c%05d" % i for i in range(n)]] + [[str(7 * i + j) for i in range(n)] for j in range(3)]
        (tmp_path / "a.csv").write_text("".join(",".join(row) + "\n" for row in rows))
        counts.append(instructions([TAMIS, "index", "a.csv", "-o", "a.tamis"], tmp_path))
    assert counts[2] - counts[1] < 2.5 * (counts[1] - counts[0]), counts


def shuffled(n):
    """Records that have the same n keys, each in another order."""
    rng = random.Random(n)
    keys = ["k%05d" % i for i in range(n)]
    return [[(key, rng.randrange(9)) for key in rng.sample(keys, n)] for _ in range(3)]


MANY = {
    "jsonl": lambda record: json.dumps(dict(record)),
    "logfmt": lambda record: " ".join("%s=%d" % pair for pair in record),
    "json": lambda record: json.dumps({"in": dict(record)}),
}


@pytest.mark.parametrize("form", MANY)
def test_objects_of_many_keys_are_linear(form, tmp_path):
    """A key is not compared with all that are wanted."""
    counts = []
    for n in (600, 1200, 2400):
        (tmp_path / "a.log").write_text("".join(MANY[form](record) + "\n" for record in shuffled(n)))
        counts.append(instructions([TAMIS, "index", "a.log", "-o", "a.tamis"], tmp_path))
    assert counts[2] - counts[1] < 2.5 * (counts[1] - counts[0]), counts


def test_positions_in_arrays_are_linear(tmp_path):
    counts = []
    for n in (1000, 2000, 4000):
        (tmp_path / "a.jsonl").write_text(json.dumps({"a": list(range(n))}) + "\n")
        command = [DUMP, "--dump", "jsonl", "65536", "a.jsonl", *["a.%d" % i for i in range(n)]]
        counts.append(instructions(command, tmp_path))
    assert counts[2] - counts[1] < 2.5 * (counts[1] - counts[0]), counts


def test_headers_of_many_columns_are_linear(tmp_path):
    """A table whose columns change their places."""
    counts = []
    for n in (5000, 10000, 20000):
        names = ["c%05d" % i for i in range(n)]
        row = ",".join(str(i) for i in range(n))
        (tmp_path / "a.csv").write_text("\n".join([",".join(names), row, ",".join(names[::-1]), row]) + "\n")
        counts.append(instructions([TAMIS, "index", "a.csv", "-o", "a.tamis", "--attrs", "c00001"], tmp_path))
        counts[-1] += instructions([TAMIS, "find", "--trust", "--count", "a.tamis", "c00001==1"], tmp_path)
    assert counts[2] - counts[1] < 2.5 * (counts[1] - counts[0]), counts


def test_a_rare_value_in_quoted_tables_is_searched_for(tmp_path):
    """Not parsed for, and the catalog says where records end: where no quoted field has a line end, lines are
    records. Finding their ends takes 5 instructions per byte. (--trust: a file that was indexed within two seconds
    of being written is hashed again, which takes one.)"""
    rows = ['%d,u%05d,"agent, with ""quotes"" %d"' % (i, i * 7 % 50000, i % 13) for i in range(100000)]
    text = "id,user,agent\n" + "\n".join(rows) + "\n"
    (tmp_path / "a.csv").write_text(text)
    instructions([TAMIS, "index", "a.csv", "-o", "a.tamis", "--attrs", "user,agent:words"], tmp_path)
    count = instructions([TAMIS, "find", "--trust", "--count", "a.tamis", "user=u00007"], tmp_path)
    assert count < len(text), count / len(text)
