"""Headers in the middle of a file: logs that were joined, or whose writer was restarted with other columns.
What find prints is compared with records made here, along with the values they have."""
import gzip
import itertools
import json
import os
import random
import subprocess

import pytest

ROOT = os.environ.get("TAMIS_ROOT", os.path.join(os.path.dirname(__file__), "../.."))
TAMIS = os.path.join(ROOT, os.environ.get("TAMIS", "build/release/tamis"))
SEED = int(os.environ.get("TAMIS_SEED", "7"), 0)
LONG = os.environ.get("TAMIS_LONG") == "1"
LIVES = 200 if LONG else 8

VALUES = {"ts": ["1714600000.5", "1714600060.0", "1714690000.25"], "src": ["10.0.0.1", "10.0.0.2", "10.0.0.3"],
          "dst": ["10.0.0.1", "10.0.0.2", "10.9.0.1"], "user": ["ann", "bob", "cho"],
          "status": ["200", "404", "500"], "note": ["up", "down", "src", "dst"]}
REQUIRED = ["src", "dst"]


def zeek_header(columns, separator, partial):
    lines = ["#fields" + separator + separator.join(columns)]
    if not partial:
        lines = ["#separator \\x%02x" % ord(separator), "#set_separator%s;" % separator,
                 "#empty_field%s(none)" % separator, "#unset_field%s~" % separator, "#path%sconn" % separator] + lines
        lines.append("#types" + separator + separator.join("set[string]" if c == "note" else "string" for c in columns))
    return "".join(line + "\n" for line in lines)


def w3c_header(columns, separator, partial):
    return ("" if partial else "#Software: test\n#Version: 1.0\n") + "#Fields: " + " ".join(columns) + "\n"


def table_header(columns, separator, partial):
    return separator.join(columns) + "\n"


HEADER = {"zeek": zeek_header, "w3c": w3c_header, "csv": table_header, "tsv": table_header}


class Writer:
    """Text that grows, and what stands in it: (line, values) of each record."""

    def __init__(self, rng, form):
        self.rng, self.form, self.text, self.records = rng, form, "", []
        self.separator, self.columns, self.listed = None, None, False
        self.turn(first=True)

    def turn(self, first=False):
        rng = self.rng
        if not first and rng.random() < 0.25:  # the same again
            columns = self.columns
        else:
            others = [c for c in VALUES if c not in REQUIRED]
            columns = REQUIRED + rng.sample(others, rng.randrange(1, len(others)))
            if not first and self.form in ("csv", "tsv") and rng.random() < 0.5:
                columns = self.columns[:]
                if len(columns) < len(VALUES) and rng.random() < 0.5:
                    columns.append(rng.choice([c for c in VALUES if c not in columns]))
                elif len(columns) > 3:
                    columns.remove(rng.choice([c for c in columns if c not in REQUIRED]))
            elif not first and self.form in ("csv", "tsv"):
                columns = self.columns[:]
            columns = rng.sample(columns, len(columns))
        partial = not first and rng.random() < 0.3
        if self.form == "zeek" and not partial:
            self.separator = rng.choice(["\t", "\t", "|"])
        elif self.form != "zeek":
            self.separator = {"csv": ",", "tsv": "\t", "w3c": " "}[self.form]
        self.listed = self.form == "zeek" and (not partial or (self.listed and columns == self.columns))
        self.columns = columns
        self.text += HEADER[self.form](columns, self.separator, partial)

    def add(self):
        rng = self.rng
        values = {c: rng.choice(VALUES[c]) for c in self.columns}
        cells = dict(values)
        if self.form == "zeek" and rng.random() < 0.2:
            name = rng.choice([c for c in self.columns if c not in REQUIRED])
            cells[name] = "~"
            del values[name]
        values = {c: [v] for c, v in values.items()}
        if self.listed and "note" in values and rng.random() < 0.5:
            values["note"] = ["up", "x"]
            cells["note"] = "up;x"
        line = self.separator.join(cells[c] for c in self.columns)
        self.text += line + "\n"
        self.records.append((line, values))


def tamis(tmp, *words, status=(0,)):
    done = subprocess.run([TAMIS, *words], cwd=tmp, capture_output=True, text=True)
    assert done.returncode in status, (words, done.returncode, done.stdout, done.stderr)
    return done


def check(tmp, records, rng, ask=6):
    questions = list(itertools.product(VALUES, range(3)))
    for name, i in rng.sample(questions, ask):
        value = VALUES[name][i]
        want = [line for line, values in records if value in values.get(name, [])]
        got = tamis(tmp, "find", "c.tamis", "%s==%s" % (name, value), status=(0, 1)).stdout
        assert got.splitlines() == want, (name, value)
    want = [values["src"][0] for _, values in records if values["dst"] == ["10.0.0.1"]]
    lines = tamis(tmp, "find", "--json", "c.tamis", "dst==10.0.0.1", status=(0, 1)).stdout.splitlines()
    assert [json.loads(line)["fields"]["src"] for line in lines] == want
    lacking = [line for line, values in records if "user" not in values]
    assert tamis(tmp, "find", "c.tamis", "user!", status=(0, 1)).stdout.splitlines() == lacking
    assert tamis(tmp, "find", "--count", "c.tamis", "src!=nowhere").stdout == "%d\n" % len(records)


