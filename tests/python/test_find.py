"""tamis find = a plain scan, with Python's csv and json: random files, conditions and updates."""
import csv
import datetime
import decimal
import gzip
import importlib.util
import io
import json
import os
import random
import re
import subprocess

import pytest

ROOT = os.environ.get("TAMIS_ROOT", os.path.join(os.path.dirname(__file__), "../.."))
TAMIS = os.path.join(ROOT, os.environ.get("TAMIS", "build/release/tamis"))
SEED = int(os.environ.get("TAMIS_SEED", "7"), 0)
LONG = os.environ.get("TAMIS_LONG") == "1"
ROUNDS = 600 if LONG else 40
MISSING = None
spec = importlib.util.spec_from_file_location("decode", os.path.join(ROOT, "tools/decode.py"))
decode = importlib.util.module_from_spec(spec)
spec.loader.exec_module(decode)
TYPES = {"ip": "", "user": "", "n": "int", "d": "dec", "t": "time", "a.b": ""}


# ---- the scan -----------------------------------------------------------------------------------

def normal(value, kind):
    """A value that is equal for equal values of a type; text that is none stands for itself."""
    if value is MISSING or not kind:
        return value
    text = value.decode("latin-1").strip(" \t\n\v\f\r")
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1].strip(" \t\n\v\f\r")
    if kind == "int" and re.fullmatch(r"[+-]?[0-9]+", text):
        return int(text)
    if kind == "dec" and re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        return decimal.Decimal(text) + 0
    if kind == "time":
        if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) and len(text) > 8:
            return decimal.Decimal(text)
        match = re.fullmatch(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(\.\d+)?(Z|[+-]\d\d(?::\d\d)?)?)?", text)
        if match:
            zone = match[4] if match[4] and match[4] != "Z" else "+00:00"
            moment = datetime.datetime.fromisoformat(
                "%sT%s%s" % (match[1], match[2] or "00:00:00", zone if ":" in zone else zone + ":00"))
            return decimal.Decimal(int(moment.timestamp())) + decimal.Decimal(match[3] or 0)
    return value


def is_time(text):
    return isinstance(normal(text, "time"), decimal.Decimal) or re.fullmatch(rb"[0-9]+(\.[0-9]+)?", text)


def time_before(text):
    return {"t": text} if text and is_time(text) else {}


class Bad(dict):
    """It stays findable, but is not counted."""


class Table:
    """The rows of a table. One that has not as many fields as the header, and no time in t, has that of the row before."""

    def __init__(self, header):
        self.header, self.before = header, None

    def values(self, cells):
        values = dict(zip(self.header, cells))
        if "t" not in self.header or is_time(values.get("t", b"")) or len(cells) == len(self.header):
            self.before = values.get("t", self.before)
            return values
        values.pop("t", None)
        return {**values, **time_before(self.before)}


def csv_records(text):
    """(raw, values by name) of a CSV text; its lines are those that csv asked for."""
    lines = text.decode("utf-8", "surrogateescape").splitlines(keepends=True)
    assert "".join(lines).count("\n") == len([line for line in lines if line.endswith("\n")])
    taken = []

    def feed():
        for line in re.findall(r"[^\n]*\n|[^\n]+$", text.decode("utf-8", "surrogateescape")):
            taken.append(line)
            yield line

    table = None
    for row in csv.reader(feed()):
        raw = "".join(taken).encode("utf-8", "surrogateescape")
        taken.clear()
        if not row:
            continue
        row = [cell.encode("utf-8", "surrogateescape") for cell in row]
        if table is None:
            table = Table([name.decode() for name in row])
        else:
            yield raw, table.values(row)


def tsv_records(text):
    table = None
    for line in text.split(b"\n"):
        cells = line.removesuffix(b"\r")
        if not cells:
            continue
        if table is None:
            table = Table([name.decode() for name in cells.split(b"\t")])
        else:
            yield line, table.values(cells.split(b"\t"))


def json_value(value, raw):
    if value is None:
        return MISSING
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return raw


class Number(float):
    """A number that keeps its text."""


def json_records(text):
    def number(digits):
        one = Number(digits)
        one.text = digits
        return one

    before = None
    for line in text.split(b"\n"):
        if not line.strip():
            continue
        try:
            record = json.loads(line.decode(), parse_int=number, parse_float=number)
        except ValueError:
            yield line, Bad(time_before(before))
            continue
        values = {}
        for name in TYPES:
            value = record.get(name) if isinstance(record, dict) else None
            if value is None and name == "a.b" and isinstance(record.get("a"), dict):
                value = record["a"].get("b")
            if isinstance(value, Number):
                values[name] = value.text.encode()
            elif isinstance(value, bool):
                values[name] = str(value).lower().encode()
            elif value is not None:
                values[name] = value.encode("utf-8", "surrogatepass")
        before = values.get("t", before)
        yield line, values


