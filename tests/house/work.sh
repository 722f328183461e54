#!/bin/bash
# How work grows with its size (keys, vectors, layers, pending removals, attributes): counted
# instructions at n and at 4n, so that what grows with a square fails on any machine.
cd "${TAMIS_ROOT:?}" || exit 2
if ! command -v valgrind >/dev/null; then
    echo "skip work: no valgrind"
elif ! env -u MAKEFLAGS make -s --no-print-directory VARIANT=release build/release/bench/bench_work >/dev/null; then
    echo "not ok work: bench_work does not build"
elif ! out=$(bench/work.py 2>&1); then
    echo "$out"
    echo "not ok work: something grows with more than its size"
else
    echo "ok work"
fi
