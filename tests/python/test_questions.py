"""tamis find = a scan, for every kind of question: random ones of random logs along their lives.

The scan is Python's (questions.py): its own readers, its own types, its own words.
"""
import datetime
import decimal
import gzip
import io
import csv
import json
import os
import random
import subprocess

import pytest

import questions
from questions import Between, Equal, Missing, Network, Phrase, Prefix, Question, Regex

ROOT = os.environ.get("TAMIS_ROOT", os.path.join(os.path.dirname(__file__), "../.."))
TAMIS = os.path.join(ROOT, os.environ.get("TAMIS", "build/release/tamis"))
SEED = int(os.environ.get("TAMIS_SEED", "7"), 0)
LONG = os.environ.get("TAMIS_LONG") == "1"
LIVES, STEPS, EACH = (400, 8, 10) if LONG else (25, 4, 10)  # questions: their product

ADDRESSES = ["10.1.%d.%d" % (a, b) for a in (0, 2, 127, 128) for b in (3, 30)] + [
    "10.2.0.1", "192.168.1.9", "::1", "2001:db8::1", "2001:db8:1::5", "::ffff:10.1.2.3", "localhost"]
USERS = ["ann", "Ann", "bob", "cho", "d,e", 'f"g', "é€", "x" * 60, "10.1.2.3"]
PATHS = ["/", "/admin/", "/admin/users", "/admin", "/index.html", "/a/b/c.php", "img/x.png"]
WORDS = ("connection refused", "Connection Refused by peer", "error 500 at 10.1.2.3:443", "user ann logged in",
         "failed: timeout=30s", "GET /a/b HTTP/1.1", "2024-05-01 was a day", "a-b-c a.b.c@x", "ünïcode wörds",
         "disk /dev/sda1 full", "refused connection")
LISTS = 0.15  # of the values that may be one
TAGS = ["red", "green", "blue", "red green"]


class Maker:
    """Values, as text; the time goes on."""

    def __init__(self, rng):
        self.rng = rng
        self.now = datetime.datetime(2024, 4, 29, 22, 0, tzinfo=datetime.timezone.utc)

    def time(self, form=None):
        self.now += datetime.timedelta(seconds=self.rng.choice([0, 1, 7, 300, 4000]))
        form = form or self.rng.choice(["iso", "iso", "offset", "blank", "fraction", "epoch", "never"])
        zoned = self.now.astimezone(datetime.timezone(datetime.timedelta(hours=2)))
        return {"iso": self.now.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "offset": zoned.strftime("%Y-%m-%dT%H:%M:%S+02:00"),
                "blank": self.now.strftime("%Y-%m-%d %H:%M:%S"),
                "fraction": self.now.strftime("%Y-%m-%dT%H:%M:%S.25Z"),
                "epoch": str(int(self.now.timestamp())), "never": "never",
                "clf": zoned.strftime("%d/%b/%Y:%H:%M:%S +0200")}[form]

    def row(self):
        rng = self.rng
        return {"ip": rng.choice(ADDRESSES), "user": rng.choice(USERS + [""]),
                "status": rng.choice(["200", "0200", "404", "500", "503", "-7", "n/a", "99999999999999999999"]),
                "ratio": rng.choice(["0.5", ".5", "5e-1", "1", "100", "-2.5", "nan"]),
                "t": self.time(), "path": rng.choice(PATHS), "msg": rng.choice(WORDS),
                "host": rng.choice(["WWW.Example", "www.example", "db1", "DB2"]), "a.b": rng.choice(TAGS), "items.sku": None}


def csv_line(row, columns, rng, delimiter=","):
    out = io.StringIO()
    csv.writer(out, lineterminator=rng.choice(["\n", "\n", "\r\n"]), delimiter=delimiter).writerow(
        [row[name] for name in columns][:rng.choice([99, 99, 99, rng.randrange(1, 9)])])
    return out.getvalue().encode()


def tsv_line(row, columns, rng):
    return ("\t".join(row[name] for name in columns) + "\n").encode()