READERS = {"csv": csv_records, "tsv": tsv_records, "jsonl": json_records}


def good(rows):
    return sum(1 for _, values in rows if not isinstance(values, Bad))


def whole(raw):
    return raw if raw.endswith(b"\n") else raw + b"\n"


def scan(files, order, condition, names):
    """The matching records of the files, in order: (file, raw line)."""
    found = []
    for name in order:
        for raw, values in READERS[name.split(".")[1]](files[name]):
            if all(normal(values.get(attribute), TYPES[attribute]) in
                   [normal(w, TYPES[attribute]) for w in wanted]
                   for attribute, wanted in condition.items()):
                found.append((name, whole(raw)))
    return found


# ---- the data -----------------------------------------------------------------------------------

POOL = {
    "ip": ["10.0.0.%d" % i for i in range(12)] + [""],
    "user": ["ann", "bob", "cho", "d,e", 'f"g', "h\ni", "é€", "", "with space", "x" * 300],
    "n": ["7", "07", "+7", "8", "-0", "0", "seven", "", "123456789012345678901234567890"],
    "d": ["1.5", "1.50", "15e-1", "100", "1e2", "x", ".5"],
    "t": ["2024-01-31T22:59:59Z", "2024-01-31 22:59:59", "2024-01-31T23:59:59+01:00", "2024-02-01",
          "1706741999", "never"],
    "a.b": ["p", "q", "r"],
}


def record(rng, form, names):
    row = {name: rng.choice(POOL[name]) for name in names}
    if form == "csv":
        out = io.StringIO()
        csv.writer(out, lineterminator=rng.choice(["\n", "\n", "\r\n"]),
                   quoting=rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])).writerow(
            list(row.values())[:rng.choice([len(row), len(row), rng.randrange(1, len(row) + 1)])])
        return out.getvalue().encode()
    if form == "tsv":
        cells = [re.sub("[\t\n]", "_", value) for value in row.values()]
        line = "\t".join(cells) + rng.choice(["\n", "\n", "\r\n"])
        return line.encode()
    value = {}
    for name, text in row.items():
        one = rng.choice([text, text, text, None, True, 7, 1.5])
        if rng.random() < 0.1:
            continue
        if name == "a.b" and rng.random() < 0.7:
            value["a"] = {"x": [1, {}], "b": one}
        else:
            value[name] = one
    return (json.dumps(value, ensure_ascii=rng.random() < 0.5) + "\n").encode()


def records(rng, form, names, most):
    lines = [record(rng, form, names) for _ in range(rng.randrange(most))]
    if form == "jsonl" and lines and rng.random() < 0.2:
        lines.insert(rng.randrange(len(lines) + 1), rng.choice([b"{oops\n", b"\n", b'{"ip": 1,}\n']))
    return b"".join(lines)


