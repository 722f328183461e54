#!/bin/bash
# tamis intersect: the bits that all have.
. "$(dirname "$0")/common.sh"

tamis create a.tamis --growth fixed --capacity 2000 --fpp 1e-6
tamis create b.tamis --like a.tamis
tamis create c.tamis --like a.tamis
seq 1 1000 | tamis add a.tamis
seq 501 1500 | tamis add b.tamis
seq 901 1900 | tamis add c.tamis
is quiet 0 "" "" 'tamis intersect -o both.tamis a.tamis b.tamis'
is members 0 500 "" 'seq 501 1000 | tamis check -c both.tamis'
holds few-others '[ "$( (seq 500; seq 1001 1900) | tamis check -c both.tamis)" -lt 60 ]'
is three 0 100 "" 'tamis intersect -o three.tamis a.tamis b.tamis c.tamis && seq 901 1000 | tamis check -c three.tamis'
trouble refuses-existing 'the file exists: both.tamis: ' 'tamis intersect -o both.tamis a.tamis b.tamis'
json json-is-plain 'tamis intersect -f -o both.tamis a.tamis b.tamis --json' 'not d["deletable"] and d["growth"] == "fixed"'
tamis create s.tamis --like a.tamis --growth fixed --capacity 10
trouble other-shape 'the vectors have different shapes: s.tamis: make them alike with create --like$' \
    'tamis intersect -o y.tamis a.tamis s.tamis'
tamis create lone.tamis --growth fixed --capacity 2000 --fpp 1e-6
trouble other-family '.*famil.*: lone.tamis: ' 'tamis intersect -o y.tamis a.tamis lone.tamis'
trouble no-restate 'unknown option: --restate: ' 'tamis intersect -o y.tamis a.tamis b.tamis --restate'
trouble no-output 'no output file: -o OUT: ' 'tamis intersect a.tamis b.tamis'
finish
