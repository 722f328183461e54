#!/usr/bin/python3
"""Questions of a web server's logs: tamis beside ripgrep, SQLite and DuckDB, in one run.

    bench/questions.py           250 MB in each format; BENCH_FULL=1: 1 GB; BENCH_RECORDS=n: 230 n bytes

The logs are made by bench_logs from a seed: the same requests as a combined log, as CSV and as gzipped
JSON lines. What is compared, each the median of several processes, all of them one after the other in turn:

    index    tamis index with no options; the same attributes with their keys, but nothing by words; a table in
             which nothing is (bench_records, 64 bytes per record); zcat of the gzipped ones; SQLite's import with
             an index for each of time, host and user; DuckDB's import
    find     a rare pair, an absent pair, two hours of one address, a rare word, a common word, a common value,
             one that nine of ten records have, 5,000 addresses that are nowhere, 5,000 of which 10 occur; then
             the same pair in a file that grows (.gz: by a member), with a file that is not indexed, and after a
             rotation

What is not installed (rg, sqlite3; DuckDB from npm, @duckdb/node-api, fetched to the data folder) is said and
left out. Prints each row as it is measured, at the end one table of all, and writes build/bench/questions.json.
The data goes to a temporary folder (BENCH_DATA: keep it there).
"""
import gzip
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time

import data

ROOT = data.ROOT
TAMIS = os.path.join(ROOT, os.environ.get("TAMIS", "build/release/tamis"))
LOGS = os.path.join(ROOT, "build/release/bench/bench_logs")
TABLES = os.path.join(ROOT, "build/release/bench/bench_records")
FULL = os.environ.get("BENCH_FULL") == "1"
RECORDS = int(os.environ.get("BENCH_RECORDS", 4_400_000 if FULL else 1_100_000))
FILES = 16
RUNS = int(os.environ.get("BENCH_RUNS", "7"))
NO_WORDS, TABLE = "index, no words", "index of short records"
FORMS = {"combined": "combined", "csv": "csv", "jsonl.gz": "jsonl.gz"}
rows = []

DUCK = """
const { DuckDBInstance } = require('@duckdb/node-api');
(async () => {
  const db = await DuckDBInstance.create(process.argv[2]);
  const c = await db.connect();
  await c.run('SET threads TO ' + process.argv[3]);
  for (const q of process.argv.slice(4)) {
    const start = process.hrtime.bigint();
    const r = await c.runAndReadAll(q);
    console.log(JSON.stringify({ms: Number(process.hrtime.bigint() - start) / 1e6, rows: r.currentRowCount}));
  }
})();
"""


def run(command, **more):
    """(seconds, seconds of processor, what it printed)"""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    clock = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode > 1:
        raise SystemExit("%s: %s" % (command, done.stderr.decode()[:500]))
    return clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def row(form, what, who, clock, busy=None, **more):
    rows.append({"format": form, "what": what, "who": who, "ms": 1e3 * clock,
                 **({"processor_ms": 1e3 * busy} if busy is not None else {}), **more})
    note = " ".join("%s %.4g" % item for item in more.items())
    print("  %-9s %-26s %-8s %10.2f ms %s" % (form, what, who, 1e3 * clock,
                                             ("%10.2f processor  " % (1e3 * busy) if busy is not None else "") + note), flush=True)


def in_turn(form, what, commands):
    """Each command several times, in turn, so that what else runs on the machine strikes all of them."""
    times, counts = {who: [] for who in commands}, {}
    for _ in range(RUNS):
        for who, command in commands.items():
            clock, busy, out = run(command, shell=isinstance(command, str))
            times[who].append((clock, busy))
            counts[who] = out.count(b"\n")
    for who, seen in times.items():
        row(form, what, who, statistics.median(c for c, _ in seen), statistics.median(b for _, b in seen),
            records=counts[who])
    known = {who: n for who, n in counts.items() if n >= 0}
    if len(set(known.values())) > 1:
        raise SystemExit("%s, %s: the answers differ: %s" % (form, what, known))


