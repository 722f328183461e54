#!/bin/bash
# tamis diff, tamis apply: versions of a filter by patches.
. "$(dirname "$0")/common.sh"

for kind in "" "--layout spread" "--deletable" "--growth smooth" "--growth smooth --deletable" "--growth dynamic --capacity 100k" "--growth fixed --capacity 100k"; do
    name=$(echo "plain$kind" | tr -d ' -')
    rm -f *.tamis
    tamis create old.tamis $kind
    seq 60000 | tamis add old.tamis
    cp old.tamis new.tamis
    seq 60001 61000 | tamis add new.tamis
    cp old.tamis copy.tamis
    is "diff-$name" 0 "" "" 'tamis diff old.tamis new.tamis >patch'
    is "apply-$name" 0 "" "" 'tamis apply copy.tamis <patch'
    holds "same-bytes-$name" 'cmp copy.tamis new.tamis'
    holds "small-$name" "[ \$(stat -c %s patch) -lt \$((\$(stat -c %s new.tamis) / 2)) ]"
    trouble "not-twice-$name" '.*: copy.tamis.*: apply patches in order' 'tamis apply copy.tamis <patch'
    holds "changes-nothing-$name" 'cmp copy.tamis new.tamis'
done
rm -f *.tamis

tamis create old.tamis --deletable
cp old.tamis new.tamis
tamis add new.tamis ann bob
cp old.tamis copy.tamis
is bits-only 0 "" "" 'tamis diff --bits-only old.tamis new.tamis >bits && tamis apply copy.tamis <bits'
is bits-only-answers 0 $'ann\nbob' "" 'tamis check copy.tamis ann bob'
json bits-only-says-so 'tamis info --json copy.tamis' 'd["bits_only"]'
trouble bits-only-is-read-only '.*read-only: copy.tamis: ' 'tamis add copy.tamis cho'
is patch-file 0 "" "" 'tamis diff old.tamis new.tamis >patch && tamis apply -p patch old.tamis'
json json 'cp new.tamis newer.tamis; tamis add newer.tamis cho; tamis diff new.tamis newer.tamis |
    tamis apply new.tamis --json' 'd["items"] == 3'
is no-change 0 "" "" 'tamis diff new.tamis new.tamis >patch && tamis apply new.tamis <patch'

tamis create lone.tamis --deletable
trouble other-family '.*famil.*' 'tamis diff new.tamis lone.tamis >/dev/null'
trouble not-a-patch '.*: standard input.*: ' 'echo hello | tamis apply new.tamis'
trouble endless-input 'not a patch: standard input: ' \
    'head -c 100M /dev/zero 2>/dev/null | tamis apply new.tamis; (exit $((PIPESTATUS[0] == 141 ? PIPESTATUS[1] : 1)))'
trouble filter-as-a-patch 'this is a structure, not a patch: big.tamis: ' 'tamis create big.tamis --capacity 1M; tamis apply new.tamis -p big.tamis'
trouble empty-patch '.*: standard input.*: ' 'tamis apply new.tamis </dev/null'
trouble half-a-patch '.*: patch.half.*: ' 'tamis diff old.tamis newer.tamis | head -c 60 >patch.half;
    tamis apply old.tamis -p patch.half'
trouble missing-patch 'No such file or directory: nosuch: ' 'tamis apply old.tamis -p nosuch'
trouble not-to-a-terminal 'a patch is binary: standard output: write it to a file with > PATCH$' \
    'script -qec "tamis diff old.tamis newer.tamis" /dev/null 2>&1 >typed </dev/null; s=$?; tr -d "\r" <typed >&2; (exit $s)'
trouble one-file 'a file is missing: tamis diff OLD NEW: ' 'tamis diff old.tamis'
trouble no-file 'a file is missing: tamis apply FILE < PATCH: ' 'tamis apply'
finish
