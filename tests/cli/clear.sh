#!/bin/bash
# tamis clear: empty again, the family stays.
. "$(dirname "$0")/common.sh"

tamis create a.tamis --capacity 1000
tamis create b.tamis --like a.tamis
seq 5000 | tamis add a.tamis
is quiet 0 "" "" 'tamis clear a.tamis'
is empty 1 0 "" 'seq 5000 | tamis check -c a.tamis'
json as-new 'tamis info --json a.tamis' 'd["items"] == 0 and d["vectors"] == 1 and d["fill"] == 0'
is family-stays 0 "" "" 'tamis merge -o m.tamis a.tamis b.tamis'
json json 'tamis clear --json a.tamis' 'd["items"] == 0'
trouble no-restate 'unknown option: --restate: see tamis help clear$' 'tamis clear a.tamis --restate'
trouble missing 'No such file or directory: nosuch: ' 'tamis clear nosuch'
trouble no-file 'a file is missing: tamis clear FILE: ' 'tamis clear'
finish