class Duck:
    """DuckDB, if npm can fetch it."""

    def __init__(self, place):
        self.folder = os.path.join(place, "npm")
        os.makedirs(self.folder, exist_ok=True)
        self.there = os.path.isdir(os.path.join(self.folder, "node_modules/@duckdb/node-api"))
        if not self.there and shutil.which("npm"):
            try:
                done = subprocess.run(["npm", "install", "--silent", "@duckdb/node-api"], cwd=self.folder,
                                      capture_output=True, timeout=300)
                self.there = done.returncode == 0
            except subprocess.TimeoutExpired:
                pass
        if not self.there:
            print("DuckDB is missing: npm did not fetch @duckdb/node-api; left out")
        with open(os.path.join(self.folder, "ask.js"), "w") as out:
            out.write(DUCK)
        self.file = os.path.join(place, "duck.db")

    def ask(self, *queries):
        done = subprocess.run(["node", "ask.js", self.file, "2", *queries], cwd=self.folder, capture_output=True,
                              text=True)
        if done.returncode:
            raise SystemExit("DuckDB: " + done.stderr[:500])
        return [json.loads(line) for line in done.stdout.splitlines()]

    def timed(self, what, query, count):
        if not self.there:
            return
        answers = [self.ask(query)[0] for _ in range(RUNS)]
        row("csv", what, "DuckDB", statistics.median(a["ms"] for a in answers) / 1e3, records=answers[0]["rows"])
        if answers[0]["rows"] != count:
            raise SystemExit("DuckDB, %s: %d records, not %d" % (what, answers[0]["rows"], count))


def make(place, form):
    return data.made(os.path.join(place, form), LOGS, FILES, RECORDS, form)


