"""Questions as Python understands them: records of logs read by regular expressions, csv and json, and
clauses checked on their values. Shares nothing with the program but the rules in tamis help find."""
import csv
import datetime
import decimal
import io
import ipaddress
import json
import re
import time
import zoneinfo

WORD = rb"[A-Za-z0-9_\x80-\xff]+"
ORDERED = ("int", "dec", "time")


# ---- values -------------------------------------------------------------------------------------

def trimmed(value):
    value = value.strip(b" \t\n\v\f\r")
    if len(value) > 1 and value[:1] == value[-1:] == b'"':
        value = value[1:-1].strip(b" \t\n\v\f\r")
    return value


MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


def moment(value, zone, reference):
    """Seconds since 1970 as a Decimal, or None."""
    text = value.decode("latin-1").strip()
    if re.fullmatch(r"\d+(\.\d+)?", text):  # seconds, or of the next units by their size
        value = decimal.Decimal(text)
        for power, unit in ((11, 0), (14, 3), (17, 6), (20, 9)):
            if value < decimal.Decimal(10) ** power:
                return value.scaleb(-unit)
        return None
    match = re.fullmatch(
        r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?(Z|[+-]\d\d:?\d\d)?)?", text)
    year = None
    if match:
        year, month, day = (int(match[i]) for i in (1, 2, 3))
        clock = [int(match[i] or 0) for i in (4, 5, 6)]
        fraction, offset = match[7], match[8]
    match = match or re.fullmatch(r"(\d\d)/(\w{3})/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-]\d{4})", text)
    if match and year is None:
        day, month, year = int(match[1]), MONTHS.index(match[2]) + 1, int(match[3])
        clock = [int(match[i]) for i in (4, 5, 6)]
        fraction, offset = None, match[7]
    if not match:
        match = re.fullmatch(r"(\w{3}) +(\d+) (\d\d):(\d\d):(\d\d)", text)
        if not match or match[1] not in MONTHS:
            return None
        month, day = MONTHS.index(match[1]) + 1, int(match[2])
        clock, fraction, offset = [int(match[i]) for i in (3, 4, 5)], None, None
        year = datetime.datetime.fromtimestamp(reference, datetime.timezone.utc).year + 1
        while True:
            try:
                when = stamp(year, month, day, clock, None, offset, zone)
                if when <= reference + 86400:
                    return when
            except ValueError:
                pass
            year -= 1
    try:
        return stamp(year, month, day, clock, fraction, offset, zone)
    except ValueError:
        return None