def json_line(row, columns, rng):
    if rng.random() < 0.02:
        return rng.choice([b"{oops ann refused\n", b"\n", b"plain text: connection refused\n", b'["ann", 2]\n', b"5\n"])
    value = {}
    for name in columns:
        one = row[name]
        if rng.random() < 0.1:
            one = rng.choice([None, True, 7, 1.5])
        elif name in ("user", "status") and rng.random() < LISTS:
            one = rng.choice([[one, rng.choice(["ann", "500", "7"])] + [8] * rng.randrange(2),
                              [one, None], [None], [None, None], []])
        if rng.random() < 0.1:
            continue
        if name == "items.sku":
            value["items"] = [{"sku": rng.choice(TAGS), "n": [1, 2]} for _ in range(rng.randrange(1, 4))] + \
                [{"other": 1}] * rng.randrange(2)
        elif name == "a.b":
            value["a"] = {"b": one, "c": [1, 2]}
        else:
            value[name] = one
    return (json.dumps(value, ensure_ascii=rng.random() < 0.5) + "\n").encode()


def access_line(row, maker):
    rng = maker.rng
    if rng.random() < 0.05:
        return rng.choice([b"  at java.lang.Foo.bar(Foo.java:12)\n", b"connection refused\n", b"user ann\n"])
    user = rng.choice(["ann", "bob", "-"])
    return ('%s - %s [%s] "GET %s%s HTTP/1.1" %s %s "%s" "%s"\n' % (
        rng.choice([a for a in ADDRESSES if a != "localhost"]), user, maker.time("clf"),
        rng.choice([p for p in PATHS if p[0] == "/"]), rng.choice(["", "?q=1", "?next=/admin/"]),
        rng.choice(["200", "404", "500"]), rng.choice(["-", "0", "512"]),
        rng.choice(["-", "http://x/y"]), rng.choice(["Mozilla/5.0 (X11)", "curl/7.88", "-"]))).encode()


def syslog_line(row, maker):
    rng = maker.rng
    if rng.random() < 0.05:
        return rng.choice([b"   a line that is none\n", b"connection refused\n"])
    time = maker.time("iso") if rng.random() < 0.3 else maker.now.strftime("%b ") + "%2d" % maker.now.day + \
        maker.now.strftime(" %H:%M:%S")
    return ("%s%s %s %s%s: %s\n" % (rng.choice(["", "<34>", "<165>"]), time, rng.choice(["host", "db1"]), rng.choice(
        ["sshd", "cron", "kernel"]), rng.choice(["", "[12]", "[4242]"]), row["msg"])).encode()


def logfmt_line(row, maker):
    rng = maker.rng
    if rng.random() < 0.05:
        return rng.choice([b"panic: runtime error\n", b"connection refused, twice\n"])
    row["user"] = rng.choice(["ann", "Ann", "bob"])
    names = rng.sample(["ip", "user", "status", "msg", "path"], rng.randrange(1, 6))
    return (" ".join(["t=" + maker.time("iso"), "level=info"] + [
        "%s=%s" % (n, json.dumps(row[n], ensure_ascii=False) if " " in row[n] else row[n]) for n in names]) + "\n").encode()


def text_line(row, maker):
    rng = maker.rng
    head = rng.choice([maker.time("blank") + " ", "[" + maker.time("iso") + "] ", "[" + maker.time("epoch") + "] ",
                       maker.time("epoch") + ".5 ", "", "  at "])
    return (head + row["msg"] + rng.choice(["", " for " + row["ip"]]) + "\n").encode()


def zeek_line(row, columns, maker):
    rng = maker.rng
    if rng.random() < 0.05:
        return rng.choice([b"connection refused\n", b"a\tb\n"])
    cells = dict(row, ts="%d.%06d" % (maker.now.timestamp(), rng.randrange(10 ** 6)), tags=rng.choice(
        ["red", "red,green", "(empty)", "-", "blue,(empty),red"]))
    cells["id.orig_h"] = rng.choice(ADDRESSES)
    maker.time()
    return ("\t".join(rng.choice(["-", cells[c]]) if c not in ("ts", "id.orig_h") and rng.random() < 0.2 else cells[c]
                      for c in columns) + "\n").encode()


def w3c_line(row, columns, maker):
    rng = maker.rng
    if rng.random() < 0.05:
        return rng.choice([b"connection refused\n", b"one two three\n"])
    maker.time()
    cells = {"date": maker.now.strftime("%Y-%m-%d"), "time": maker.now.strftime("%H:%M:%S"),
             "c-ip": rng.choice(ADDRESSES), "cs-method": rng.choice(["GET", "POST"]), "user": rng.choice(["ann", "Bob", "-"]),
             "cs-uri-stem": rng.choice(PATHS), "sc-status": rng.choice(["200", "404", "500", "-"]),
             "x-msg": '"%s"' % row["msg"] if " " in row["msg"] else row["msg"]}
    return (" ".join(cells[c] for c in columns) + "\n").encode()


