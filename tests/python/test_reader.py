"""The reader against Python's csv and json: the same records and values, however the file is cut
and packed. The records come from tests/unit/test_reader --dump."""
import csv
import gzip
import io
import json
import os
import random
import re
import subprocess

import pytest

ROOT = os.environ.get("TAMIS_ROOT", os.path.join(os.path.dirname(__file__), "../.."))
BUILD = os.environ.get("TAMIS_BUILD", os.path.join(ROOT, "build/release"))
DUMP = os.path.join(ROOT, BUILD, "tests/unit/test_reader")
SEED = int(os.environ.get("TAMIS_SEED", "7"), 0)
LONG = os.environ.get("TAMIS_LONG") == "1"
ROUNDS = 400 if LONG else 40

MISSING, BAD = None, "bad"


def dump(path, form, attributes, segment=0):
    """The records of a file: a list of values each (None: missing; a list of those of a list), or
    BAD."""
    out = subprocess.run([DUMP, "--dump", form, str(segment), str(path)] + attributes, check=True,
                         capture_output=True, text=True).stdout
    records = []
    for line in out.split("\n")[1:-1]:
        if line == BAD:
            records.append(BAD)
            continue
        words = line.split(" ")[:-1]
        records.append([value_of(w) for w in words])
    return records


def value_of(word):
    parts = word.split("+")
    assert all((w[0] == "P") == (len(w) > 1) for w in parts)
    values = [None if w[0] == "M" else bytes.fromhex(w[1:]) for w in parts]
    return values if len(values) > 1 else values[0]


def pack(data, rng, tmp_path):
    """The bytes as a file, plain or packed in some way."""
    path, kind = tmp_path / "input", rng.randrange(5)
    cut = rng.randrange(len(data) + 1)
    if kind == 1:
        data = gzip.compress(data)
    elif kind == 2:
        data = gzip.compress(data[:cut]) + gzip.compress(data[cut:])
    path.write_bytes(data)
    if kind >= 3:
        parts = [data] if kind == 3 else [data[:cut], data[cut:]]
        path.write_bytes(b"".join(subprocess.run(["zstd", "-qc"], input=part, capture_output=True,
                                                 check=True).stdout for part in parts))
    return path


def text(rng, most=12):
    pools = ["abc", "abc ,\"'", "a\"\n", "a\r\n,", "é€😀\x80", "\t\\/\b\x7f\0", "0123456789.-"]
    return "".join(rng.choice(rng.choice(pools)) for _ in range(rng.randrange(most)))


# ---- CSV ----------------------------------------------------------------------------------------

def expected_rows(rows, columns):
    return [[row[c].encode() if c < len(row) else MISSING for c in columns] for row in rows if row]


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_csv_written_by_python(round_, tmp_path):
    rng = random.Random(SEED * 1000 + round_)
    width = rng.randrange(1, 8)
    line_end, quoting = rng.choice(["\n", "\r\n"]), rng.choice([csv.QUOTE_ALL, csv.QUOTE_MINIMAL])
    # What csv writes of a last \r before \n, unquoted, nobody can read.
    drop = "\0" if "\r" in line_end or quoting == csv.QUOTE_ALL else "\0\r"
    rows = [[re.sub("[%s]" % drop, "", text(rng))
             for _ in range(rng.choice([width, rng.randrange(9)]))]
            for _ in range(rng.randrange(60))]
    header = ["c%d" % i for i in range(width)]
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=quoting, lineterminator=line_end)
    writer.writerow(header)
    writer.writerows(rows)
    data = out.getvalue().encode()
    if rng.randrange(2):
        data = b"\xef\xbb\xbf" + data
    columns = rng.sample(range(width), rng.randrange(1, width + 1))
    names = [header[c] if rng.randrange(3) else str(c + 1) for c in columns]
    got = dump(pack(data, rng, tmp_path), "csv", names, rng.choice([1, 50, 1000, 0]))
    # A row of one empty cell is written as "" and is a record; a row of none is an empty line.
    assert got == expected_rows(rows, columns)


def stray(data, at):
    """Whether the quote at `at`, which opens a field, is not closed there."""
    end = at + 1
    while True:
        end = data.find('"', end)
        if end < 0:
            return True
        if data[end + 1:end + 2] != '"':
            break
        end += 2
    return "\n" in data[at:end] and data[end + 1:end + 2] not in ("", ",", "\n")