class World:
    """A folder of files, as Python knows them, and a catalog of it."""

    def __init__(self, rng, tmp):
        self.rng, self.tmp = rng, tmp
        self.folder = tmp / "data"
        self.folder.mkdir()
        self.files, self.known, self.clock, self.made = {}, [], 10 ** 9, 0
        self.rest = {}  # of files whose last record is half written
        self.names = rng.sample(list(TYPES), rng.randrange(1, 5))
        for _ in range(rng.randrange(1, 6)):
            self.create()

    def path(self, name):
        return self.folder / name

    def stamp(self, name):
        """Times that differ whatever the clock's grain."""
        self.clock += 1
        os.utime(self.path(name), (self.clock, self.clock))

    def pack(self, name, data):
        if name.endswith(".gz"):
            return gzip.compress(data, mtime=0)
        if name.endswith(".zst"):
            return subprocess.run(["zstd", "-qc"], input=data, capture_output=True, check=True).stdout
        return data

    def create(self, name=None):
        rng = self.rng
        if name is None:
            form = rng.choice(list(READERS))
            name = "%s%d.%s%s" % (rng.choice("abc"), self.made, form, rng.choice(["", "", ".gz", ".zst"]))
            self.made += 1
        form = name.split(".")[1]
        self.rest.pop(name, None)
        columns = self.names + [n for n in TYPES if n not in self.names and rng.random() < 0.3]
        rng.shuffle(columns)
        head = {"csv": ",".join(columns) + "\n", "tsv": "\t".join(columns) + "\n", "jsonl": ""}[form]
        data = head.encode() + records(rng, form, columns, rng.choice([0, 1, 3, 40, 200]) + 1)
        if rng.random() < 0.3:
            data = data.removesuffix(b"\n")
        cut = rng.randrange(len(data) + 1)
        parts = [data[:cut], data[cut:]] if rng.random() < 0.3 and "." in name else [data]
        self.path(name).write_bytes(b"".join(self.pack(name, part) for part in parts))
        self.files[name] = data
        self.stamp(name)
        return name

    def grow(self, name=None):
        if not self.files:
            return
        name = name or self.rng.choice(list(self.files))
        form = name.split(".")[1]
        old = self.files[name]
        if not old:
            return
        names = (old.split(b"\n")[0].rstrip(b"\r").decode().split("\t" if form == "tsv" else ",")
                 if form != "jsonl" else self.names)
        names = [n for n in names if n in TYPES] or self.names
        more = records(self.rng, form, names, 20)
        if not old.endswith(b"\n") and (
                b"\n" not in old or old.endswith(b"\r") or self.rng.random() < 0.7):
            more = b"\n" + more
        if name in self.rest:
            more = self.rest.pop(name)
        elif len(more) > 1 and self.rng.random() < 0.5:
            cut = max(1, len(more) - self.rng.randrange(1, 40))
            if form != "csv" or more[:cut].count(b'"') % 2 == 0:
                self.rest[name] = more[cut:]
                more = more[:cut]
        if not more:
            return
        with open(self.path(name), "ab") as out:
            out.write(self.pack(name, more))
        self.files[name] = old + more
        self.stamp(name)

    def edit(self):
        """Other bytes, the same size, often with more behind them, sometimes with the same time; in
        place or by another file of the name."""
        name = self.rng.choice(list(self.files))
        digit = str(self.rng.randrange(9)).encode()
        data = self.files[name].replace(b"10.0.0." + digit, b"10.0.0.9").replace(b"ann", b"bob")
        if name.endswith((".gz", ".zst")) or data == self.files[name]:
            return
        before = self.path(name).stat()
        if self.rng.random() < 0.3:
            self.path(name).rename(self.tmp / "aside")
        self.path(name).write_bytes(data)
        self.files[name] = data
        if self.rng.random() < 0.3:
            os.utime(self.path(name), ns=(before.st_atime_ns, before.st_mtime_ns))
        else:
            self.stamp(name)
        if self.rng.random() < 0.5:
            self.grow(name)

    def fresh_name(self, name):
        self.made += 1
        return "%s%d.%s" % (self.rng.choice("abc"), self.made - 1, name.split(".", 1)[1])

    def rename(self):
        """As logs are rotated: moved, or copied and cut, with a new one or none in their place."""
        name = self.rng.choice(list(self.files))
        to = self.fresh_name(name)
        self.files[to] = self.files.pop(name)
        if name in self.rest:
            self.rest[to] = self.rest.pop(name)
        if self.rng.random() < 0.6:
            self.path(name).rename(self.path(to))
        else:
            self.path(to).write_bytes(self.path(name).read_bytes())
            self.path(name).unlink()
            self.stamp(to)
        if self.rng.random() < 0.5:
            self.create(name)
        if self.rng.random() < 0.3:
            self.grow(to)

    def swap(self):
        """Two files change their names: neither is what it was called."""
        forms = {}
        for name in self.files:
            forms.setdefault(name.split(".", 1)[1], []).append(name)
        names = self.rng.choice(list(forms.values()))
        if len(names) < 2:
            return
        one, two = self.rng.sample(names, 2)
        self.path(one).rename(self.tmp / "aside")
        self.path(two).rename(self.path(one))
        (self.tmp / "aside").rename(self.path(two))
        self.files[one], self.files[two] = self.files[two], self.files[one]
        rest = [self.rest.pop(one, None), self.rest.pop(two, None)]
        self.rest.update((n, r) for n, r in ((two, rest[0]), (one, rest[1])) if r is not None)

    def touch(self):
        name = self.rng.choice(list(self.files))
        self.stamp(name)

    def change(self):
        step = self.rng.randrange(12)
        if step < 4 or not self.files:
            self.grow()
        elif step == 6 or step == 8:
            self.edit()
        elif step == 9:
            self.rename()
        elif step == 10:
            self.swap()
        elif step == 11:
            self.touch()
        elif step == 4:
            self.create(self.rng.choice(list(self.files)))
        elif step == 5:
            name = self.rng.choice(list(self.files))
            self.path(name).unlink()
            self.rest.pop(name, None)
            del self.files[name]
        else:
            self.create()

    def tamis(self, *words, status=(0,)):
        done = subprocess.run([TAMIS] + list(words), cwd=self.tmp, capture_output=True)
        assert done.returncode in status, (words, done.returncode, done.stderr)
        return done

    def index(self):
        rng = self.rng
        words = ["--time", "t", "--attrs", ",".join(n + (":" + TYPES[n] if TYPES[n] else "") for n in self.names),
                 "--segment", str(rng.choice([64, 300, 2000, 100000])), "-j", str(rng.randrange(1, 4)),
                 "--fpp", rng.choice(["0.3", "0.01"])]
        if len(self.names) > 1 and rng.random() < 0.5:
            words += ["--combo", "+".join(rng.sample(self.names, 2))]
        if rng.random() < 0.2:
            words += ["--verifier", "none"]
        if rng.random() < 0.2:
            words += ["--combo", "none"] if "--combo" not in words else []
        while self.tamis("index", "-o", "c.tamis", *words, "data", status=(0, 2)).returncode:
            assert not any(self.has_attribute(name) for name in self.files)
            self.create()
        self.settle()

    def rows(self, name):
        return list(READERS[name.split(".")[1]](self.files[name]))

    def has_attribute(self, name):
        return any(values.get(n) is not None for _, values in self.rows(name) for n in self.names)

    def settle(self):
        """The catalog knows what there is now."""
        self.known = sorted(self.files)
        self.indexed = {name: self.path(name).read_bytes() for name in self.known}

    def lost(self):
        """Known files that are gone under any name: some surely, others perhaps, since they were
        renamed or another file happens to start with their bytes."""
        gone = [name for name in self.known if name not in self.files]
        now = [self.path(name).read_bytes() for name in self.files]
        return [name for name in gone
                if not any(data.startswith(self.indexed[name]) for data in now)], gone

    def condition(self):
        rng, condition = self.rng, {}
        for name in rng.sample(self.names, rng.randrange(1, len(self.names) + 1)):
            pool = [text.encode() for text in POOL[name]] + [MISSING, b"nowhere", b"7", b"true"]
            condition[name] = rng.sample(pool, rng.choice([1, 1, 1, 2, 3]))
        if self.files and rng.random() < 0.6:  # what a record has, often a last one
            name = rng.choice(list(self.files))
            rows = list(READERS[name.split(".")[1]](self.files[name]))
            if rows:
                values = (rows[-1] if rng.random() < 0.6 else rng.choice(rows))[1]
                condition = {name: [values.get(name)] for name in condition}
        return condition

    def check(self):
        """All files as they are now, known or not."""
        rng, condition = self.rng, self.condition()
        found = scan(self.files, sorted(self.files), condition, self.names)
        words = [b"%s!" % n.encode() if w is MISSING else b"%s==%s" % (n.encode(), w)
                 for n, wanted in condition.items() for w in wanted]
        rng.shuffle(words)
        lost, gone = self.lost()
        status = ((2,) if lost else ()) or ((0 if found else 1,) + ((2,) if gone else ()))
        words = ["c.tamis"] + words + ["-j", str(rng.randrange(1, 4))]
        done = self.tamis("find", *words, status=status)
        assert done.stdout == b"".join(raw for _, raw in found), (condition, self.known)
        told = [line for line in done.stderr.decode().splitlines() if "as a combination" not in line]
        assert len(told) == (done.returncode == 2)
        if told:
            assert told[0].startswith("tamis find: not searched: data")
        self.check_forms(words, found, status)

    def check_table(self):
        """The table of inputs, as docs/format.md has it: parts hold every record once."""
        catalog = decode.structure_of((self.tmp / "c.tamis").read_bytes())
        _, roots, entries, segments = decode.inputs_of(catalog)
        assert roots == [(b"data", True)]
        assert [e["path"] for e in entries.values()] == [("data/" + name).encode() for name in self.known]
        parts = {}
        for number, segment in enumerate(segments):
            assert sum(part["records"] for part in segment) <= catalog.records[number]
            for part in segment:
                parts.setdefault(part["id"], []).append(part)
        for e in entries.values():
            name = e["path"].decode().removeprefix("data/")
            packed, text = self.path(name).read_bytes(), self.files[name]
            stat = self.path(name).stat()
            assert e["size"] == len(packed) and e["passed"] is None
            assert list(e["sums"]) == [decode.xxh3(packed[at:at + 2 ** 20])
                                       for at in range(0, len(packed), 2 ** 20)]
            assert (e["device"], e["inode"], e["mtime"], e["ctime"]) == \
                (stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns)
            assert e["format"] == 1 + ["csv", "tsv", "jsonl"].index(name.split(".")[1])
            assert not e["damaged"] and not e["unread"]
            mine = sorted(parts.get(e["id"], []), key=lambda part: part["offset"])
            for part, after in zip(mine, mine[1:]):
                assert part["offset"] + part["length"] <= after["offset"]
            total = 0
            reader = READERS[name.split(".")[1]]
            head = b"" if name.split(".")[1] == "jsonl" else text[:text.find(b"\n") + 1]
            for part in mine:
                piece = text[part["offset"]:part["offset"] + part["length"]]
                assert part["line"] == text[:part["offset"]].count(b"\n") + 1
                assert part["records"] == good(reader(head + piece))
                if not name.endswith((".gz", ".zst")):
                    assert packed[part["at"]:part["at"] + part["at_len"]] == piece
                total += part["records"]
            assert e["records"] == total == good(reader(text))

    def check_forms(self, words, found, status):
        assert self.tamis("find", "--count", *words, status=status).stdout == b"%d\n" % len(found)
        most = self.rng.randrange(1, 9)
        done = self.tamis("find", "--limit", str(most), *words, status=status)
        assert done.stdout == b"".join(raw for _, raw in found[:most])
        lines = self.tamis("find", "--json", *words, status=status).stdout.splitlines()
        assert len(lines) == len(found)
        for line, (name, raw) in zip(lines, found):
            place = json.loads(line)
            assert place["file"] == "data/" + name
            text = self.files[name]
            assert whole(text[place["offset"]:][:len(raw)].removesuffix(b"\n")) == raw
            assert text[:place["offset"]].count(b"\n") + 1 == place["line"]
        facts = json.loads(self.tamis("find", "--explain", "--json", *words, status=status).stdout)
        assert facts["matches"] == len(found)
        assert facts["false_candidates"] <= facts["candidates"] <= facts["segments"]
        assert facts["rejected_by_attributes"] + facts["rejected_by_combinations"] + \
            facts["candidates"] == facts["segments"]