def pattern_line(row, columns, maker):
    if maker.rng.random() < 0.05:
        return maker.rng.choice([b"  at java.lang.Foo.bar(Foo.java:12)\n", b"connection refused\n"])
    return ("%s!%s!%s!%s!%s\n" % (maker.rng.choice(["INFO", "WARN"]), row["user"], row["status"], row["t"],
                                  row["msg"])).encode()


def json_array(lines):
    return b"[\n" + b",\n".join(line.rstrip(b"\n") for line in lines) + b"\n]\n"


# ---- worlds -------------------------------------------------------------------------------------

COLUMNS = {"csv": ["ip", "user", "status", "ratio", "t", "path", "msg", "host"],
           "tsv": ["ip", "user", "status", "t", "msg"],
           "jsonl": ["ip", "user", "status", "ratio", "t", "path", "msg", "host", "a.b",
                     "items.sku"],
           "syslog": ["time", "hostname", "app-name", "procid", "msg", "pri", "facility", "severity"],
           "logfmt": ["t", "level", "ip", "user", "status", "msg", "path"],
           "zeek": ["ts", "id.orig_h", "user", "status", "tags", "msg"],
           "w3c": ["date", "time", "c-ip", "cs-method", "user", "cs-uri-stem", "sc-status", "x-msg"],
           "pat": ["level", "user", "status", "t", "msg"],
           "txt": ["time", "line"],
           "log": ["host", "user", "time", "request", "method", "path", "query", "status", "bytes", "agent"]}
COLUMNS["json"] = COLUMNS["jsonl"]
HEADS = {"csv": lambda c: ",".join(c) + "\n", "tsv": lambda c: "\t".join(c) + "\n",
         "zeek": lambda c: "#separator \\x09\n#set_separator\t,\n#fields\t%s\n#types\t%s\n" % (
             "\t".join(c), "\t".join("set[string]" if name == "tags" else "string" for name in c)),
         "w3c": lambda c: "#Fields: %s\n#Software: test\n" % " ".join(c)}
TYPES = {"items.sku": "text", "ts": "time", "id.orig_h": "ip", "tags": "text", "date": "text", "c-ip": "ip", "cs-method": "text",
         "cs-uri-stem": "path", "sc-status": "int", "x-msg": "words",
         "ip": "ip", "user": "text", "status": "int", "ratio": "dec", "t": "time", "path": "path",
         "msg": "words", "host": "fold", "a.b": "text", "time": "time", "method": "text", "query": "text",
         "hostname": "text", "app-name": "fold", "procid": "text", "pri": "int", "facility": "int",
         "severity": "int", "level": "text", "bytes": "int", "agent": "words", "line": "words", "request": "text"}


def last_header(form, text):
    """The columns of the last header in a text."""
    parts = {"csv": ",", "w3c": " "}
    rows = [line.split(parts.get(form, "\t")) for line in text.split("\n")]
    rows = [row[1:] if row[0] in ("#fields", "#Fields:") else row for row in rows]
    return next((row for row in reversed(rows) if set(row) == set(COLUMNS[form])), None)


