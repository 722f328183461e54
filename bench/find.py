#!/usr/bin/python3
"""tamis index and tamis find on records of a web server (bench/bench_records.c).

    bench/find.py           10 million records; BENCH_FULL=1: 50 million in 1,000 files, 10 GB of CSV

Records: users and addresses by Zipf's law from 100,000 each, about 115 bytes as JSONL. Prints

    index    MB of raw text a second, CSV and JSONL, plain and zstd, with two threads; and for each
             second of processor time, which says more on a machine that has other work
    size     of the catalog, as a share of the raw text
    find     milliseconds of a whole process on the .zst files: the median of 41 runs, the best one,
             and the least processor time
    pairs    false candidates, with the combination and with --verifier none, for 200 pairs of
             values that are in most segments each
    growth   find with ten times the data, the candidates being the same number

and JSON to build/bench/find.json. The data goes to a temporary folder (BENCH_DATA: keep it there).
"""
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import time

import data

ROOT = data.ROOT
TAMIS = os.path.join(ROOT, os.environ.get("TAMIS", "build/release/tamis"))
RECORDS = os.path.join(ROOT, "build/release/bench/bench_records")
FULL = os.environ.get("BENCH_FULL") == "1"
FILES = 1000 if FULL else 200
EACH = 50_000
RUNS = 41
figures = {}


def figure(name, value, unit, target=""):
    figures[name] = value
    print("  %-46s %10.4g %-6s %s" % (name, value, unit, target), flush=True)


def address(rank):
    return "10.%d.%d.%d" % (rank // 250 // 250, rank // 250 % 250, rank % 250)


def make(folder, files, records, form):
    return data.made(folder, RECORDS, files, records, form)


def index(out, folder, *options):
    """What --json tells, and the processor's seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([TAMIS, "index", "-o", out, "--json", *options, folder], check=True,
                          capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    facts = json.loads(done.stdout)
    facts["processor"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return facts


def find(catalog, *words):
    done = subprocess.run([TAMIS, "find", catalog, "--explain", "--json", *words],
                          capture_output=True, text=True)
    assert done.returncode < 2, done.stderr
    return json.loads(done.stdout)


def timed(name, target, *command):
    """The median of the clock, the best of it, and the least processor time."""
    times, busy = [], []
    for _ in range(RUNS):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        times.append(1e3 * (time.perf_counter() - start))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        busy.append(1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
        assert done.returncode < 2
    figure(name, statistics.median(times), "ms",
           "%-10s best %.2f, processor %.2f" % (target, min(times), min(busy)))


def choose(catalog, rng, wanted):
    """A pair that is in just so many segments."""
    for _ in range(2000):
        words = ["ip=" + address(rng.randrange(300, 3000)), "user=u%05d" % rng.randrange(300, 3000)]
        facts = find(catalog, *words)
        if facts["candidates"] == wanted and facts["false_candidates"] == 0:
            return words
    raise SystemExit("no pair is in %d segments" % wanted)


def speeds(place):
    print("index: raw text, MB/s")
    for form, target in (("csv", "target 300"), ("jsonl", "target 200")):
        folder = make(os.path.join(place, form), 8, 500_000, form)
        best = busy = 0
        for _ in range(3):
            facts = index(os.path.join(place, form + ".tamis"), folder, "--attrs", "ip,user,path",
                          "--combo", "ip+user", "-j", "2")
            best = max(best, facts["bytes_read"] / facts["seconds"] / 1e6)
            busy = max(busy, facts["bytes_read"] / facts["processor"] / 1e6)
        figure("index %s, 3 attributes, 1 combination" % form, best, "MB/s", target)
        figure("  for each second of processor time", busy, "MB/s")


def latencies(place):
    folder = make(os.path.join(place, "zst"), FILES, EACH, "jsonl.zst")
    catalog = os.path.join(place, "zst.tamis")
    options = ["--attrs", "ip,user,path"]
    print("catalog: %d files, %d records" % (FILES, FILES * EACH))
    facts = index(catalog, folder, *options, "--combo", "ip+user")
    figure("index of .zst, decompression included", facts["bytes_read"] / facts["seconds"] / 1e6, "MB/s")
    figure("catalog, 3 attributes and 1 combination",
           100 * facts["catalog_bytes"] / facts["bytes_read"], "%", "target 6")
    more = index(os.path.join(place, "more.tamis"), folder, *options, "--combo", "ip+user", "--combo",
                 "user+path")
    figure("one more combination", 100 * (more["catalog_bytes"] - facts["catalog_bytes"]) /
           facts["bytes_read"], "%", "target about 2")
    rng = random.Random(7)
    print("find: milliseconds, process start included")
    timed("(a process that does nothing)", "", "/bin/true")
    for wanted, target in ((0, "target 3"), (1, "target 20"), (2, "target 20")):
        words = choose(catalog, rng, wanted)
        timed("a pair in %d segments" % wanted, target, TAMIS, "find", catalog, *words)
        if wanted == 0:
            timed("a pair in 0 segments, --trust", "", TAMIS, "find", catalog, "--trust", *words)
    return folder, catalog


def pairs(place, folder, catalog):
    print("pairs of values that are in most segments each")
    bare = os.path.join(place, "none.tamis")
    index(bare, folder, "--attrs", "ip,user,path", "--verifier", "none")
    rng = random.Random(11)
    wrong, wrong_bare, n = 0, 0, 20 if not FULL else 50
    for _ in range(200):
        words = ["ip=" + address(rng.randrange(500, 3000)), "user=u%05d" % rng.randrange(500, 3000), "--trust"]
        facts = find(catalog, *words)
        wrong += facts["false_candidates"]
        if n:
            n -= 1
            wrong_bare += find(bare, *words)["false_candidates"] * (200 / (20 if not FULL else 50))
    figure("false candidates per question, none", wrong_bare / 200, "")
    figure("false candidates per question, verifier", wrong / 200, "")
    figure("times fewer (at least)", wrong_bare / max(wrong, 1), "", "target 20")


def growth(place):
    print("growth: find with one candidate as the data grows")
    for files in (16, 160) if not FULL else (160, 1600):
        folder = make(os.path.join(place, "csv%d" % files), files, 100_000, "csv")
        catalog = os.path.join(place, "csv%d.tamis" % files)
        facts = index(catalog, folder, "--attrs", "ip,user")
        words = choose(catalog, random.Random(3), 1)
        timed("%.2f GB of CSV" % (facts["bytes_read"] / 1e9), "", TAMIS, "find", catalog, *words)


def main():
    with data.folder("tamis-bench-") as place:
        speeds(place)
        pairs(place, *latencies(place))
        growth(place)
    data.save("find.json", figures)


if __name__ == "__main__":
    sys.exit(main())
