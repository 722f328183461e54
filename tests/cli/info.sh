#!/bin/bash
# tamis info: the figures, for people and for programs.
. "$(dirname "$0")/common.sh"

printf '000102030405060708090a0b0c0d0e0f' >key
tamis create a.tamis --growth fixed --layout spread --bits 16384 --hashes 6 --capacity 1000 \
    --key-file key
seq 500 | tamis add a.tamis
is text 0 'kind                  filter
growth                fixed
layout                spread
hash                  xxh3
deletable             no
unique                no
bits only             no
key stored            yes
items                 500
distinct (estimated)  499
capacity              1000
bytes                 BYTES
bits                  16384
vectors               1
hashes (most)         6
pending removals      0
fpp (stated)          0.000831807
fpp now (estimated)   FPP
fill                  0.16687' "" \
    'tamis info a.tamis | sed -E "s/^(bytes +).*/\1BYTES/; s/^(fpp now .* )[^ ]+$/\1FPP/"'
is vectors 0 'vectors, oldest first
   bits  hashes  capacity  items  ones          fpp
  16384       6      1000    500  2734  0.000831807' "" 'tamis info -v a.tamis | tail -3'
json keys 'tamis info --json a.tamis' 'set(d) >= {"items", "bytes", "bits", "vectors", "fpp", "fpp_now",
    "pending", "kind", "growth", "deletable", "layout", "hash", "capacity", "distinct", "fill", "hashes",
    "unique", "has_key"}'
json values 'tamis info --json a.tamis' 'd["items"] == 500 and d["kind"] == "filter" and 0.0008 < d["fpp"] < 0.0009 and
    d["bits"] == 16384 and d["vectors"] == 1 and d["pending"] == 0 and d["growth"] == "fixed" and
    d["deletable"] is False and d["has_key"] is True and 0 < d["fpp_now"] < 0.001'
json vector-list 'tamis info -v --json a.tamis' 'd["vector_list"][0]["bits"] == 16384 and
    d["vectors"] == 1 == len(d["vector_list"])'
json bytes-are-the-files 'tamis info --json a.tamis' "d['bytes'] == $(stat -c %s a.tamis)"
json many-vectors 'tamis create g.tamis --growth dynamic --capacity 15000 --vectors 200 && seq 15000 | tamis add g.tamis &&
    tamis info -v --json g.tamis' 'd["vectors"] == len(d["vector_list"]) > 128'
holds many-vectors-text '[ $(tamis info -v g.tamis | tail -n +22 | grep -c .) -gt 130 ]'
tamis create d.tamis --deletable --unique --hash sip --layout spread --growth dynamic --capacity 500
json deletable 'tamis info --json d.tamis' 'd["deletable"] and d["unique"] and d["hash"] == "sip" and
    d["layout"] == "spread" and d["growth"] == "dynamic"'
tamis create n.tamis --key-file key --no-key
json no-key 'tamis info --json n.tamis --key-file key' 'd["has_key"] is False'
is verify 0 filter "" 'tamis info --verify a.tamis --json | /usr/bin/python3 -c "import json,sys; print(json.load(sys.stdin)[\"kind\"])"'

trouble missing 'No such file or directory: nosuch: ' 'tamis info nosuch'
trouble no-file 'a file is missing: tamis info FILE: see tamis help info$' 'tamis info'
trouble two-files 'too many files: tamis info FILE: see tamis help info$' 'tamis info a b'
finish