class World:
    """A folder of logs, as Python knows it, and a catalog of it."""

    def __init__(self, rng, tmp, zone=None):
        self.rng, self.tmp, self.made = rng, tmp, 0
        self.maker = Maker(rng)
        self.zone = zone or rng.choice(["UTC", "UTC", "Europe/Berlin", "America/New_York"])
        self.reference = 1714600000
        self.files, self.clock, self.open = {}, 1714600000, {}
        (tmp / "data").mkdir()
        self.forms = rng.sample(list(COLUMNS), rng.randrange(1, 5))
        for _ in range(rng.randrange(1, 5)):
            self.create()
        self.index()

    # -- files

    def line(self, form, columns):
        row = self.maker.row()
        lines = {"log": access_line, "syslog": syslog_line, "logfmt": logfmt_line, "txt": text_line}
        if form in lines:
            return lines[form](row, self.maker)
        lines = {"zeek": zeek_line, "w3c": w3c_line, "pat": pattern_line}
        if form in lines:
            return lines[form](row, columns, self.maker)
        return {"csv": csv_line, "tsv": tsv_line, "jsonl": json_line}[form](row, columns, self.rng)

    def text(self, form, columns, most):
        n = self.rng.randrange(1, most)
        if form != "json":
            return b"".join(self.line(form, columns) for _ in range(n))
        lines = (self.line("jsonl", columns) for _ in range(n))
        return json_array([line for line in lines if line.startswith(b'{"') or line == b"{}\n"] or [b"{}"])

    def path(self, name):
        return self.tmp / "data" / name

    def stamp(self, name):
        self.clock += 1
        os.utime(self.path(name), (self.clock, self.clock))

    def pack(self, name, data):
        return gzip.compress(data, mtime=0) if name.endswith(".gz") else data

    def create(self, name=None):
        rng = self.rng
        form = name.split(".")[1] if name else rng.choice(self.forms)
        name = name or "%s%d.%s%s" % (rng.choice("abc"), self.made, form, rng.choice(["", "", ".gz"]))
        self.made += 1
        columns = COLUMNS[form][:]
        data = b""
        if form in HEADS:
            rng.shuffle(columns)
            data = HEADS[form](columns).encode()
        data += self.text(form, columns, rng.choice([3, 40, 150]))
        self.path(name).write_bytes(self.pack(name, data))
        self.files[name], self.open[name] = data, columns
        self.stamp(name)

    def grow(self, name):
        form = name.split(".")[1]
        more = b""
        if form in HEADS and self.rng.random() < 0.3:  # another file was joined, or a server restarted
            self.rng.shuffle(self.open[name])
            more = HEADS[form](self.open[name]).encode()
        more += self.text(form, self.open[name], 20)
        if not self.files[name].endswith(b"\n"):
            more = b"\n" + more
        if form not in ("csv", "tsv", "json") and self.rng.random() < 0.3:
            more = more[:-1]
        with open(self.path(name), "ab") as out:
            out.write(self.pack(name, more))
        self.files[name] += more
        self.stamp(name)

    def change(self):
        rng = self.rng
        name = rng.choice(list(self.files))
        step = rng.randrange(7)
        if step <= 1:
            self.grow(name)
        elif step == 2:
            self.create()
        elif step == 3:  # rotated: another name, and mostly a new one in its place
            self.made += 1
            to = "%s%d.%s" % (rng.choice("abc"), self.made, name.split(".", 1)[1])
            self.path(name).rename(self.path(to))
            self.files[to], self.open[to] = self.files.pop(name), self.open.pop(name)
            if rng.random() < 0.7:
                self.create(name)
        elif step == 4:  # cut short, by whole lines
            data = self.files[name]
            head = data.find(b"\n") + 1
            cut = data.find(b"\n", rng.randrange(head, len(data) + 1) - 1) + 1
            form = name.split(".")[1]
            if form == "json":  # an array, by its end
                cut = data.find(b"\n]\n") + 3
            elif (b'"' in data and form == "csv") or cut < head:
                return
            if form in HEADS:  # what follows is written by the header that is left
                self.open[name] = last_header(form, data[:cut].decode()) or self.open[name]
            self.files[name] = data[:cut]
            self.path(name).write_bytes(self.pack(name, data[:cut]))
            self.stamp(name)
        elif step == 5:  # other bytes of the same size in the middle
            data = self.files[name].replace(b"10.1.2.3", b"10.1.9.9").replace(b"ann", b"ben")
            self.files[name] = data
            self.path(name).write_bytes(self.pack(name, data))
            self.stamp(name)
        elif len(self.files) > 1:
            self.path(name).unlink()
            del self.files[name], self.open[name]

    # -- the program

    def tamis(self, *words, status=(0,)):
        done = subprocess.run([TAMIS, *words], cwd=self.tmp, capture_output=True)
        assert done.returncode in status, (words, done.returncode, done.stderr)
        return done

    def index(self):
        rng = self.rng
        names = sorted({name for form in self.forms for name in COLUMNS[form]})
        words = ["--tz", self.zone, "--segment", str(rng.choice([300, 2000, 100000]))]
        if rng.random() < 0.7:  # some of them; types that are not said are guessed
            some = rng.sample(names, rng.randrange(1, min(7, len(names)) + 1))
            if rng.random() < 0.5 and "line" not in some:
                some.append("line")
            words += ["--attrs", ",".join(n + ":" + TYPES[n] if rng.random() < 0.8 else n for n in some)]
            if len(some) > 1 and rng.random() < 0.5:
                words += ["--combo", "+".join(rng.sample(some, 2))]
        if set(self.forms) & {"csv", "tsv", "jsonl", "json", "logfmt", "pat"}:
            words += ["--time", "t"]
        if "pat" in self.forms:
            words += ["--format", "auto", "--pattern", questions.PATTERN]
        while self.tamis("index", "data", "-o", "c.tamis", *words, status=(0, 2)).returncode:
            self.create()  # no record has any of the attributes
        self.learn()

    def learn(self):
        facts = json.loads(self.tamis("find", "c.tamis", "--json").stdout)
        self.types = {a["name"]: a["type"] for a in facts["attributes"]}
        self.known = dict(self.files)

    def records(self, name):
        return questions.READERS[name.split(".")[1]](self.files[name], self)

    def scan(self, question):
        return [(name, record) for name in sorted(self.files) for record in self.records(name)
                if question.holds(record, self)]