def split(data):
    """The records of a text, each as its own text, or None if bad: what is left to csv has no stray quote."""
    records, start, at, state = [], 0, 0, "start"
    while at < len(data):
        c = data[at]
        if state == "quoted":
            state = "quote" if c == '"' else "quoted"
        elif state == "quote" and c == '"':
            state = "quoted"
        elif c == "\n":
            records.append(data[start:at])
            start, state = at + 1, "start"
        elif state == "start" and c == '"' and stray(data, at):
            at = (data + "\n").index("\n", at)
            records.append(None)
            start = at + 1
        elif c == ",":
            state = "start"
        else:
            state = "quoted" if state == "start" and c == '"' else "field"
        at += 1
    return records + [data[start:]]


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_csv_of_any_characters(round_, tmp_path):
    rng = random.Random(SEED * 1001 + round_)
    letters = rng.choice(['ab,,"""\n', 'ab,,,,"\n', 'abcdefgh,,,,""\n\n'])
    data = "\n".join("".join(rng.choice(letters) for _ in range(rng.randrange(30)))
                     for _ in range(200))
    clean = rng.randrange(2)  # without bad records, all of it is left to csv
    if clean:
        data = "\n".join(record for record in split(data) if record is not None)
    expected = []
    for record in split(data):
        rows = csv.reader(io.StringIO(record or "", newline=""))
        expected += [BAD] if record is None else expected_rows(rows, [2, 1])
    if clean:
        assert expected == expected_rows(csv.reader(io.StringIO(data, newline="")), [2, 1])
    path = pack(("A,B,C\n" + data).encode(), rng, tmp_path)  # no row of small letters is a header again
    got = dump(path, "csv", ["3", "B"], rng.choice([1, 50, 1000, 0]))
    assert got == expected


