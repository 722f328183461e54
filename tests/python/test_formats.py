"""The formats of logs against readers written from their documentation: the same records and values,
of samples and of samples changed at random, however the file is cut; and times against datetime."""
import bz2
import collections
import datetime
import gzip
import json
import lzma
import os
import random
import re
import subprocess
import zoneinfo

import pytest

ROOT = os.environ.get("TAMIS_ROOT", os.path.join(os.path.dirname(__file__), "../.."))
BUILD = os.environ.get("TAMIS_BUILD", os.path.join(ROOT, "build/release"))
DUMP = os.path.join(ROOT, BUILD, "tests/unit/test_reader")
TAMIS = os.path.join(ROOT, BUILD, "tamis")
SAMPLES = os.path.join(ROOT, "tests/samples")
SEED = int(os.environ.get("TAMIS_SEED", "7"), 0)
LONG = os.environ.get("TAMIS_LONG") == "1"
ROUNDS = 300 if LONG else 30
UTC = datetime.timezone.utc
REFERENCE = int(datetime.datetime(2024, 6, 1, tzinfo=UTC).timestamp())


# ---- times ---------------------------------------------------------------------------------------

MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
ZONE = r"(?P<zone>[Zz]| ?(?:UTC|GMT)| ?[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?"
CLOCK = r"(?P<H>\d\d):(?P<M>\d\d)(?::(?P<S>\d\d)(?:[.,](?P<f>\d+))?)?"
FORMS = [re.compile(form, re.I | re.A) for form in (
    r"(?P<y>\d{4})(?P<sep>[-/.])(?P<m>\d\d)(?P=sep)(?P<d>\d\d)[T _]" + CLOCK + ZONE,
    r"(?P<d>\d\d)(?P<sep>[-/])(?P<b>[a-z]{3})(?P=sep)(?P<y>\d{4})[: ]" + CLOCK + ZONE,
    r"(?P<y>\d{4})?(?P<m>\d\d)(?P<d>\d\d) (?P<H>\d\d):(?P<M>\d\d):(?P<S>\d\d)[.,](?P<f>\d{6})(?!\d)",
    r"(?:mon|tue|wed|thu|fri|sat|sun), (?P<d>\d\d| ?\d) (?P<b>[a-z]{3}) (?P<y>\d{4}) " + CLOCK + ZONE,
    r"(?P<d>\d\d| ?\d) (?P<b>[a-z]{3}) (?P<y>\d{4}) " + CLOCK + ZONE,
    r"(?:mon|tue|wed|thu|fri|sat|sun) (?P<b>[a-z]{3}) (?P<d>\d\d| ?\d) " + CLOCK + r" (?P<y>\d{4})(?!\d)",
    r"(?:(?:mon|tue|wed|thu|fri|sat|sun) )?(?P<b>[a-z]{3}) (?P<d>\d\d| ?\d) (?:(?P<y>\d{4}) )?" + CLOCK,
)]


def lead(text, reference=REFERENCE):
    """(length, nanoseconds since 1970 in UTC) of a time at the start of a text, else None."""
    for form in FORMS:
        match = form.match(text)
        if not match or len(text) < 10:
            continue
        part = match.groupdict()
        zone, end = part.get("zone"), match.end()
        if zone and re.match("[A-Za-z]", text[end:end + 1]):
            zone, end = None, match.start("zone")
        month = part.get("m") or part["b"].lower()
        if month in MONTHS:
            month = MONTHS.index(month) + 1
        elif not part.get("m"):
            continue
        offset = 0
        if zone and zone.strip()[0] in "+-":
            digits = zone.strip()[1:].replace(":", "")
            offset = (int(digits[:2]) * 3600 + int(digits[2:] or 0) * 60) * \
                (-1 if "-" in zone else 1)
        now = datetime.datetime.fromtimestamp(reference, UTC).year
        for year in [int(part["y"])] if part.get("y") else range(now + 1, now - 9, -1):
            second = int(part.get("S") or 0)
            try:
                moment = datetime.datetime(year, int(month), int(part["d"]), int(part["H"]),
                                           int(part["M"]), min(second, 59), tzinfo=UTC)
            except ValueError:
                continue
            if second > 60:
                continue
            seconds = int(moment.timestamp()) + (second == 60) - offset
            if not part.get("y") and seconds > reference + 86400:
                continue
            return end, seconds * 10 ** 9 + int(((part.get("f") or "") + "0" * 9)[:9])
    return None