@pytest.mark.parametrize("number", range(LIVES))
@pytest.mark.parametrize("form", list(HEADER))
def test_a_header_holds_from_where_it_stands(form, number, tmp_path):
    rng = random.Random(SEED * 65537 + number)
    suffix = {"csv": ".csv", "tsv": ".tsv"}.get(form, ".log")
    packed = number % 4 == 3
    path = tmp_path / ("a" + suffix + (".gz" if packed else ""))
    writer = Writer(rng, form)
    written = 0

    def flush(upto=None):
        nonlocal written
        data = writer.text.encode()[written:upto]
        with open(path, "ab") as out:
            out.write(gzip.compress(data) if packed else data)
        written += len(data)

    for _ in range(rng.randrange(1, 40)):
        writer.add()
    attrs = ",".join(sorted(VALUES)) if number % 3 else "src,dst,user:text,status:text,note:text,ts:text"
    flush()
    tamis(tmp_path, "index", path.name, "-o", "c.tamis", "--segment", str(rng.choice([64, 300, 5000])),
          "--attrs", attrs)
    for _ in range(5):
        for _ in range(rng.randrange(1, 4)):
            if rng.random() < 0.6:
                writer.turn()
            for _ in range(rng.randrange(30)):
                writer.add()
        if not packed and rng.random() < 0.5 and written + 1 < len(writer.text):  # the writer is in the middle of a line
            flush(rng.randrange(written + 1, len(writer.text)))
            tamis(tmp_path, "index", "--update", "c.tamis")
        flush()
        check(tmp_path, writer.records, rng)
        if rng.random() < 0.7:
            tamis(tmp_path, "index", "--update", "c.tamis")
            check(tmp_path, writer.records, rng, 3)
    again = writer.text.encode()  # other times: all is read anew
    path.write_bytes(gzip.compress(again) if packed else again)
    check(tmp_path, writer.records, rng)


def test_columns_of_later_headers_are_chosen(tmp_path):
    rows = "".join("10.0.0.%d 200\n" % (i % 50) for i in range(400))
    more = "".join("POST /p%d 10.1.0.%d 404\n" % (i % 9, i % 50) for i in range(400))
    (tmp_path / "u.log").write_text("#Version: 1.0\n#Fields: c-ip sc-status\n" + rows +
                                    "#Version: 1.0\n#Fields: cs-method cs-uri-stem c-ip sc-status\n" + more)
    tamis(tmp_path, "index", "u.log", "-o", "c.tamis")
    names = [a["name"] for a in json.loads(tamis(tmp_path, "find", "c.tamis", "--json").stdout)["attributes"]]
    assert "cs-uri-stem" in names
    assert tamis(tmp_path, "find", "--count", "c.tamis", "cs-uri-stem==/p3").stdout == "45\n"
    assert tamis(tmp_path, "find", "--count", "c.tamis", "c-ip==10.1.0.3", "sc-status=404").stdout == "8\n"


def test_rows_that_only_look_like_headers_are_records(tmp_path):
    (tmp_path / "a.csv").write_text('name,note\nann,"x\nname,note\ny"\nname,x\nbob,note\nname,note\nx,name\n')
    done = tamis(tmp_path, "index", "a.csv", "-o", "c.tamis", "--attrs", "name,note", "--json", "--verbose")
    assert json.loads(done.stdout)["header_rows"] == 1
    assert tamis(tmp_path, "find", "c.tamis", "name!=zzz").stdout == \
        'ann,"x\nname,note\ny"\nname,x\nbob,note\nx,name\n'
    done = tamis(tmp_path, "index", "a.csv", "-o", "c.tamis", "--attrs", "name,note", "--verbose")
    assert "header rows after the first, not counted as records: 1\n" in done.stderr
    (tmp_path / "b.csv").write_text("word\nup\nword\ndown\n")  # one column: a value may be its name
    tamis(tmp_path, "index", "b.csv", "-o", "d.tamis", "--attrs", "word")
    assert tamis(tmp_path, "find", "--count", "d.tamis", "word!=zzz").stdout == "3\n"


def on_terminal(tmp, *words):
    terminal = os.path.join(ROOT, "tests/support/terminal.py")
    run = subprocess.run([terminal, TAMIS, *words], cwd=tmp, stdout=subprocess.PIPE, check=True,
                         env={**os.environ, "NO_COLOR": "1"})
    return run.stdout.replace(b"\r\n", b"\n")


def test_a_terminal_shows_the_header_of_each_record(tmp_path):
    (tmp_path / "a.csv").write_text("host,user\nh1,ann\nuser,host\nann,h2\n")
    (tmp_path / "b.csv").write_text("host,user\nh3,ann\n")
    (tmp_path / "c.csv").write_text("host,user\nh4,ann\n")
    tamis(tmp_path, "index", "a.csv", "b.csv", "c.csv", "-o", "c.tamis", "--attrs", "host,user")
    assert on_terminal(tmp_path, "find", "c.tamis", "user==ann") == \
        b"host,user\nh1,ann\nuser,host\nann,h2\nhost,user\nh3,ann\nh4,ann\n"


def test_headers_cannot_control_a_terminal(tmp_path):
    (tmp_path / "a.csv").write_text("host,user,\x1b[2J\nh1,ann,1\nuser,host,\x1b[2J\nann,h2,3\n")
    tamis(tmp_path, "index", "a.csv", "-o", "c.tamis", "--attrs", "host,user")
    assert on_terminal(tmp_path, "find", "c.tamis", "user==ann") == \
        b"host,user,\\u001b[2J\nh1,ann,1\nuser,host,\\u001b[2J\nann,h2,3\n"


def test_wide_tables(tmp_path):
    names = ["c%05d" % i for i in range(60000)]
    row = ",".join(str(i) for i in range(len(names)))
    (tmp_path / "a.csv").write_text("\n".join([",".join(names), row, ",".join(names[::-1]), row]) + "\n")
    for words in (["index", "a.csv", "-o", "c.tamis", "--attrs", "c00001"],
                  ["find", "--count", "c.tamis", "c00001==59998"]):
        done = subprocess.run([TAMIS, *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0
    assert done.stdout == "1\n"