@pytest.mark.parametrize("number", range(ROUNDS))
def test_find_is_a_scan(number, tmp_path):
    rng = random.Random(SEED * 1000003 + number)
    world = World(rng, tmp_path)
    world.index()
    for _ in range(rng.randrange(1, 5)):
        world.check()
        for _ in range(rng.randrange(4)):
            world.change()
        world.check()
        records_now = sum(good(world.rows(name)) for name in world.files)
        world.tamis("index", "--update", "c.tamis", "-j", str(rng.randrange(1, 4)),
                    status=(0,) if records_now else (0, 2))
        if not world.files:  # the folder may not be mounted: what was known stays
            world.check()
            continue
        world.settle()
        words = ["c.tamis", world.names[0] + "=7", "--explain", "--json"]
        facts = json.loads(world.tamis("find", *words, status=(0, 1)).stdout)
        assert facts["records"] == records_now
        assert facts["changed"] == facts["grown"] == facts["removed"] == facts["new"] == 0
        world.check_table()
    world.check()


# ---- gigabytes ----------------------------------------------------------------------------------

def big_rows(rng, n):
    """Rows of a web server: common values and rare ones."""
    for i in range(n):
        yield ("10.%d.%d.%d" % (rng.random() ** 3 * 8, rng.random() ** 3 * 200, rng.random() * 250),
               "u%05d" % (rng.random() ** 4 * 100000), "/item/%d?q=\"%d\"" % (i % 5000, i % 7),
               rng.choice(("200", "404", "500")))


