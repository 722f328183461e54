#!/bin/bash
# tamis verify: every byte.
. "$(dirname "$0")/common.sh"

tamis create a.tamis --growth fixed --capacity 1000
seq 500 | tamis add a.tamis
size=$(stat -c %s a.tamis)
is good 0 "a.tamis: OK, $size bytes" "" 'tamis verify a.tamis'
cp a.tamis b.tamis
is several 0 "a.tamis: OK, $size bytes
b.tamis: OK, $size bytes" "" 'tamis verify a.tamis b.tamis'
json json 'tamis verify --json a.tamis' "d == {'file': 'a.tamis', 'ok': True, 'bytes': $size}"

flip() { # flip FILE OFFSET: one bit
    /usr/bin/python3 - "$1" "$2" <<'END'
import sys
path, at = sys.argv[1], int(sys.argv[2])
with open(path, "r+b") as f:
    f.seek(at)
    byte = f.read(1)[0]
    f.seek(at)
    f.write(bytes([byte ^ 1 << at % 8]))
END
}

bad=0
for at in $(seq 0 37 $((size - 1))) $((size - 1)); do
    cp a.tamis b.tamis
    flip b.tamis "$at"
    tamis verify b.tamis >.out 2>.err
    [ $? = 2 ] && [ ! -s .out ] && [ "$(wc -l <.err)" = 1 ] || { bad=$((bad + 1)); worst=$at; }
done
holds every-flipped-bit "[ $bad = 0 ] || { echo $bad not noticed, as at ${worst:-0}; false; }"
bad=0
for len in 0 1 63 64 100 128 $((size / 2)) $((size - 1)); do
    head -c "$len" a.tamis >b.tamis
    tamis verify b.tamis >.out 2>.err
    [ $? = 2 ] && [ "$(wc -l <.err)" = 1 ] || bad=$((bad + 1))
done
holds every-truncation "[ $bad = 0 ]"
cp a.tamis b.tamis
flip b.tamis $((size / 2))
trouble names-the-place '.*: b.tamis, byte [0-9]+: restore it from a copy$' 'tamis verify b.tamis'
is one-bad-of-two 2 "a.tamis: OK, $size bytes" "*" 'tamis verify b.tamis a.tamis'
is json-bad 2 false "*" 'tamis verify --json b.tamis >report; status=$?
    /usr/bin/python3 -c "import json; d = json.load(open(\"report\")); print(str(d[\"ok\"]).lower())"; (exit $status)'
printf 'more' >>a.tamis
trouble trailing-bytes '.*: a.tamis' 'tamis verify a.tamis'
trouble not-a-filter '.*not a tamis structure: verify.txt: ' 'echo hello, this is a text file >verify.txt; tamis verify verify.txt'
trouble missing 'No such file or directory: nosuch: ' 'tamis verify nosuch'
trouble no-file 'a file is missing: tamis verify FILE...: ' 'tamis verify'
finish