def normal(nanoseconds):
    """RFC 3339 in UTC."""
    seconds, rest = divmod(nanoseconds, 10 ** 9)
    text = (datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)).isoformat()
    return (text + (".%09d" % rest).rstrip("0") * bool(rest) + "Z").encode()


def stamp(text):
    if re.fullmatch(r"\d{4}([-/])\d\d\1\d\d", text, re.A):
        text += " 00:00"
    found = lead(text)
    if found and found[0] == len(text):
        return found[1]
    match = re.fullmatch(r"(-?)(\d+)(?:\.(\d+))?", text, re.A)
    if not match or len(match[2]) > 18:
        return None
    whole, unit = int(match[2]), 1
    while whole >= 10 ** 11 * unit and unit < 10 ** 9:
        unit *= 1000
    value = whole * (10 ** 9 // unit) + int(((match[3] or "") + "0" * 9)[:9]) // unit
    value = -value if match[1] else value
    return value if value < 253402300800 * 10 ** 9 else None


# ---- the formats ---------------------------------------------------------------------------------

def quoted(text, at):
    """The end of the quoted text that opens before `at`: a quote that no backslash hides and that a
    blank or the end follows."""
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == '"' and text[at + 1:at + 2] in ("", " "):
            return at
        at += 1
    return None


ACCESS = "vhost host ident user time request method path query protocol status bytes referer agent"


def access(line):
    """https://httpd.apache.org/docs/2.4/mod/mod_log_config.html, "Custom Log Formats"."""
    head = re.match(r'((?:[^ \[][^ ]* ){3,})\[([^\]"]{20,})\] "', line)
    words = head[1].split(" ")[:-1] if head else []
    words = words if len(words) > 3 and words[1] != "-" else [None, *words]
    if not head or head[2][2] != "/" or head[2][6] != "/" or (len(words) > 4 and words[2] != "-"):
        return None
    end = quoted(line, head.end())
    tail = re.match(r" (\d+|-) (\d+|-)(?= |$)", line[end + 1:], re.A) if end is not None else None
    if not tail:
        return None
    got = dict(zip("vhost host ident user time".split(), [*words[:3], " ".join(words[3:]), head[2]]))
    got.update(request=line[head.end():end], status=tail[1], bytes=tail[2])
    words = got["request"].split(" ")
    if len(words) > 1 and words[0]:
        got["method"], target = words[0], words[1:]
        if len(target) > 1 and target[-1].startswith("HTTP/") and len(target[-1]) > 5:
            got["protocol"] = target.pop()
        target = " ".join(target)
        got["path"], _, query = target.partition("?")
        if "?" in target:
            got["query"] = query
    at = end + 1 + tail.end()
    for name in ("referer", "agent"):
        if line[at:at + 2] != ' "' or len(line) - at < 3:
            break
        end = quoted(line, at + 2)
        if end is None:
            return None
        got[name] = line[at + 2:end]
        at = end + 1
    return {k: v for k, v in got.items() if v not in (None, "-")}


SYSLOG = "pri facility severity version time hostname app-name procid msgid structured-data msg"


def tag(text, got):
    """TAG of RFC 3164, its [number], its colon: what follows, or None."""
    match = re.match(r"([^ :\[](?:[^ :\[]|:(?! |$))*)(?:\[([^ \]]*)\](:)?|:(?= |$))", text)
    if not match:
        return None
    got["app-name"] = match[1]
    if match[2] is not None:
        got["procid"] = match[2]
    rest = text[match.end():]
    return rest[1:] if rest.startswith(" ") else rest


def syslog(line):
    """RFC 3164 section 4, RFC 5424 section 6."""
    got, priority = {}, re.match(r"<(\d{1,3})>", line, re.A)
    if priority:
        if int(priority[1]) > 191:
            return None
        got.update(pri=priority[1], facility=str(int(priority[1]) // 8),
                   severity=str(int(priority[1]) % 8))
        line = line[priority.end():]
        if line.startswith("1 ") and len(line) > 2:
            match = re.fullmatch(
                r'(\S+) (\S+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) '
                r'(-|(?:\[(?:[^"\]]|"(?:[^"\\]|\\.)*")*\])+)(?: (.*))?', line)
            if not match or (match[2] != "-" and (lead(match[2]) or (0,))[0] != len(match[2])):
                return None
            names = "version time hostname app-name procid msgid structured-data".split()
            got.update((n, v) for n, v in zip(names, match.groups()) if v != "-")
            if match[8] is not None:
                got["msg"] = match[8].removeprefix("\xef\xbb\xbf")
            return got
    found = lead(line)
    if not found or line[found[0]:found[0] + 1] != " " or \
            not (line[0].isalpha() or line[10:11] == "T"):
        return None
    got["time"], rest = line[:found[0]], line[found[0] + 1:]
    first, blank, behind = rest.partition(" ")
    own = {}
    if first and tag(first, own) == "" and first[-1] in ":]":
        got.update(own)
        got["msg"] = behind
        return got
    if not first or not blank:
        return None
    got["hostname"] = first
    message = tag(behind, got)
    got["msg"] = behind if message is None else message
    return got


LOGFMT = "at method path fwd status bytes time level msg ts caller empty bare err a.b"


def logfmt(line):
    """https://brandur.org/logfmt: pairs; strings in quotes as JSON has them."""
    got, at, pairs = {}, 0, 0
    while True:
        at += len(line[at:]) - len(line[at:].lstrip(" \t"))
        if at == len(line):
            return got if pairs else None
        match = re.compile(r'[^\x00- ="]+').match(line, at)
        if not match:
            return None
        key, at = match[0], match.end()
        if line[at:at + 1] != "=":
            if not pairs or line[at:at + 1] == '"':
                return None
            got[key] = ""
            continue
        pairs += 1
        text = re.compile(r'="((?:[^"\\]|\\.)*)"(?=[\x00- ]|$)').match(line, at)
        if text:
            got[key] = re.sub(r'\\(u[0-9a-fA-F]{4}|.)', unescape, text[1])
        elif line[at:at + 2] == '="':
            return None
        else:
            text = re.compile(r"=([^ \t]*)").match(line, at)
            got[key] = text[1]
        at = text.end()


def unescape(match):
    try:
        return json.loads('"%s"' % match[0]).encode("utf-8", "surrogatepass").decode("latin-1")
    except ValueError:
        return match[0]


def columns(names, separator, unset, empty=None, lists=()):
    def read(line):
        cells = line.split(separator)
        if len(cells) != len(names):
            return None
        got = {}
        for name, cell in zip(names, cells):
            if cell == unset:
                continue
            got[name] = "" if cell == empty else cell
            if name in lists and cell != empty:
                cells_ = ["" if c == empty else c for c in cell.split(",") if c != unset]
                got[name] = cells_ if len(cells_) > 1 else cells_[0] if cells_ else None
        return {k: v for k, v in got.items() if v is not None}
    return read


ZEEK = "ts uid id.orig_h id.orig_p method uri tags resp_fuids"
zeek = columns(ZEEK.split(), "\t", "-", "(empty)", ("tags", "resp_fuids"))
W3C = "date time c-ip cs-username s-ip s-port cs-method cs-uri-stem cs-uri-query sc-status " \
    "cs(User-Agent)"


def w3c(line):
    """https://www.w3.org/TR/WD-logfile.html: fields between blanks, strings in quotes."""
    cells, line = [], line.rstrip(" \t")
    while True:
        match = re.match(r'"([^"]*)"(?=[ \t]|$)|([^ \t]*)', line)
        cells.append((match[0], match[1] if match[1] is not None else match[2]))
        line = line[match.end():]
        if not line:
            break
        line = line[1:]
    if len(cells) != len(W3C.split()):
        return None
    got = {n: c for n, (_, c) in zip(W3C.split(), cells) if c != "-"}
    raw = {n: r for n, (r, _) in zip(W3C.split(), cells)}
    if raw["date"] and raw["time"] and len(raw["date"] + raw["time"]) < 63:
        got["time"] = "%s %sZ" % (raw["date"], raw["time"])
    return got


def text(line):
    start = bool(re.match(r"\[|[IWEF](\d{4}|\d{8}) ", line, re.A))
    found = lead(line[start:])
    seconds = re.match(r"\[([1-9]\d{9}(?:\.\d+)?)\]" if start else r"([1-9]\d{9}\.\d+) ", line, re.A)
    if found:
        return {"time": line[start:start + found[0]]}
    return {"time": seconds[1]} if seconds else {}


PATTERN = r"^(?<time>\S+ \S+) (?<level>[A-Z]+)(?: \[(?<thread>[^\]]*)\])? (?<msg>.*)$"


def pattern(line):
    match = re.match(PATTERN.replace("(?<", "(?P<"), line)
    return {k: v for k, v in match.groupdict().items() if v is not None} if match else None


FORMATS = {
    "combined": (access, ACCESS, "time"), "syslog": (syslog, SYSLOG, "time"),
    "logfmt": (logfmt, LOGFMT, None), "zeek": (zeek, ZEEK, "ts"), "w3c": (w3c, W3C, "time"),
    "text": (text, "time", "time"), "pattern": (pattern, "time level thread msg", "time"),
}


# ---- comparing -----------------------------------------------------------------------------------

def expected(form, data):
    """A list of (unfit, values) of the records of a log."""
    read, names, time = FORMATS[form]
    out, before = [], None
    for raw in data.decode("latin-1").split("\n"):
        line = raw.removesuffix("\r")
        if not line or (form in ("zeek", "w3c") and line.startswith("#")):
            continue
        got = read(line)
        unfit, got = got is None, got or {}
        if time and got.get(time) is not None:
            before = stamp(got[time]) if len(got[time]) <= 64 else None
        elif time and (unfit or form == "text") and before is not None:
            got[time] = normal(before).decode()
        values = [got.get(name) for name in names.split()] + [line]
        out.append((unfit, values))
    return out


def dump(path, form, names, segment=0, **more):
    out = subprocess.run([DUMP, "--dump", form, str(segment), str(path)] + names, check=True,
                         capture_output=True, text=True, env=dict(os.environ, **more)).stdout
    lines = out.split("\n")[:-1]
    records = []
    for line in lines[1:]:
        if line == "bad":
            records.append("bad")
            continue
        words = line.split(" ")[:-1]
        unfit = words[:1] == ["U"]
        records.append((unfit, [value_of(w) for w in words[unfit:]]))
    return lines[0], records


def value_of(word):
    values = [None if w[0] == "M" else bytes.fromhex(w[1:]).decode("latin-1") for w in word.split("+")]
    return values if len(values) > 1 else values[0]


def sample(form):
    with open(os.path.join(SAMPLES, form + ".log"), "rb") as f:
        return f.read()


def check(form, data, tmp_path, segments, asked="auto", some=None):
    """`some`: indexes of the names to ask for; what a record is does not depend on them."""
    path = tmp_path / "input"
    path.write_bytes(data)
    os.utime(path, (REFERENCE, REFERENCE))
    more = {"DUMP_PATTERN": PATTERN} if form == "pattern" else {}
    names = FORMATS[form][1].split() + ["line"]
    some = range(len(names)) if some is None else some
    want = [(unfit, [values[i] for i in some]) for unfit, values in expected(form, data)]
    for segment in segments:
        found, got = dump(path, asked, [names[i] for i in some], segment, **more)
        assert found == form
        for g, w in zip(got, want):
            assert g == w
        assert len(got) == len(want)


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_samples(form, tmp_path):
    """As they are found: all cut sizes give the same records."""
    data = sample(form)
    check(form, data, tmp_path, [0] + list(range(1, 300, 7)) + [1000])
    wanted = expected(form, data)
    assert any(unfit for unfit, _ in wanted) or form == "text"
    for i, name in enumerate(FORMATS[form][1].split()):  # the sample shows every field
        assert any(values[i] is not None and not unfit for unfit, values in wanted), name


@pytest.mark.parametrize("form", sorted(FORMATS))
@pytest.mark.parametrize("round_", range(ROUNDS))
def test_changed_samples(form, round_, tmp_path):
    rng = random.Random(SEED * 1009 + round_)
    lines = sample(form).split(b"\n")
    head = [line for line in lines if line.startswith(b"#")] if form in ("zeek", "w3c") else []
    lines = [line for line in lines if line not in head]
    pool = [b" ", b'"', b"\\", b"[", b"]", b"-", b":", b"=", b"\t", b"0", b"9", b"x", b"\xff", b"'",
            b"<", b">", b"Z", b"+", b",", b"(empty)", b"Oct", b"T", b"HTTP/"]
    out = []
    for line in (rng.choice(lines) for _ in range(60)):
        for _ in range(rng.choice([0, 0, 1, 1, 2, 5])):
            at = rng.choice([rng.randrange(len(line) + 1)] * 3 + [max(0, len(line) - rng.randrange(3))])
            line = line[:at] + rng.choice(pool + [b""]) + line[at + rng.randrange(3):]
        out.append(line)
    data = b"\n".join(head + out) + rng.choice([b"", b"\n"])
    check(form, data, tmp_path, [rng.choice([1, 40, 200]), 0], form)
    n = len(FORMATS[form][1].split()) + 1
    for _ in range(4):
        check(form, data, tmp_path, [0], form, rng.sample(range(n), rng.randrange(1, min(n, 4) + 1)))


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_packed(form, tmp_path):
    data = sample(form)
    names, path = FORMATS[form][1].split() + ["line"], tmp_path / "input"
    more = {"DUMP_PATTERN": PATTERN} if form == "pattern" else {}
    lz4 = subprocess.run(["lz4", "-qc"], input=data, capture_output=True, check=True).stdout
    for packed in (gzip.compress(data), bz2.compress(data), lzma.compress(data), lz4,
                   bz2.compress(data[:50]) + bz2.compress(data[50:])):
        path.write_bytes(packed)
        os.utime(path, (REFERENCE, REFERENCE))
        assert dump(path, "auto", names, 100, **more) == (form, expected(form, data))


def test_fields(tmp_path):
    """Names in the order in which they come, and every value."""
    for form in sorted(FORMATS):
        path = tmp_path / "input"
        path.write_bytes(sample(form))
        more = {"DUMP_PATTERN": PATTERN} if form == "pattern" else {}
        out = subprocess.run([DUMP, "--fields", str(path)], check=True, capture_output=True, text=True,
                             env=dict(os.environ, **more)).stdout
        seen = {}
        for line in out.splitlines():
            record, name, value = line.split(" ")
            seen.setdefault(name, set()).add(int(record))
        want = {}
        for i, (unfit, values) in enumerate(expected(form, sample(form))):
            for name, value in zip(FORMATS[form][1].split(), values):
                if value is not None:
                    want.setdefault(name, set()).add(i)
        assert {n: seen.get(n) for n in want} == want, form
    path.write_text('{"b": 1, "a": {"x": [1, 2], "y": "{\\"z\\": null}"}, "c": null}\n{"d": {}}\n')
    out = subprocess.run([DUMP, "--fields", str(path)], check=True, capture_output=True, text=True)
    assert [line.split()[:2] for line in out.stdout.splitlines()] == \
        [["0", "b"], ["0", "a.x"], ["0", "a.y"]]


# ---- JSON ----------------------------------------------------------------------------------------

def records_of(rng, n):
    return [{"id": i, "user": rng.choice(["ann", "bob", "é\"\n"]), "tags": ["a"] * rng.randrange(3),
             "in": {"x": rng.choice([None, 1.5, True, "{\"y\": [1, 2]}"])}} for i in range(n)]


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_arrays(round_, tmp_path):
    """json.dumps in its ways, records in an array, in arrays one after the other, wrapped, alone."""
    rng = random.Random(SEED * 1013 + round_)
    records = records_of(rng, rng.randrange(1, 40))
    indent = rng.choice([None, None, 1, 4])
    kind, more = rng.randrange(5), {}
    if kind == 0:
        data = json.dumps(records, indent=indent)
    elif kind == 1:
        data = json.dumps({"Records": records}, indent=indent) + "\n"
    elif kind == 2:
        data = "\n".join(json.dumps(r, indent=4) for r in records)
    elif kind == 3:
        cut = rng.randrange(len(records) + 1)
        whole = [{"meta": {"Records": 1}, "data": {"items": part, "n": 3}, "end": [{"id": 1}]}
                 for part in (records[:cut], records[cut:])]
        data, more = "\n".join(json.dumps(w, indent=indent) for w in whole), {"DUMP_RECORDS": "data.items"}
    else:
        cut = rng.randrange(len(records) + 1)
        data = json.dumps(records[:cut], indent=indent) + "\n" + json.dumps(records[cut:])
    path = tmp_path / "input"
    path.write_text(data)
    form = "json" if more or kind == 4 else "auto"
    found, got = dump(path, form, ["id", "user", "tags", "in.x", "in.x.y.1"], rng.choice([0, 1, 100]),
                      **more)
    assert found == "json" and len(got) == len(records)
    for (unfit, values), record in zip(got, records):
        x = record["in"]["x"]
        tags = record["tags"]
        assert not unfit and values == [
            str(record["id"]), record["user"].encode().decode("latin-1"),
            "[]" if not tags else tags if len(tags) > 1 else tags[0],
            None if x is None else x if isinstance(x, str) else json.dumps(x),
            "2" if isinstance(x, str) else None]


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_damaged_arrays(round_, tmp_path):
    """Whatever is changed, all cuts give the same, and every byte of a record's line stays findable."""
    rng = random.Random(SEED * 1019 + round_)
    lines = [json.dumps(r) for r in records_of(rng, 30)]
    data = list("[\n" + ",\n".join(lines) + "\n]\n")
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(data))
        data[at:at + rng.randrange(3)] = rng.choice('{}[]:,"\\x \n')
    data = "".join(data)
    data = data[:rng.choice([len(data), rng.randrange(len(data))])]
    path = tmp_path / "input"
    path.write_text(data)
    found, whole = dump(path, "json", ["id", "line"], 0, DUMP_RECORDS="")
    for segment in (1, 64, 700):
        assert dump(path, "json", ["id", "line"], segment, DUMP_RECORDS="") == (found, whole)
    good = [r[1][0] for r in whole if r != "bad" and not r[0]]
    lost = [json.loads(line)["id"] for line in lines
            if line in data and str(json.loads(line)["id"]) not in good]
    unfit = sum(1 for r in whole if r == "bad" or r[0])
    assert len(lost) <= unfit + 5


# ---- whatever is in a file -----------------------------------------------------------------------

JUNK = ['"', '""', "{", "}", "[", "]", ",", ":", "\\", '\\"', "\n", "\r\n", "\t", " ", "null", "é", "'", "#", "<34>", "=",
        '{"a":', "}\n{", '"\n', "],["]


def damaged(rng, kind, marks):
    """A text with the marks in its records, changed at random behind its header."""
    rows = list(enumerate(marks))
    head, text = "", "".join({
        "csv": lambda i, m: '%d,"%s",x y\n' % (i, m) if i % 2 else "%d,%s,z\n" % (i, m),
        "tsv": lambda i, m: "%d\t%s\n" % (i, m),
        "jsonl": lambda i, m: json.dumps({"id": i, "o": {"name": [1, m]}}) + "\n",
        "json": lambda i, m: "",
        "log": lambda i, m: '10.1.2.3 - - [10/Oct/2023:13:55:%02d -0700] "GET /%s HTTP/1.1" 200 5 "-" "x"\n' % (i, m),
        "conf": lambda i, m: 'time=2024-05-01T10:00:%02dZ level=info msg="%s x" u=1\n' % (i, m)}[kind](i, m) for i, m in rows)
    if kind in ("csv", "tsv"):
        head = {"csv": "id,name,v\n", "tsv": "id\tname\n"}[kind]
    if kind == "json":
        array = [{"id": i, "name": m} for i, m in rows]
        text = json.dumps(rng.choice([array, {"Records": array}]), indent=rng.choice([None, 1]))
    for _ in range(rng.choice([0, 1, 2, 5])):
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(JUNK) + text[at + rng.randrange(2):]
    return head, text[:rng.choice([len(text)] * 4 + [rng.randrange(len(text) + 1)])]


@pytest.mark.parametrize("round_", range(20 if LONG else 2))
def test_nothing_in_a_damaged_file_is_lost(round_, tmp_path):
    """All that is behind a header is in one record, whatever does not fit its format."""
    rng, marks = random.Random(SEED * 1021 + round_), re.compile(rb"zq\d+x\d+")
    (tmp_path / "d").mkdir()
    there = collections.Counter()
    for i in range(300):
        kind = rng.choice(["csv", "tsv", "jsonl", "json", "log", "conf"])
        head, text = damaged(rng, kind, ["zq%dx%d" % (i, j) for j in range(rng.choice([1, 2, 5, 20]))])
        there.update(marks.findall(text.encode()))
        data = (head + text).encode()
        zipped = rng.random() < 0.2
        (tmp_path / "d" / ("%d.%s%s" % (i, kind, ".gz" * zipped))).write_bytes(gzip.compress(data) if zipped else data)
    subprocess.run([TAMIS, "index", "d", "-o", "c.tamis", "--attrs", "line", "--segment", rng.choice(["64", "1000", "8Mi"])],
                   cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run([TAMIS, "find", "c.tamis", "line~/zq/"], cwd=tmp_path, check=True, capture_output=True)
    assert collections.Counter(marks.findall(done.stdout)) == there


# ---- encodings, times ----------------------------------------------------------------------------

@pytest.mark.parametrize("code", ["utf-16", "utf-16-be"])
def test_utf16(code, tmp_path):
    rng = random.Random(SEED)
    rows = [["%d" % i, "".join(rng.choice("aé€😀\r") for _ in range(rng.randrange(9)))] for i in range(300)]
    data = "id,text\n" + "".join('%s,"%s"\n' % tuple(row) for row in rows)
    path = tmp_path / "input.csv"
    path.write_bytes((b"\xfe\xff" if code == "utf-16-be" else b"") + data.encode(code))
    plain = path.read_bytes()
    lz4 = subprocess.run(["lz4", "-qc"], input=plain, capture_output=True, check=True).stdout
    zst = subprocess.run(["zstd", "-qc"], input=plain, capture_output=True, check=True).stdout
    for data in (plain, gzip.compress(plain), gzip.compress(plain[:77]) + gzip.compress(plain[77:]), bz2.compress(plain),
                 lzma.compress(plain), lz4, zst):
        path.write_bytes(data)
        for segment in (1, 100, 0):
            found, got = dump(path, "auto", ["id", "text"], segment)
            assert found == "csv"
            assert [v for _, v in got] == [[i, t.encode().decode("latin-1")] for i, t in rows]


def test_utf16_in_a_compression_grows(tmp_path):
    """What is appended has no mark."""
    def tamis(*words):
        return subprocess.run([TAMIS, *words], cwd=tmp_path, capture_output=True, text=True)

    rows = ["%d,u%d,wörd €%d\n" % (i, i % 7, i) for i in range(3000)]
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(("id,user,text\n" + "".join(rows[:2000])).encode("utf-16")))
    assert tamis("index", "a.csv.gz", "-o", "c.tamis", "--attrs", "id,user", "--segment", "4096").returncode == 0
    with open(path, "ab") as out:
        out.write(gzip.compress("".join(rows[2000:]).encode("utf-16-le")))
    for update in (False, True):
        if update:
            done = tamis("index", "--update", "c.tamis", "--json")
            assert done.returncode == 0 and json.loads(done.stdout)["records_read"] == 1000, done
        for i in (0, 1234, 1999, 2000, 2999):
            assert tamis("find", "c.tamis", "id=%d" % i).stdout == rows[i]
        assert tamis("find", "--count", "c.tamis", "user=u3").stdout == "%d\n" % sum(i % 7 == 3 for i in range(3000))
        assert tamis("find", "c.tamis", "id=3000").returncode == 1


def test_old_line_ends(tmp_path):
    path = tmp_path / "input"
    path.write_bytes(b"id,text\r1,a\r2,b\r")
    for segment in (1, 0):
        assert dump(path, "auto", ["id", "text"], segment) == \
            ("csv", [(False, ["1", "a"]), (False, ["2", "b"])])


def times(zone, lines, reference=REFERENCE):
    out = subprocess.run([DUMP, "--times", zone, str(reference)], input="\n".join(lines) + "\n",
                         check=True, capture_output=True, text=True).stdout
    return [None if line == "-" else line.split() for line in out.splitlines()]


def test_times():
    forms = ["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S", "%Y/%m/%d %H:%M", "%d/%b/%Y:%H:%M:%S +0000",
             "%d-%b-%Y %H:%M:%S", "%d/%b/%Y %H:%M:%S", "%Y.%m.%d %H:%M:%S", "%Y%m%d %H:%M:%S.000000",
             "%b %d %Y %H:%M:%S", "%a %b %d %H:%M:%S %Y", "%a, %d %b %Y %H:%M:%S GMT",
             "%Y-%m-%dT%H:%M:%S,250+02:30", "%Y-%m-%d", "%s", "%s.5", "%s123", "%s123456", "%s123456789"]
    rng, lines, want = random.Random(SEED), [], []
    for form in forms * 40:
        moment = datetime.datetime(1990, 1, 1, tzinfo=UTC) + datetime.timedelta(
            seconds=rng.randrange(3600 * 24 * 365 * 60))
        seconds = int(moment.timestamp())
        lines.append(moment.strftime(form.replace("%s", str(seconds))))
        part = 0
        if "%S" not in form and "%s" not in form:
            seconds -= seconds % 60 if "%H" in form else seconds % 86400
        if "%s" in form:
            digits = form[2:].lstrip(".")
            part = int((digits + "0" * 9)[:9]) if digits else 0
        if "," in form and "250" in form:
            seconds, part = seconds - 9000, 250000000
        want.append([str(seconds), str(part), normal(seconds * 10 ** 9 + part).decode()])
    for line, got, expect in zip(lines, times("", lines), want):
        assert got == expect, line


def test_zones():
    """Times without a zone are in the catalog's, through its changes: the first of an hour that occurs twice, and
    of one that is skipped what the clock would have shown. Times in random order give the same result."""
    for zone in ("Europe/Paris", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia"):
        rng, moments = random.Random(SEED), []
        where = zoneinfo.ZoneInfo(zone)
        for _ in range(2000):
            moments.append(datetime.datetime(2000, 1, 1) + datetime.timedelta(
                seconds=rng.randrange(3600 * 24 * 365 * 30)))
        days = [datetime.datetime(2001, 1, 1) + datetime.timedelta(days=d) for d in range(365 * 14)]
        turns = [a for a, b in zip(days, days[1:])
                 if a.replace(tzinfo=where).utcoffset() != b.replace(tzinfo=where).utcoffset()]
        assert turns or zone == "Asia/Kolkata"
        for turn in turns * 4:
            moments += [turn + datetime.timedelta(minutes=rng.randrange(1440)) for _ in range(20)]
        rng.shuffle(moments)
        lines = [moment.strftime("%Y-%m-%d %H:%M:%S") for moment in moments]
        want = [str(int(moment.replace(tzinfo=where).timestamp())) for moment in moments]
        got = [one[0] for one in times(zone, lines)]
        assert [x for x in zip(lines, got, want) if x[1] != x[2]] == []


def test_years():
    """Without a year: the newest that is not later than the reference and a day."""
    ask = ["Dec 31 23:59:59", "Jan  1 00:00:00", "Jan 01 00:00:01", "Feb 29 12:00:00", "Feb 30 00:00:00",
           "1231 23:59:59.000000", "0101 00:00:00.250000"]
    at = int(datetime.datetime(2023, 1, 1, 12, tzinfo=UTC).timestamp())
    got = times("", ask, at)
    assert [g and g[2] for g in got] == [
        "2022-12-31T23:59:59Z", "2023-01-01T00:00:00Z", "2023-01-01T00:00:01Z",
        "2020-02-29T12:00:00Z", None, "2022-12-31T23:59:59Z", "2023-01-01T00:00:00.25Z"]
    assert times("", ["Jan  2 11:59:59", "Jan  2 12:00:01"], at)[1][2] == "2022-01-02T12:00:01Z"


def test_blanks_and_quotes_around_times():
    """As around numbers: '1, 2024-05-01, 7'."""
    lines = [" 2024-05-01 10:00:00", "2024-05-01 ", "\t2024-05-01T10:00Z\t ", '"2024-05-01 10:00:00"', ' " 1714557600 " ',
             "2024-05-01 10:00:00 ", "2024-05-01 10:00:01 "]
    assert [one and one[2] for one in times("", lines)] == ["2024-05-01T%sZ" % clock for clock in (
        "10:00:00", "00:00:00", "10:00:00", "10:00:00", "10:00:00", "10:00:00", "10:00:01")]
    for line in (" ", '"', '""', '" "', '"2024-05-01', "2024-05-01 x", '""2024-05-01""'):
        assert times("", [line]) == [None], line


def test_times_of_powershell():
    """Milliseconds since 1970, whatever their size; the zone that may follow changes nothing."""
    lines = ["/Date(1714557600000)/", "/Date(1714557600250+0200)/", "/Date(0)/", "/Date(-1)/", "/Date(86400000-0700)/"]
    assert [one and one[2] for one in times("Europe/Paris", lines)] == [
        "2024-05-01T10:00:00Z", "2024-05-01T10:00:00.25Z", "1970-01-01T00:00:00Z", "1969-12-31T23:59:59.999Z",
        "1970-01-02T00:00:00Z"]
    for line in ("/Date()/", "/Date(-)/", "/Date(1x)/", "/Date(1)", "/Date(1+02)/", "/Date(1+02000)/", "/Date(1+0x00)/",
                 "/Date(99999999999999999999)/", "/Date(999999999999999999)/", "/Date(/)/"):
        assert times("", [line]) == [None], line


def test_what_is_no_time():
    for line in ("", "x", "2024-13-01", "2024-02-30 10:00", "2024-05-01T25:00", "2024-05-01 10:00x",
                 "99/Oct/2000:13:55:36 -0700", "Oct 32 10:00:00", "12:00:00", "1.2.3", "1e9",
                 "10000000000000000000000", "2024-05-01T10:00:00+25:00", "Foo 11 22:14:15", "0000-05-01",
                 "0000-05-01 10:00:00", "10/Oct/0000:13:55:36 -0700", "11 Oct 0000 22:14:15 GMT",
                 "0000.05.01 10:00:00", "2024.05.01", "20240501 10:00:00", "0501 10:00:00.123", "0532 10:00:00.123456",
                 "05-01 10:00:00.123456", "24/05/01 10:00:00", "01-May/2024 10:00:00",
                 "Oct 11 0000 22:14:15", "Wed Oct 11 22:14:15 0000"):
        assert times("", [line]) == [None], line