@pytest.mark.skipif(not LONG, reason="only in a long run")
def test_gigabytes(tmp_path):
    rng = random.Random(SEED)
    names = ["ip", "user", "path", "status"]
    folder = tmp_path / "data"
    folder.mkdir()
    for number in range(6):
        rows = big_rows(rng, 4_000_000)
        if number % 2:
            with open(folder / ("%d.jsonl" % number), "w") as out:
                out.writelines(json.dumps(dict(zip(names, row))) + "\n" for row in rows)
        else:
            with open(folder / ("%d.csv" % number), "w", newline="") as out:
                csv.writer(out, lineterminator="\n").writerow(names)
                csv.writer(out, lineterminator="\n").writerows(rows)
    subprocess.run(["zstd", "-q", "--rm", str(folder / "3.jsonl")], check=True)
    size = sum(p.stat().st_size for p in folder.iterdir())
    assert size > 10 ** 9
    subprocess.run([TAMIS, "index", "-o", "c.tamis", "--attrs", ",".join(names), "--combo", "ip+user",
                    "data"], cwd=tmp_path, check=True)
    asked = [{"ip": row[0], "user": row[1]} if i % 2 else {"ip": row[0]}
             for i, row in enumerate(big_rows(rng, 30))]
    asked += [{"user": row[1], "path": row[2]} for row in big_rows(rng, 10)]
    expected = [[] for _ in asked]
    by_value = {}
    for i, condition in enumerate(asked):
        name = next(iter(condition))
        by_value.setdefault((name, condition[name]), []).append(i)
    for path in sorted(folder.iterdir()):
        text = (subprocess.Popen(["zstdcat", str(path)], stdout=subprocess.PIPE).stdout
                if path.suffix == ".zst" else open(path, "rb"))
        with text:
            header = None
            for line in text:
                if ".csv" in path.name:
                    row = next(csv.reader([line.decode()]))
                    if header is None:
                        header = row
                        continue
                    record = dict(zip(header, row))
                else:
                    record = json.loads(line)
                for name in ("ip", "user"):
                    for i in by_value.get((name, record[name]), ()):
                        if all(record[n] == v for n, v in asked[i].items()):
                            expected[i].append(line)
    for condition, lines in zip(asked, expected):
        words = ["%s=%s" % item for item in condition.items()]
        done = subprocess.run([TAMIS, "find", "c.tamis"] + words, cwd=tmp_path, capture_output=True)
        assert done.returncode == (0 if lines else 1)
        assert done.stdout == b"".join(lines), condition