@pytest.mark.parametrize("round_", range(ROUNDS // 4))
def test_tsv(round_, tmp_path):
    rng = random.Random(SEED * 1002 + round_)
    rows = [[re.sub("[\t\r\n]", "", text(rng)) for _ in range(rng.randrange(1, 6))]
            for _ in range(60)]
    data = "a\tb\tc\td\n" + "".join("\t".join(row) + rng.choice(["\n", "\r\n"]) for row in rows)
    got = dump(pack(data.encode(), rng, tmp_path), "tsv", ["d", "a"], rng.choice([1, 50, 0]))
    assert got == expected_rows([row for row in rows if row != [""]], [3, 0])


# ---- JSON ---------------------------------------------------------------------------------------

KEYS = ["a", "b", "a.b", "0", "1", "ü", "", "b.0", "long key with \"quotes\"", "x\ty"]
PATHS = ["a", "b", "a.b", "a.b.0", "b.0", "b.1.a", "0", "ü", "long key with \"quotes\"", "x\ty",
         "a.b.b", "b.0.a.b", "b.a", "b.b.a", "a.a.b", "b.0.b"]


def value(rng, depth):
    """JSON text, made here so that keys repeat and blanks stand where they may."""
    blank = rng.choice(["", "", "", " ", "\t "])
    kind = rng.randrange(10 if depth else 6)
    if kind == 0:
        return rng.choice(["null", "true", "false"])
    if kind == 1:
        return rng.choice(["0", "-0", "1.5e10", "123", "-1E-2", "0.25", "NaN", "-Infinity"])
    if kind < 6:
        return string(rng, text(rng) if rng.randrange(4) else "")
    if kind == 9:  # JSON inside of a string, as container logs have it
        inner = rng.choice(["", " "]) + record(rng, 1) + rng.choice(["", "\n", "x"])
        return string(rng, inner)
    if kind == 6:
        parts = [value(rng, depth - 1) for _ in range(rng.randrange(4))]
        return "[" + blank + ("," + blank).join(parts) + blank + "]"
    return record(rng, depth, blank)


def string(rng, s):
    s = json.dumps(s, ensure_ascii=rng.randrange(2) == 0)
    if rng.randrange(3) == 0 and "\\" not in s:
        s = "".join("\\u%04x" % ord(c) if ord(c) < 0xd800 and c != '"' and rng.randrange(3) == 0
                    else c for c in s)
    return s


def record(rng, depth, blank=""):
    parts = [string(rng, rng.choice(KEYS)) + blank + ":" + blank + value(rng, depth - 1)
             for _ in range(rng.randrange(6))]
    return "{" + blank + ("," + blank).join(parts) + blank + "}"


class Pairs(dict):
    """An object that knows all values of a key that comes again; of itself it has the last."""

    def __init__(self, pairs):
        super().__init__(pairs)
        self.all = {}
        for key, one in pairs:
            self.all.setdefault(key, []).append(one)


def ways(path):
    """The ways to cut a path at its dots, the longest first key first."""
    yield [path]
    for at in reversed([m.start() for m in re.finditer(r"\.", path)]):
        for rest in ways(path[at + 1:]):
            yield [path[:at]] + rest


def collect(node, keys, many):
    """(the values at some keys, whether they are of elements of an array)"""
    if not keys:
        return ([] if node is None else [node]), many
    if isinstance(node, str) and node.lstrip(" \t\r\n")[:1] in ("{", "["):
        try:
            node = load(node)
        except ValueError:
            return [], many
    key, found = keys[0], []
    if isinstance(node, dict) and key in node:
        found = node.all[key] if many else [node[key]]
    elif isinstance(node, list) and re.fullmatch("0|[1-9][0-9]*", key):
        found = [node[int(key)]] if int(key) < len(node) else []
    elif isinstance(node, list):
        found, many = [one for one in node if isinstance(one, (dict, list))], True
        keys = [None] + keys  # of each of them
    all_ = [collect(one, keys[1:], many) for one in found]
    return [v for values, _ in all_ for v in values], many or any(m for _, m in all_)


def resolve(node, path):
    """The value at a path, a list if it is of elements of an array; None: there is none."""
    for keys in ways(path):
        found, many = collect(node, keys, False)
        if not many:
            found = found[-1:]
        parts = [[v for v in one if v is not None] if isinstance(one, list) and one else [one] for one in found]
        values = Many(v for part in parts for v in part)  # of nulls alone there are none
        if values:
            return values if many else found[0]
    return None


class Many(list):
    """Values of several elements."""


def load(line):
    return json.loads(line, strict=False, object_pairs_hook=Pairs)


def agrees(got, want):
    if want is None or got is None:
        return got is want
    if isinstance(want, Many) or isinstance(want, list) and want:
        want = [x for x in want if x is not None]
        got = got if isinstance(got, list) else [got]
        return len(got) == len(want) and all(element(g, w) for g, w in zip(got, want))
    return element(got, want)


def element(got, want):
    if isinstance(want, str):
        return got == want.encode("utf-8", "surrogatepass")
    return repr(load(got.decode("utf-8", "surrogateescape"))) == repr(want)


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_json_objects(round_, tmp_path):
    rng = random.Random(SEED * 1003 + round_)
    lines = [record(rng, 4) for _ in range(100)]
    data = "".join(line + rng.choice(["\n", "\r\n", "\n\n"]) for line in lines).encode()
    if rng.randrange(2):
        data = data.rstrip()
    paths = rng.sample(PATHS, rng.randrange(1, len(PATHS)))
    got = dump(pack(data, rng, tmp_path), "jsonl", paths, rng.choice([1, 50, 1000, 0]))
    assert len(got) == len(lines)
    for line, values in zip(lines, got):
        node = load(line)
        for path, found in zip(paths, values):
            assert agrees(found, resolve(node, path)), (line, path)


def accepts(line):
    try:
        return isinstance(load(line), (dict, list))
    except ValueError:
        return False


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_json_good_and_bad(round_, tmp_path):
    """Lines changed at random: those that Python's json takes are records, the others are bad."""
    rng = random.Random(SEED * 1004 + round_)
    lines = []
    while len(lines) < 200:
        line = list(record(rng, 3))
        for _ in range(rng.randrange(3)):
            at = rng.randrange(len(line))
            line[at:at + rng.randrange(2)] = rng.choice('{}[]:,"\\ue0+-.tn \x01')
        line = "".join(line).replace("\n", "")
        if line.strip(" \t\r"):
            lines.append(line)
    path = tmp_path / "input"
    path.write_bytes("\n".join(lines).encode())
    got = dump(path, "jsonl", ["a", "b"], rng.choice([1, 100, 0]))
    assert [r != BAD for r in got] == [accepts(line) for line in lines]
    for line, values in zip(lines, got):
        if values != BAD:
            node = load(line)
            assert agrees(values[0], resolve(node, "a")) and agrees(values[1], resolve(node, "b"))


def test_bytes_that_are_not_utf8(tmp_path):
    path = tmp_path / "input.jsonl"
    path.write_bytes(b'{"a":"\xff\xfe","b":"\\u00e9\xc3"}\n')
    assert dump(path, "auto", ["a", "b"]) == [[b"\xff\xfe", b"\xc3\xa9\xc3"]]