def written(when):
    """As the reader gives the time of the record before."""
    text = datetime.datetime.fromtimestamp(int(when), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    fraction = ("%.9f" % (when % 1))[1:].rstrip("0").rstrip(".")
    return (text + fraction + "Z").encode()


def stamp(year, month, day, clock, fraction, offset, zone):
    if offset is None:
        where = zoneinfo.ZoneInfo(zone)
    elif offset == "Z":
        where = datetime.timezone.utc
    else:
        sign = -1 if offset[0] == "-" else 1
        where = datetime.timezone(sign * datetime.timedelta(hours=int(offset[1:3]), minutes=int(offset[-2:])))
    when = datetime.datetime(year, month, day, *clock, tzinfo=where)
    return decimal.Decimal(int(when.timestamp())) + decimal.Decimal("0." + (fraction or "0")[:9])


def normal(value, kind, world, reference=None):
    """What is equal for equal values of a type, and whether the value is of it."""
    if kind == "int" and re.fullmatch(rb"[+-]?[0-9]+", trimmed(value)):
        return int(trimmed(value)), True
    if kind == "dec" and re.fullmatch(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", trimmed(value)):
        return decimal.Decimal(trimmed(value).decode()) + 0, True
    if kind == "time":
        when = moment(value, world.zone, reference or world.reference)
        if when is not None:
            return when, True
    if kind == "ip":
        try:
            address = ipaddress.ip_address(trimmed(value).decode("latin-1"))
            return getattr(address, "ipv4_mapped", None) or address, True
        except ValueError:
            pass
    if kind == "fold":
        return value.translate(FOLD), True
    return value, False


FOLD = bytes(c + 32 if 65 <= c <= 90 else c for c in range(256))


def tokens(text):
    """(token, what joins it to the one before, and to the one after)"""
    found = list(re.finditer(WORD, text))
    joins = [None] * (len(found) + 1)
    for i in range(1, len(found)):
        between = text[found[i - 1].end():found[i].start()]
        if len(between) == 1 and between in b".:-/@":
            joins[i] = between
    return [(one.group().translate(FOLD), joins[i], joins[i + 1]) for i, one in enumerate(found)]


def has_phrase(text, phrase):
    asked, here = tokens(phrase), tokens(text)
    for at in range(len(here) - len(asked) + 1):
        for (token, before, after), (word, left, right) in zip(here[at:], asked):
            if token != word:
                break
            if before != left if left else right and before == right:
                break
            if after != right if right else left and after == left:
                break
        else:
            return True
    return False


# ---- clauses ------------------------------------------------------------------------------------

class Equal:
    """a=v; `many` more by a list"""

    def __init__(self, values):
        self.values = values

    def holds(self, value, kind, world):
        return value is not None and normal(value, kind, world)[0] in [
            normal(v, kind, world, time.time())[0] for v in self.values]  # no year: the newest of today


class Missing:
    def holds(self, value, kind, world):
        return value is None


class Between:
    """A range; times of a day, an hour or a minute are given as (from, to)."""

    def __init__(self, low=None, high=None, low_out=False, high_out=False):
        self.low, self.high, self.low_out, self.high_out = low, high, low_out, high_out

    def holds(self, value, kind, world):
        if value is None:
            return False
        value, fits = normal(value, kind, world)
        if not fits:
            return False
        if self.low is not None and (value < self.low or self.low_out and value == self.low):
            return False
        return self.high is None or value < self.high or not self.high_out and value == self.high


class Network:
    def __init__(self, text):
        self.network = ipaddress.ip_network(text, strict=False)

    def holds(self, value, kind, world):
        address, fits = normal(value, kind, world) if value is not None else (None, False)
        return fits and address.version == self.network.version and address in self.network


class Prefix:
    def __init__(self, text):
        self.text = text

    def holds(self, value, kind, world):
        if value is None:
            return False
        if kind == "fold":
            return value.translate(FOLD).startswith(self.text.translate(FOLD))
        return value.startswith(self.text)


class Phrase:
    def __init__(self, text):
        self.text = text

    def holds(self, value, kind, world):
        return value is not None and has_phrase(value, self.text)


class Regex:
    def __init__(self, pattern):
        self.pattern = re.compile(pattern, re.M * 0)

    def holds(self, value, kind, world):
        return value is not None and bool(self.pattern.search(value))


def elements(record, name):
    value = record.values.get(name)
    if value is None or value == []:
        return [None]
    return value if isinstance(value, list) else [value]


class Question:
    """Words for the program, and the same for Python: alternatives by attribute, and further clauses."""

    def __init__(self):
        self.words, self.any, self.none, self.all = [], {}, {}, []
        self.options, self.period = [], None

    def add(self, word, name, clause, how):
        self.words.append(word)
        if how == "any":
            self.any.setdefault(name, []).append(clause)
        elif how == "none":
            self.none.setdefault(name, []).append(clause)
        else:
            self.all.append((name, clause))

    def holds(self, record, world):
        def some(name, clause):
            kind = world.types.get(name, "words" if name == "line" else "text")
            return any(clause.holds(value, kind, world) for value in elements(record, name))

        if self.period is not None and not any(
                self.period.holds(value, "time", world) for value in elements(record, record.time)):
            return False
        return (all(any(some(name, c) for c in clauses) for name, clauses in self.any.items()) and
                not any(some(name, c) for name, clauses in self.none.items() for c in clauses) and
                all(some(name, c) for name, c in self.all))


# ---- records ------------------------------------------------------------------------------------

class Record:
    def __init__(self, raw, values, time=None):
        self.raw, self.values, self.time = raw, values, time
        values.setdefault("line", raw.rstrip(b"\n").removesuffix(b"\r"))


def lines_of(text):
    return [line for line in re.findall(rb"[^\n]*\n|[^\n]+$", text)]


def filled_lines(text):
    """Lines that are not blank, each also without its end."""
    for line in lines_of(text):
        raw = line.rstrip(b"\n").removesuffix(b"\r")
        if raw:
            yield line, raw


def row_values(header, cells, before, time, world):
    """A row that has not as many fields as the header, and no time where it should be, has the time of the row before."""
    values = dict(zip(header, cells))
    if time not in header or (len(cells) == len(header) or moment(values.get(time, b""), world.zone, world.reference)):
        return values
    return {**{name: value for name, value in values.items() if name != time}, **unfit(before, time, world)}


def csv_records(text, world, time="t"):
    taken, header, before = [], None, None

    def feed():
        for line in lines_of(text):
            taken.append(line.decode("utf-8", "surrogateescape"))
            yield taken[-1]

    for row in csv.reader(feed()):
        raw = "".join(taken).encode("utf-8", "surrogateescape")
        taken.clear()
        if not row:
            continue
        if header is None or set(row) == set(header):  # files were joined
            header = row
            continue
        cells = [cell.encode("utf-8", "surrogateescape") for cell in row]
        values = row_values(header, cells, before, time, world)
        before = values.get(time, before)
        yield Record(raw, values, time)


def tsv_records(text, world, time="t"):
    header, before = None, None
    for line, raw in filled_lines(text):
        cells = raw.split(b"\t")
        if header is None or set(cells) == set(name.encode() for name in header):
            header = [name.decode() for name in cells]
        else:
            values = row_values(header, cells, before, time, world)
            before = values.get(time, before)
            yield Record(line, values, time)


class Number(float):
    """A number that keeps its text."""


def number(digits):
    one = Number(digits)
    one.text = digits
    return one


def plain(value):
    if isinstance(value, Number):
        return value.text.encode()
    if isinstance(value, bool):
        return str(value).lower().encode()
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return None


def flat(record, values, path=""):
    """Keys below keys get dots between them."""
    for key, value in record.items():
        name = path + key
        if isinstance(value, dict):
            flat(value, values, name + ".")
        elif isinstance(value, list) and any(isinstance(v, dict) for v in value):
            for one in value:  # objects of an array: a list of what they have
                parts = {}
                flat(one, parts, name + ".")
                for part, its in parts.items():
                    values.setdefault(part, []).extend(its if isinstance(its, list) else [its])
        elif isinstance(value, list):
            values[name] = [plain(v) for v in value if v is not None] if value else b"[]"
        elif value is not None:
            values[name] = plain(value)


def jsonl_records(text, world, time="t"):
    before = None
    for line in lines_of(text):
        if not line.strip():
            continue
        values = {}
        try:
            record = json.loads(line.decode(), parse_int=number, parse_float=number)
            flat(record, values)
        except (ValueError, AttributeError):
            values = unfit(before, time, world)
        else:
            before = values.get(time, before)
        yield Record(line, values, time)


def unfit(before, time, world):
    """A line that its format does not fit: it has the time of the record before, the last one that has any."""
    when = moment(before, world.zone, world.reference) if isinstance(before, bytes) else None
    return {} if when is None else {time: written(when)}


ACCESS = re.compile(
    rb'(?P<host>\S+) (?P<ident>\S+) (?P<user>\S+) \[(?P<time>[^\]]+)\] "(?P<request>[^"]*)" '
    rb'(?P<status>\d{3}|-) (?P<bytes>\d+|-)(?: "(?P<referer>[^"]*)" "(?P<agent>[^"]*)")?')


def access_records(text, world, time="time"):
    before = None
    for line, raw in filled_lines(text):
        match = ACCESS.fullmatch(raw)
        if not match:
            yield Record(line, unfit(before, time, world), time)
            continue
        values = {name: value for name, value in match.groupdict().items() if value not in (None, b"-")}
        request = re.fullmatch(rb"(\S+) (\S+?)(?:\?(\S*))? (\S+)", values.get("request", b""))
        if request:
            for name, part in zip(("method", "path", "query", "protocol"), request.groups()):
                if part is not None:
                    values[name] = part
        before = values["time"]
        yield Record(line, values, time)


SYSLOG = re.compile(
    rb"(?:<(?P<pri>\d+)>)?(?P<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S+) "
    rb"(?P<hostname>[^ :\[]+) (?P<app_name>[^ :\[]+)(?:\[(?P<procid>\d+)\])?: (?P<msg>.*)", re.S)


def syslog_records(text, world, time="time"):
    before = None
    for line, raw in filled_lines(text):
        match = SYSLOG.fullmatch(raw)
        if not match:
            yield Record(line, unfit(before, time, world), time)
            continue
        values = {name.replace("_", "-"): value for name, value in match.groupdict().items() if value is not None}
        if "pri" in values:
            values["facility"] = b"%d" % (int(values["pri"]) // 8)
            values["severity"] = b"%d" % (int(values["pri"]) % 8)
        before = values["time"]
        yield Record(line, values, time)


PAIR = re.compile(rb'([^ ="]+)=(?:"((?:[^"\\]|\\.)*)"|([^ "]*))(?: |$)')


def logfmt_records(text, world, time="t"):
    before = None
    for line, raw in filled_lines(text):
        values, at = {}, 0
        while at < len(raw):
            match = PAIR.match(raw, at)
            if not match:
                break
            quoted = match[2] is not None
            values[match[1].decode()] = json.loads(b'"%s"' % match[2]).encode() if quoted else match[3]
            at = match.end()
        if at < len(raw) or not values:
            values = unfit(before, time, world)
        else:
            before = values.get(time, before)
        yield Record(line, values, time)


def text_records(text, world, time="time"):
    before = None
    for line, raw in filled_lines(text):
        match = re.match(rb"\[?(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?Z?)"
                         rb"|\[([1-9]\d{9}(?:\.\d+)?)\]|([1-9]\d{9}\.\d+) ", raw)
        if match:
            before = match[match.lastindex]
            yield Record(line, {"time": before}, time)
        else:
            yield Record(line, unfit(before, time, world), time)


def json_records(text, world, time="t"):
    """Arrays one after the other, each record on a line of its own."""
    at, decoder = 0, json.JSONDecoder(parse_int=number, parse_float=number)
    text = text.decode()
    while at < len(text):
        if text[at] != "{":
            assert text[at] in "[], \n"
            at += 1
            continue
        record, end = decoder.raw_decode(text, at)
        values = {}
        flat(record, values)
        yield Record(text[at:end].encode(), values, time)
        at = end


def columned(text, world, prefix, read, time):
    """Records of a log whose lines with # name the columns of those below them."""
    before, names, typed = None, [], False
    for line in lines_of(text):
        raw = line.rstrip(b"\n").removesuffix(b"\r")
        if raw.startswith(b"#"):
            if raw.startswith(prefix):
                names, typed = raw[len(prefix) + 1:].decode().split("\t" if prefix == b"#fields" else " "), False
            typed |= raw.startswith(b"#types")
            continue
        if not raw:
            continue
        cells = read(raw)
        if len(cells) != len(names):
            values = unfit(before, time, world)
        else:
            values = {name: cell for name, cell in zip(names, cells) if cell != b"-"}
            if prefix == b"#fields":
                zeek_values(values, typed)
            elif "date" in names and "time" in names:
                values["time"] = cells[names.index("date")] + b" " + cells[names.index("time")] + b"Z"
            before = values.get(time, before)
        if prefix == b"#fields" and time in values:
            values["time"] = values[time]
        yield Record(line, values, time)


def zeek_values(values, typed):
    for name, cell in values.items():
        values[name] = b"" if cell == b"(empty)" else cell
    if typed and b"," in values.get("tags", b""):  # the one that is a set
        values["tags"] = [b"" if c == b"(empty)" else c for c in values["tags"].split(b",")]


def zeek_records(text, world, time="ts"):
    return columned(text, world, b"#fields", lambda raw: raw.split(b"\t"), time)


def w3c_records(text, world, time="time"):
    def cells(raw):
        return [a or b for a, b in re.findall(rb'"([^"]*)"(?: |$)|([^ ]+)(?: |$)', raw)]
    return columned(text, world, b"#Fields:", cells, time)


PATTERN = r"^(?<level>[A-Z]+)!(?<user>[^!]*)!(?<status>[^!]*)!(?<t>[^!]*)!(?<msg>.*)$"


def pattern_records(text, world, time="t"):
    before = None
    for line, raw in filled_lines(text):
        match = re.match(PATTERN.replace("(?<", "(?P<").encode(), raw, re.S)
        values = dict(match.groupdict()) if match else unfit(before, time, world)
        before = values.get(time, before) if match else before
        yield Record(line, values, time)


READERS = {"zeek": zeek_records, "w3c": w3c_records, "json": json_records, "pat": pattern_records,
           "syslog": syslog_records, "logfmt": logfmt_records, "txt": text_records,
           "csv": csv_records, "tsv": tsv_records, "jsonl": jsonl_records, "log": access_records}