CELLS = ["", "x", '""', '"q""q"', '"two\nlines"', '"a,b"', '5" pipe', "10.0.0.1", '"\r\n"', '"x"y', "é", '"x"\ry', "xy",
         'a longer cell, quoted"', "some-user-name", '"some-user-name"', '"some-user-name, ""twice"""']
ASKED = ["x", "xy", 'q"q', "a,b", '5" pipe', "10.0.0.1", "é", "two\nlines", "x\ry", "some-user-name", 'some-user-name, "twice"']


@pytest.mark.parametrize("packed", [False, True])
def test_searching_is_parsing(packed, tmp_path):
    """A value is searched for in the text, a regular expression is tried on every record: both find the same,
    in tables with all that quotes can be, over many steps of what is read at a time."""
    rng = random.Random(SEED)
    for odd in (0.0, 0.0005, 0.2):
        rows = []
        for i in range(30000):
            wild = rng.random() < odd
            cells = [rng.choice(CELLS if wild else CELLS[-3:] + ["10.0.0.1", "xy"]) for _ in range(2)]
            if wild and rng.random() < 0.2:
                cells[1] = '"open'
            rows.append(",".join(["%d" % i, *cells]))
        text = ("n,a,b\n" + "\n".join(rows) + "\n").encode()
        path = tmp_path / ("a.csv.gz" if packed else "a.csv")
        path.write_bytes(gzip.compress(text, 1) if packed else text)

        def tamis(*words):
            done = subprocess.run([TAMIS, *words], cwd=tmp_path, capture_output=True)
            assert done.returncode < 2, (words, done.stderr)
            return done.stdout

        tamis("index", path.name, "-o", "c.tamis", "--attrs", "n,a,b:words", "--segment", "1Mi")
        for value in ASKED:
            by_text = tamis("find", "c.tamis", "-n", "a==" + value)
            assert by_text == tamis("find", "c.tamis", "-n", "a~/\\A%s\\z/" % re.escape(value).replace("/", "\\/"))
            assert odd or (by_text != b"") == (value in ("xy", "10.0.0.1", "some-user-name", ASKED[-1]))
        words = tamis("find", "c.tamis", "b~twice")
        assert words == tamis("find", "c.tamis", "b~/\\btwice\\b/") != b""
        os.unlink(tmp_path / "c.tamis")
