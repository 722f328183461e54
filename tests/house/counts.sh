#!/bin/bash
# Instructions of lookups and inserts, beside the counts recorded for this compiler: they do not
# depend on the machine's load, so a slower path shows here even where clocks are noisy.
cd "${TAMIS_ROOT:?}" || exit 2
if ! command -v valgrind >/dev/null; then
    echo "skip counts: no valgrind"
elif ! env -u MAKEFLAGS make -s --no-print-directory VARIANT=release build/release/bench/bench_count >/dev/null; then
    echo "not ok counts: bench_count does not build"
elif ! out=$(bench/counts.py --check 2>&1); then
    echo "$out"
    echo "not ok counts: more than 10 % above the record"
elif [[ $out == *"skip: no record"* ]]; then
    echo "skip counts: no record for this compiler (bench/counts.py --record)"
else
    echo "ok counts"
fi