def samples(folder):
    """A pair that occurs, an absent one, addresses: of the CSV."""
    hosts, pairs, line = {}, {}, None
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name)) as lines:
            next(lines)
            for line in lines:
                _, host, user = line.split(",", 3)[:3]
                hosts[host] = hosts.get(host, 0) + 1
                pairs[host, user] = pairs.get((host, user), 0) + 1
    ranked = sorted(hosts, key=hosts.get)
    rare = next(p for p in sorted(pairs) if pairs[p] == 1 and 20 < hosts[p[0]] < 60)
    users = sorted({u for _, u in pairs})
    absent = next((h, u) for h in ranked[len(ranked) // 2:] for u in users[:50] if (h, u) not in pairs)
    some = ranked[:10]
    return rare, absent, ranked[-200], some


def without_words(catalog):
    """Options for the attributes of a catalog that have keys, as text where they are indexed by words."""
    known = json.loads(run([TAMIS, "info", "--json", catalog])[2])["relations"]
    keyed = [(r["name"], "text" if r["type"] == "words" else r["type"]) for r in known if r["columns"]]
    pairs = [name for name, kind in keyed if kind == "combination"] or ["none"]
    return ["--attrs", ",".join(":".join(a) for a in keyed if a[1] != "combination"),
            *(word for pair in pairs for word in ("--combo", pair))]


def index(form, folder, place, what="index", options=()):
    """The catalog; for .gz beside zcat, in turn."""
    out = os.path.join(place, "%s%d.tamis" % (form, len(options)))
    facts, inflated = [], []
    for _ in range(3):
        if os.path.exists(out):
            os.unlink(out)
        clock, busy, printed = run([TAMIS, "index", folder, "-o", out, "--json", *options])
        facts.append((clock, busy, json.loads(printed)))
        if form.endswith(".gz"):
            inflated.append(run("zcat %s/* > /dev/null" % folder, shell=True)[:2])
    clock, busy, told = sorted(facts, key=lambda f: f[1])[1]
    more = {}
    if inflated:
        more["times_zcat"] = busy / sorted(b for _, b in inflated)[1]
        row(form, what, "zcat", *sorted(inflated, key=lambda f: f[1])[1])
    row(form, what, "tamis", clock, busy, MBs=told["bytes_read"] / clock / 1e6, MBs_core=told["bytes_read"] / busy / 1e6,
        catalog_percent=100 * told["catalog_bytes"] / told["bytes_read"], **more)
    return out


def rg_pattern(form, host=None, user=None, hours=None, status=None):
    """A regular expression for the same records."""
    if form == "combined":
        return r"^%s - %s \[%s.*" % (host or r"\S+", user or r"\S+", hours or "") if not status else '" %s ' % status
    if form == "csv":
        return r"^%s[^,]*,%s,%s," % (hours or "", host or "[^,]*", user or "[^,]*") if not status else ",%s,[0-9]+,https" % status
    if status:
        return '"status":%s,' % status
    return '"time":"%s[^"]*","host":"%s","user":"%s"' % (hours or "", host or '[^"]*', user or '[^"]*')


def questions(form, folder, catalog, place, picked):
    rare, absent, busy_host, some = picked
    rg = ["rg", "-z", "-IN", "--no-messages"] if shutil.which("rg") else None
    strangers, mixed = os.path.join(place, "strangers"), os.path.join(place, "mixed")
    with open(strangers, "w") as out:
        out.writelines("172.16.%d.%d\n" % (i // 250, i % 250) for i in range(5000))
    with open(mixed, "w") as out:
        out.writelines("172.16.%d.%d\n" % (i // 250, i % 250) for i in range(4990))
        out.writelines(host + "\n" for host in some)
    hours = {"combined": r"05/May/2024:1[01]"}.get(form, "2024-05-05T1[01]")
    span = ["--since", "2024-05-05T10", "--until", "2024-05-05T11"]
    lists = {"combined": r"s/\./\\./g; s/.*/^& /", "csv": r"s/\./\\./g; s/.*/^[^,]*,&,/",
             "jsonl.gz": r's/\./\\./g; s/.*/"host":"&"/'}[form]
    for path in (strangers, mixed):
        subprocess.run("sed '%s' %s > %s.rg" % (lists, path, path), shell=True, check=True)
    host = rare[0].replace(".", r"\.")
    cases = [
        ("rare pair", ["host=" + rare[0], "user=" + rare[1]], [rg_pattern(form, host, rare[1])]),
        ("absent pair", ["host=" + absent[0], "user=" + absent[1]],
         [rg_pattern(form, absent[0].replace(".", r"\."), absent[1])]),
        ("two hours of an address", ["host=" + busy_host, *span],
         [rg_pattern(form, busy_host.replace(".", r"\."), hours=hours)]),
        ("rare word", ["agent~zebrawood"], ["-iw", "zebrawood"]),
        ("common word", ["agent~mozilla"], ["-iw", "mozilla"]),
        ("common value", ["status=404"], [rg_pattern(form, status="404")]),
        ("nine of ten", ["method=GET"], [{"combined": '"GET ', "csv": ",GET,"}.get(form, '"method":"GET"')]),
        ("5,000 strangers", ["host=@" + strangers], ["-f", strangers + ".rg"]),
        ("5,000, of which 10 occur", ["host=@" + mixed], ["-f", mixed + ".rg"]),
    ]
    for what, words, patterns in cases:
        commands = {"tamis": [TAMIS, "find", catalog, *words]}
        if rg:
            commands["rg"] = rg + patterns + [folder]
        in_turn(form, what, commands)
    return cases


def changes(form, folder, catalog, picked):
    """The rare pair in a file that grows, beside one that is not indexed, and after the files were rotated."""
    rare = picked[0]
    last = os.path.join(folder, sorted(os.listdir(folder))[-1])
    words = ["host=" + rare[0], "user=" + rare[1]]
    packed = form.endswith(".gz")
    with (gzip.open if packed else open)(last, "rb") as old:
        lines = old.read(100_000).split(b"\n")[1:-1]
    fresh = os.path.join(folder, "0new." + os.path.basename(last).split(".", 1)[1])
    shutil.copy(last, fresh)
    asked = {"tamis": [TAMIS, "find", catalog, *words]}
    if shutil.which("rg"):
        pattern = rg_pattern(form, rare[0].replace(".", r"\."), rare[1])
        asked["rg"] = ["rg", "-z", "-IN", "--no-messages", pattern, folder]
    in_turn(form, "an unindexed file", asked)
    os.unlink(fresh)
    with (gzip.open if packed else open)(last, "ab") as out:
        out.write(b"\n".join(lines) + b"\n")
    in_turn(form, "a live file", {"tamis": asked["tamis"]})
    for name in sorted(os.listdir(folder), reverse=True):
        stem, rest = name.split(".", 1)
        os.rename(os.path.join(folder, name), os.path.join(folder, "%s%02d.%s" % (stem[:-2], int(stem[-2:]) + 1, rest)))
    in_turn(form, "after a rotation", {"tamis": [TAMIS, "find", catalog, *words]})


def sqlite(folder, place, picked):
    if not shutil.which("sqlite3"):
        print("SQLite is missing: install sqlite3; left out")
        return
    base = os.path.join(place, "sqlite.db")
    if os.path.exists(base):
        os.unlink(base)
    steps = ["PRAGMA journal_mode=OFF;", "PRAGMA synchronous=OFF;",
             "CREATE TABLE log(time TEXT, host TEXT, user TEXT, method TEXT, path TEXT, status INT, bytes INT, referer TEXT, agent TEXT);",
             ".mode csv"] + [".import --skip 1 %s/%s log" % (folder, n) for n in sorted(os.listdir(folder))] + \
        ["CREATE INDEX a ON log(host, time);", "CREATE INDEX b ON log(user);", "CREATE INDEX c ON log(time);"]
    clock, busy, _ = run(["sqlite3", base], input="\n".join(steps).encode())
    size = sum(os.path.getsize(os.path.join(folder, n)) for n in os.listdir(folder))
    row("csv", "index", "SQLite", clock, busy, MBs=size / clock / 1e6, catalog_percent=100 * os.path.getsize(base) / size)
    for what, query in queries(picked):
        in_turn("csv", what, {"SQLite": ["sqlite3", "-csv", base, query]})


def queries(picked):
    rare, absent, busy_host, _ = picked
    return [("rare pair", "SELECT * FROM log WHERE host='%s' AND user='%s'" % rare),
            ("absent pair", "SELECT * FROM log WHERE host='%s' AND user='%s'" % absent),
            ("two hours of an address", "SELECT * FROM log WHERE host='%s' AND time >= '2024-05-05T10' AND "
             "time < '2024-05-05T12'" % busy_host),
            ("rare word", "SELECT * FROM log WHERE agent LIKE '%zebrawood%'"),
            ("common word", "SELECT * FROM log WHERE agent LIKE '%mozilla%'"),
            ("common value", "SELECT * FROM log WHERE status = 404"),
            ("nine of ten", "SELECT * FROM log WHERE method = 'GET'")]


def duckdb(folder, duck, picked):
    if not duck.there:
        return
    if os.path.exists(duck.file):
        os.unlink(duck.file)
    size = sum(os.path.getsize(os.path.join(folder, n)) for n in os.listdir(folder))
    took = duck.ask("CREATE TABLE log AS SELECT * FROM read_csv('%s/*.csv', types={'time': 'VARCHAR'})" % folder)[0]["ms"]
    row("csv", "index", "DuckDB", took / 1e3, MBs=size / took / 1e3, catalog_percent=100 * os.path.getsize(duck.file) / size)
    counts = {r["what"]: r["records"] for r in rows if r["who"] == "tamis" and r["format"] == "csv" and "records" in r}
    for what, query in queries(picked):
        duck.timed(what, query.replace("LIKE", "ILIKE"), counts[what])


GOALS = {"rare pair": "15", "absent pair": "3", "two hours of an address": "15", "rare word": "25",
         "common value": "1.25 x rg", "5,000 strangers": "20"}


def table():
    """All rows as one table: milliseconds elapsed, and of processor time."""
    def cell(form, what, who, text):
        found = [r for r in rows if (r["format"], r["what"], r["who"]) == (form, what, who)]
        return text(found[0]) if found else ""

    def times(r):
        return "%.3g" % r["ms"] + (" (%.3g)" % r["processor_ms"] if "processor_ms" in r else "")

    columns = [(form, who) for form in FORMS for who in ("tamis", "rg", *(("SQLite", "DuckDB") if form == "csv" else ()))]
    print("\n| ms elapsed (of processor time) | goal | " + " | ".join("%s, %s" % c for c in columns) + " |")
    print("|---|---|" + "---:|" * len(columns))
    for what in dict.fromkeys(r["what"] for r in rows if not r["what"].startswith("index")):
        print("| %s | %s | %s |" % (what, GOALS.get(what, ""), " | ".join(cell(f, what, w, times) for f, w in columns)))
    for what in ("index", NO_WORDS, TABLE):
        for name, key, goal in (("MB/s of text", "MBs", ""),
                                ("MB/s per processor second", "MBs_core", "150" if what == "index" else "300"),
                                ("catalog, % of the text", "catalog_percent", "5" if what == "index" else "3"),
                                ("processor time / zcat", "times_zcat", "1.3")):
            cells = [cell(f, what, w, lambda r: "%.3g" % r[key] if key in r else "") for f, w in columns]
            if any(cells):
                print("| %s: %s | %s | %s |" % (what, name, goal, " | ".join(cells)))


def main():
    if not shutil.which("rg"):
        print("ripgrep is missing: install ripgrep; left out")
    print("load %.1f" % os.getloadavg()[0])
    with data.folder("tamis-questions-") as place:
        folders = {form: make(place, form) for form in FORMS}
        picked = samples(folders["csv"])
        plain = data.made(os.path.join(place, "tables"), TABLES, FILES, RECORDS * 3 // FILES, "csv")
        index("csv", plain, place, TABLE)
        catalogs = {form: index(form, folder, place) for form, folder in folders.items()}
        for form, folder in folders.items():
            index(form, folder, place, NO_WORDS, without_words(catalogs[form]))
        for form in FORMS:
            questions(form, folders[form], catalogs[form], place, picked)
        sqlite(folders["csv"], place, picked)
        duckdb(folders["csv"], Duck(place), picked)
        for form in FORMS:
            changes(form, folders[form], catalogs[form], picked)
    table()
    data.save("questions.json", rows)


if __name__ == "__main__":
    sys.exit(main())
