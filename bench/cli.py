#!/usr/bin/python3
"""The command line against grep and sort, on one core, in one run.

    bench/cli.py            2 million lines; BENCH_FULL=1: 10 and 50 million, as the targets ask

Lines have 20 bytes. grep -Fxf builds its list and matches the same lines; tamis add and tamis check do
either half. sort -u and tamis dedup read the same file, in which every fifth line is a repeat. All run
in the C locale, on one processor, with output to /dev/null; each time is the best of several. Prints a
table, and JSON to build/bench/cli.json (or to BENCH_JSON).
"""
import binascii
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

TAMIS = os.environ.get("TAMIS", "build/release/tamis")
FULL = os.environ.get("BENCH_FULL") == "1"
LIST, STREAM = (10_000_000, 50_000_000) if FULL else (2_000_000, 2_000_000)
TIMES = 1 if FULL else 3
CHUNK = 50_000


def write_lines(path, n, repeats):
    """Random lines of 20 hexadecimal digits; with `repeats`, every fifth chunk comes again."""
    with open(path, "wb") as out:
        old = None
        for i in range(n // CHUNK):
            if repeats and i % 5 == 4:
                lines = old
            else:
                lines = binascii.hexlify(os.urandom(10 * CHUNK), "\n", 10) + b"\n"
                old = lines
            out.write(lines)


def measure(command, stdin=None, times=TIMES):
    """(seconds, peak bytes) of the best run."""
    best = None
    for _ in range(times):
        with open(stdin or os.devnull, "rb") as source, open(os.devnull, "wb") as sink:
            start = time.monotonic()
            process = subprocess.Popen(command, stdin=source, stdout=sink, stderr=subprocess.DEVNULL,
                                       env=dict(os.environ, LC_ALL="C"))
            try:
                _, status, usage = os.wait4(process.pid, 0)
            except BaseException:
                process.kill()
                raise
            seconds = time.monotonic() - start
        if status != 0:
            sys.exit("bench/cli.py: failed: %s" % " ".join(command))
        if best is None or seconds < best[0]:
            best = (seconds, usage.ru_maxrss * 1024)
    return best


def warm(path):
    with open(path, "rb") as f:
        while f.read(1 << 20):
            pass


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    rows = []
    report = {"list_lines": LIST, "stream_lines": STREAM, "rows": rows}

    def row(name, lines, mine, peer_name, peer, speed, memory):
        rows.append({"name": name, "lines": lines, "seconds": mine[0], "bytes": mine[1],
                     "peer": peer_name, "peer_seconds": peer[0], "peer_bytes": peer[1],
                     "speed": peer[0] / mine[0], "memory": mine[1] / peer[1],
                     "met": peer[0] / mine[0] >= speed and mine[1] / peer[1] <= memory})

    with tempfile.TemporaryDirectory(prefix="tamis-bench-") as folder:
        lines, stream, kept = (os.path.join(folder, x) for x in ("lines", "stream", "a.tamis"))
        write_lines(lines, LIST, False)
        write_lines(stream, STREAM, True)
        warm(lines)

        def add():
            subprocess.run([TAMIS, "create", "-f", kept], check=True)
            return measure([TAMIS, "add", kept], lines, 1)
        added = min(add() for _ in range(TIMES))
        checked = measure([TAMIS, "check", kept], lines)
        grep = measure(["grep", "-Fxf", lines, lines], None, 1)
        row("tamis add", LIST, added, "grep -Fxf", grep, 5, 0.1)
        row("tamis check", LIST, checked, "grep -Fxf", grep, 5, 0.1)
        warm(stream)
        sort = measure(["sort", "-u", "--parallel=1", stream])
        deduped = measure([TAMIS, "dedup"], stream)
        piped = measure(["sh", "-c", "cat %s | %s dedup" % (stream, TAMIS)])
        row("tamis dedup < file", STREAM, deduped, "sort -u", sort, 10, 0.1)
        row("cat file | tamis dedup", STREAM, piped, "sort -u", sort, 10, 0.1)
    print("%-24s %11s %9s %8s   %-10s %9s %8s %9s %8s" % (
        "", "lines", "seconds", "MB", "against", "seconds", "MB", "faster", "memory"))
    for r in rows:
        print("%-24s %11d %9.3f %8.1f   %-10s %9.3f %8.1f %8.1fx %7.3fx" % (
            r["name"], r["lines"], r["seconds"], r["bytes"] / 1e6, r["peer"], r["peer_seconds"],
            r["peer_bytes"] / 1e6, r["speed"], r["memory"]))
    if FULL:
        print("wanted: add and check 5x, dedup 10x, memory 0.1x: %s" % (
            "met" if all(r["met"] for r in rows) else "not met"))
    target = os.environ.get("BENCH_JSON", "build/bench/cli.json")
    os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
    with open(target, "w") as f:
        json.dump(report, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
