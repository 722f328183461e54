#!/bin/bash
# tamis remove: removed, pending, absent; exit codes; what cannot be removed from.
. "$(dirname "$0")/common.sh"

tamis create a.tamis --deletable --fpp 1e-6
tamis add a.tamis one two three three
is quiet 0 "" "" 'tamis remove a.tamis one'
is gone 0 $'two\nthree' "" 'tamis check a.tamis one two three'
is json 0 '{"keys": 2, "removed": 1, "pending": 0, "absent": 1}' "" 'tamis remove a.tamis one two --json'
is absent-is-1 1 '{"keys": 1, "removed": 0, "pending": 0, "absent": 1}' "" 'tamis remove a.tamis one --json'
is nothing-is-1 1 "" "" 'tamis remove a.tamis </dev/null'
is once-of-twice 0 three "" 'echo three | tamis remove a.tamis && tamis check a.tamis three'
is twice-of-twice 1 "" "" 'echo three | tamis remove a.tamis && tamis check a.tamis three'
is verbose 0 "" "tamis remove: 2 keys: a.tamis: 1 removed, 0 pending, 1 absent" \
    'tamis add a.tamis x; tamis remove -v a.tamis x y'
json empty-again 'tamis info a.tamis --json' 'd["items"] == 0 and d["pending"] == 0 and d["fill"] == 0'
cp a.tamis before
is absent-changes-nothing 1 "" "" 'tamis remove a.tamis q; cmp a.tamis before && (exit 1)'

# Many vectors: what could belong to several is pending, and all is gone in the end.
tamis create g.tamis --deletable --capacity 100 --expansion 1 --fpp 0.2
seq 2000 | tamis add g.tamis
json some-pending 'seq 2000 | tamis remove g.tamis --json' \
    'd["removed"] + d["pending"] == 2000 and d["absent"] == 0'
json all-gone 'tamis info g.tamis --json' 'd["items"] == 0 and d["pending"] == 0 and d["fill"] == 0'

tamis create u.tamis --deletable --unique --capacity 100 --expansion 1 --fpp 0.2
seq 1000 | tamis add u.tamis
seq 500 | tamis remove u.tamis
is unique-says-no-at-once 0 500 "" 'seq 501 1000 | tamis check -c u.tamis'

tamis create p.tamis
tamis add p.tamis x
cp p.tamis before
trouble plain 'it is not deletable: p.tamis: make one with create --deletable$' 'tamis remove p.tamis x'
holds plain-unchanged 'cmp p.tamis before'
trouble no-file 'no file: FILE: ' 'tamis remove'
trouble missing 'No such file or directory: nosuch: ' 'tamis remove nosuch x'
finish
