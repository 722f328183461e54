#!/bin/bash
# bench/run: its table, its JSON and its plots agree on what was measured.
export BENCH_QUICK=1 BENCH_OUT=$PWD/bench
if ! env -u MAKEFLAGS make -s -C "${TAMIS_ROOT:?}" --no-print-directory VARIANT=release \
    build/release/bench/bench_filter >/dev/null 2>&1; then
    echo "not ok bench: bench_filter does not build"
    exit 1
fi
if ! "$TAMIS_ROOT/bench/run" bench_filter > table.txt 2> errors.txt; then
    echo "not ok bench: $(head -c 300 errors.txt)"
    exit 1
fi
/usr/bin/python3 - <<'END'
import json, re
data = json.load(open("bench.json"))
rows = data["rows"]
table = open("table.txt").read()
failed = 0


def check(name, good):
    global failed
    failed += not good
    print("ok " + name if good else "not ok %s: %s" % (name, rows[:3]))


check("machine", all(data[key] for key in ("machine", "cores", "commit", "date")))
check("rows", {(r["n"], r["filter"], r["what"]) for r in rows} >=
      {(n, "tamis blocked", w) for n in (1e4, 1e5)
       for w in ("lookup, batch", "lookup, one", "insert, one", "insert, by 1024", "rate")})
# a row has six digits, so its last two may be rounded otherwise than those of the table
check("table-is-json", all(any("%.2f ns" % (r["ns"] * near) in table for near in (1 - 1e-6, 1, 1 + 1e-6))
                           for r in rows if "ns" in r))
for name in ("lookup", "insert", "bits"):
    text = open("bench/%s-0.01.svg" % name).read()
    check("plot-" + name, text.startswith("<?xml") and "tamis blocked" in text)
raise SystemExit(failed)
END