# ---- questions ----------------------------------------------------------------------------------

def values_of(world, name):
    """What records have there, and what none has."""
    rng, found = world.rng, []
    for file in rng.sample(sorted(world.files), min(2, len(world.files))):
        records = list(world.records(file))
        for record in rng.sample(records, min(4, len(records))):
            found += [v for v in questions.elements(record, name) if v is not None]
    return found + [b"nowhere", b"10.1.2.3", b"500", b"7"]


def day_of(text, zone):
    """The span that a day, an hour or a minute stands for."""
    units = {10: None, 13: 3600, 16: 60}
    low = questions.moment((text + "T00:00:00"[len(text) - 10:] if len(text) == 10 else
                            text + ":00:00"[:6 - (len(text) - 13)] if len(text) == 13 else
                            text + ":00").encode(), zone, 0)
    if units[len(text)]:
        return low, low + units[len(text)]
    after = (datetime.date.fromisoformat(text) + datetime.timedelta(days=1)).isoformat()
    return low, questions.moment(after.encode(), zone, 0)


def time_span(world):
    rng = world.rng
    when = world.maker.now - datetime.timedelta(seconds=rng.randrange(400000))
    text = when.strftime(rng.choice(["%Y-%m-%d", "%Y-%m-%dT%H", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%SZ"]))
    if text.endswith("Z"):
        exact = questions.moment(text.encode(), world.zone, 0)
        return text, exact, exact, True
    low, high = day_of(text, world.zone)
    return text, low, high, False


def range_clause(world, name, kind):
    rng = world.rng
    ends = []
    for _ in range(2):
        if kind == "time":
            ends.append(time_span(world))
        else:
            text = rng.choice(["0", "0.5", "200", "404", "500", "-7", "1e2"][1 if kind == "dec" else 0::1])
            if kind == "int":
                text = rng.choice(["0", "200", "404", "500", "-7", "512"])
            number = decimal.Decimal(text)
            ends.append((text, number, number, True))
    ends.sort(key=lambda end: end[1])
    (a, low, _, _), (b, _, high, exact) = ends
    how = rng.randrange(3)
    if how == 0:
        return "%s..%s" % (a, b), Between(low, high, False, not exact)
    return (a + "..", Between(low)) if how == 1 else (".." + b, Between(None, high, False, not exact))


def compare(world, name, kind):
    rng = world.rng
    if kind == "time":
        text, low, high, exact = time_span(world)
    else:
        text = rng.choice(["0", "200", "404", "500", "-7"])
        low = high = decimal.Decimal(text)
        exact = True
    return {0: (">=" + text, Between(low)), 1: (">" + text, Between(high, None, exact)),
            2: ("<=" + text, Between(None, high, False, not exact)),
            3: ("<" + text, Between(None, low, False, True))}[rng.randrange(4)]


def phrase_of(world, value):
    words = [m[0] for m in questions.tokens(value)]
    rng = world.rng
    if not words or rng.random() < 0.2:
        return rng.choice([b"refused", b"connection refused", b"10.1.2.3", b"ann", b"a.b.c", b"nowhere"])
    at = rng.randrange(len(words))
    phrase = b" ".join(words[at:at + rng.choice([1, 1, 2])])
    return phrase.upper() if rng.random() < 0.3 and phrase.isascii() else phrase


def add_set(world, q, name, kind):
    """One alternative, or one that is excluded."""
    rng = world.rng
    how = "none" if rng.random() < 0.2 else "any"
    op = "!=" if how == "none" else "="
    pick = rng.randrange(12)
    b = name.encode()
    if pick == 0 and how == "any":
        q.add(b + b"!", name, Missing(), how)
    elif pick == 1:
        q.add(b + op.encode(), name, Equal([b""]), how)
    elif pick == 2 and how == "any":
        text = rng.choice(values_of(world, name))[:rng.randrange(1, 9)] or b"x"
        q.add(b + b"^=" + text, name, Prefix(text), how)
    elif pick in (3, 4) and kind == "ip":
        text = rng.choice(["10.1.0.0/17", "10.0.0.0/8", "10.1.2.0/24", "10.1.2.3/31", "2001:db8::/32", "0.0.0.0/0",
                           "::/0", "10.0.0.0/7"])
        q.add(b + op.encode() + text.encode(), name, Network(text), how)
    elif pick in (3, 4, 5) and kind in questions.ORDERED:
        text, clause = range_clause(world, name, kind)
        q.add(b + op.encode() + text.encode(), name, clause, how)
    elif pick == 6:
        values = [v for v in rng.choices(values_of(world, name), k=rng.randrange(1, 30)) if b"\n" not in v and v]
        lines, more = [b"=" + v for v in values or [b"nothing"]], []
        for _ in range(rng.randrange(4)):
            if kind in questions.ORDERED:
                text, clause = range_clause(world, name, kind)
            elif kind == "ip":
                text = rng.choice(["10.1.0.0/17", "10.1.2.0/24", "10.1.2.3/31", "2001:db8::/32"])
                clause = Network(text)
            else:
                break
            lines.insert(rng.randrange(len(lines) + 1), text.encode())
            more.append(clause)
        file = world.tmp / ("list%d" % rng.randrange(10 ** 9))
        file.write_bytes(rng.choice([b"", b"\xef\xbb\xbf"]) + b"\n".join(lines) + rng.choice([b"", b"\n"]))
        q.add(b + op.encode() + b"@" + file.name.encode(), name, Equal(values or [b"nothing"]), how)
        (q.none if how == "none" else q.any)[name] += more
    else:
        for value in rng.choices(values_of(world, name), k=rng.choice([1, 1, 2])):
            q.add(b + op.encode() + b"=" + value, name, Equal([value]), how)


def add_word(world, q, name, kind):
    rng = world.rng
    pick = rng.randrange(10)
    b = name.encode()
    if pick <= 4:
        add_set(world, q, name, kind)
    elif pick <= 6 and kind in questions.ORDERED:
        text, clause = compare(world, name, kind)
        q.add(b + text.encode(), name, clause, "all")
    elif pick <= 8:
        phrase = phrase_of(world, rng.choice(values_of(world, name)))
        q.add(b + b"~" + phrase, name, Phrase(phrase), "all")
    else:
        text, pattern = rng.choice([(b"/ann/", b"ann"), (b"/^10[.]1[.]/", rb"^10\.1\."), (b"/[0-9]{3}$/", rb"[0-9]{3}$"),
                                    (b"/REFUSED/i", b"(?i)refused"), (b"/^$/", b"^$"), (b"/a|b/", b"a|b")])
        q.add(b + b"~" + text, name, Regex(pattern), "all")


def random_question(world, names=None):
    rng, q = world.rng, Question()
    names = sorted(set(world.types) - {"line", "request"}) if names is None else names
    for name in rng.sample(names, min(len(names), rng.choice([1, 1, 1, 2, 2, 3]))):
        add_word(world, q, name, world.types[name])
        if rng.random() < 0.2:
            add_word(world, q, name, world.types[name])
    if rng.random() < 0.25 or not q.words:
        phrase = phrase_of(world, rng.choice([w.encode() for w in WORDS]))
        q.add(b'"' + phrase + b'"', "line", Phrase(phrase), "all")
    if rng.random() < 0.25:
        (a, low, _, _), (b, _, high, exact) = sorted([time_span(world) for _ in range(2)], key=lambda s: s[1])
        if rng.random() < 0.7:
            q.options += ["--since", a]
        else:
            low = None
        if low is None or rng.random() < 0.7:
            q.options += ["--until", b]
        else:
            high, exact = None, True
        q.period = Between(low, high, False, not exact)
    rng.shuffle(q.words)
    return q


def check(world, question):
    rng, found = world.rng, world.scan(question)
    words = ["c.tamis", *question.words, *question.options, "-j", str(rng.randrange(1, 4))]
    lost = [name for name in world.known if name not in world.files]
    status = (0 if found else 1,) + ((2,) if lost else ())
    done = world.tamis("find", *words, status=status)
    whole = [r.raw if r.raw.endswith(b"\n") else r.raw + b"\n" for _, r in found]
    assert done.stdout == b"".join(whole), (words, world.types)
    form = rng.randrange(5)
    names = sorted(set(world.types) - {"line"})
    if form == 0 or not names:
        assert world.tamis("find", "--count", *words, status=status).stdout == b"%d\n" % len(found)
    elif form == 1:
        name = rng.choice(names)
        counts = {}
        for _, record in found:
            for value in questions.elements(record, name):
                counts[value] = counts.get(value, 0) + 1
        lines = world.tamis("find", "--count-by", name, "--json", *words, status=status).stdout.splitlines()
        told = [json.loads(line) for line in lines]
        assert sorted((c["count"], c.get("value")) for c in told if "value" in c) == sorted(
            (n, v.decode("utf-8", "replace")) for v, n in counts.items() if v is not None)
        assert [c["count"] for c in told] == sorted(counts.values(), reverse=True)
    elif form == 2:
        names = rng.sample(names, min(3, len(names)))
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(names)
        for _, record in found:
            writer.writerow([b";".join(v for v in questions.elements(record, n) if v is not None).decode(
                "utf-8", "surrogateescape") for n in names])
        got = world.tamis("find", "--fields", ",".join(names), *words, status=status).stdout
        assert list(csv.reader(io.StringIO(got.decode("utf-8", "surrogateescape"), newline=""))) == list(
            csv.reader(io.StringIO(out.getvalue(), newline="")))
    elif form == 3:
        lines = world.tamis("find", "--json", *words, status=status).stdout.splitlines()
        assert len(lines) == len(found)
        for line, (name, record) in zip(lines, found):
            place = json.loads(line)
            text = world.files[name]
            assert place["file"] == "data/" + name
            assert text[place["offset"]:][:len(record.raw)] == record.raw
            assert text[:place["offset"]].count(b"\n") + 1 == place["line"]
    else:
        facts = json.loads(world.tamis("find", "--explain", "--json", *words, status=status).stdout)
        assert facts["matches"] == len(found)


@pytest.mark.parametrize("number", range(LIVES))
def test_find_is_a_scan_for_any_question(number, tmp_path):
    rng = random.Random(SEED * 7919 + number)
    world = World(rng, tmp_path)
    for step in range(STEPS):
        for _ in range(EACH):
            check(world, random_question(world))
        for _ in range(rng.randrange(4)):
            world.change()
        if rng.random() < 0.5:
            world.tamis("index", "--update", "c.tamis", status=(0, 2))
            world.learn()


@pytest.mark.parametrize("number", range(LIVES // 5))
def test_several_catalogs_are_one_scan_after_the_other(number, tmp_path):
    rng = random.Random(SEED * 104729 + number)
    worlds = []
    for name in ("a", "b", "c")[:rng.randrange(2, 4)]:
        (tmp_path / name).mkdir()
        worlds.append(World(rng, tmp_path / name, worlds[0].zone if worlds else None))
    first = worlds[0]
    paths = [rng.choice(["../%s/c.tamis", "../%s/data/../c.tamis"]) % world.tmp.name for world in worlds]
    for step in range(STEPS):
        for _ in range(EACH // 2):
            alike = sorted(name for name, kind in first.types.items() if name not in ("line", "request") and
                           all(world.types.get(name) == kind for world in worlds))
            question = random_question(first, alike)
            found = [r.raw for world in worlds for _, r in world.scan(question)]
            lost = any(name not in world.files for world in worlds for name in world.known)
            words = [*paths, "--", *question.words]
            done = first.tamis("find", *question.options, *words, status=(0 if found else 1,) + ((2,) if lost else ()))
            assert done.stdout == b"".join(r if r.endswith(b"\n") else r + b"\n" for r in found), words
        for world in worlds:
            world.change()
            if rng.random() < 0.5:
                world.tamis("index", "--update", "c.tamis", status=(0, 2))
                world.learn()


def test_fields_that_no_sample_had(tmp_path):
    """They filter records exactly; what no record has is an error, said when all was read."""
    lines = ['{"ip": "10.0.0.%d", "n": %d}' % (i % 50, i) for i in range(400000)]
    lines[390000] = '{"ip": "10.0.0.9", "late": {"er": ["x", "y"]}}'
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")

    def tamis(*words):
        done = subprocess.run([TAMIS, *words], cwd=tmp_path, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    assert tamis("index", "a.jsonl", "-o", "c.tamis", "--attrs", "ip,n")[0] == 0
    assert tamis("find", "c.tamis", "late.er=y") == (0, lines[390000] + "\n", "")
    assert tamis("find", "c.tamis", "late.er=z") == (1, "", "")
    assert tamis("find", "c.tamis", "late.er!")[:2] == (2, "")  # all but one; a wrong name would say the same
    assert tamis("find", "--fields", "ip,late.er", "c.tamis", "late.er^=x", "n!")[1] == "ip,late.er\n10.0.0.9,x;y\n"
    status, out, error = tamis("find", "c.tamis", "lete.er=y")
    assert status == 2 and out == "" and "no input has an attribute 'lete.er'; there are ip, n" in error
    status, out, error = tamis("find", "c.tamis", "ip=10.9.9.9", "lete.er=y")  # not all was read
    assert status == 1 and "no record that was read has an attribute 'lete.er'" in error
    status, out, error = tamis("find", "c.tamis", "ip=10.0.0.9", "--fields", "late.er", "--limit", "1")  # nor here
    assert (status, out) == (0, 'late.er\n""\n') and "no record that was read has an attribute 'late.er'" in error
    status, out, error = tamis("find", "c.tamis", "late.er>y")
    assert status == 2 and "late.er is in no sampled record (is the name right?), therefore text, which has no order" in error
    for word, lacks in ("late.er=5..9", "ranges"), ("late.er=10.0.0.0/8", "networks"):
        status, out, error = tamis("find", "c.tamis", word)
        assert status == 2 and "late.er is in no sampled record" in error and "which has no " + lacks in error


def test_fields_that_no_sample_had_in_catalogs_with_different_times(tmp_path):
    """The same attribute has different columns in their questions."""
    stamp = "2026-05-0%dT00:00:00Z"
    first = ['{"ip": "10.0.0.%d"}' % (i % 50) for i in range(50)]
    second = ['{"ip": "10.0.0.%d", "seen_at": "%s"}' % (i % 50, stamp % (1 + i % 9)) for i in range(200000)]
    second[190000] = '{"ip": "10.0.0.9", "seen_at": "%s", "late": "x"}' % (stamp % 2)
    for name, lines in ("a", first), ("b", second):
        (tmp_path / (name + ".jsonl")).write_text("\n".join(lines) + "\n")
        subprocess.run([TAMIS, "index", name + ".jsonl", "-o", name + ".tamis", "--attrs", "ip"], cwd=tmp_path, check=True)
    for catalogs in (["a.tamis", "b.tamis"], ["b.tamis", "a.tamis"]):
        done = subprocess.run([TAMIS, "find", "--since", "2026-05-02", "--fields", "ip,late", *catalogs, "--",
                               "ip!=1.1.1.1"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0 and "no input has" not in done.stderr, (catalogs, done.stderr)
        assert "10.0.0.9,x\n" in done.stdout


def test_texts_that_repeat_are_indexed_by_words(tmp_path):
    """Agents of web servers: their words are asked of the catalog, in every segment that has them."""
    agents = ["Mozilla/5.0 (X11; Linux x86_64; rv:%d.0) Gecko Firefox" % n for n in range(60, 70)]
    rng = random.Random(3)
    woods = " Zebrawood/1.0 Rosewood Teak Ebony Balsa Cedar Maple Larch"
    with open(tmp_path / "a.csv", "w") as out:
        out.write("host,agent\n")
        for i in range(20000):
            rare = i in (5000, 15000)
            out.write("10.0.%d.%d,%s%s\n" % (i // 250, i % 250, rng.choice(agents), woods if rare else ""))
    with open(tmp_path / "a.csv") as lines, open(tmp_path / "b.jsonl", "w") as out:
        for row in csv.DictReader(lines):
            out.write(json.dumps(row) + "\n")
    for name in ("a.csv", "b.jsonl"):
        subprocess.run([TAMIS, "index", name, "-o", "c.tamis", "--segment", "65536"], cwd=tmp_path, check=True)
        over = 0  # words with false candidates: about one in a hundred, often in many segments at once
        for word, n, most in ([("gecko", 20000, 99), ("zebra", 0, 0), ("zebrawood/1.0", 2, 2)] +
                              [(word.split("/")[0].lower(), 2, 2) for word in woods.split()] +
                              [("zebra%d" % i, 0, 0) for i in range(20)]):
            done = subprocess.run([TAMIS, "find", "c.tamis", "--explain", "--json", "agent~" + word], cwd=tmp_path,
                                  capture_output=True, text=True)
            told = json.loads(done.stdout)
            assert told["matches"] == n, (name, word, told)
            over += told["candidates"] > most
            assert told["segments"] > 10
        assert over <= 5
