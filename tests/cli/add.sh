#!/bin/bash
# tamis add: keys from arguments and lines, counts, what fails and that nothing changes then.
. "$(dirname "$0")/common.sh"

tamis create a.tamis --fpp 1e-6
is arguments 0 "" "" 'tamis add a.tamis one two'
is lines 0 "" "" 'printf "three\nfour\n" | tamis add a.tamis'
is members 0 $'one\ntwo\nthree\nfour' "" 'tamis check a.tamis one two three four five'
is json 0 '{"keys": 3, "added": 1, "already": 2}' "" 'tamis add a.tamis one four five --json'
is json-of-nothing 0 '{"keys": 0, "added": 0, "already": 0}' "" 'tamis add a.tamis --json </dev/null'
is verbose 0 "" "tamis add: 2 keys: a.tamis: 1 added, 1 seemed to be members already" \
    'tamis add -v a.tamis one six'
is dashes-after-two 0 "" "" 'tamis add a.tamis -- -v --json'
is dashes-are-members 0 $'-v\n--json' "" 'tamis check a.tamis -- -v --json'
is options-between 0 '{"keys": 2, "added": 0, "already": 2}' "" 'tamis add a.tamis one --json two'
is a-newline-in-an-argument 0 "" "" "tamis add a.tamis \$'x\ny'"
is is-one-key 1 "" "" 'tamis check a.tamis x y'
is found-again 0 $'x\ny' "" "tamis check a.tamis \$'x\ny'"
is the-empty-key 0 '{"keys": 1, "added": 1, "already": 0}' "" 'tamis add a.tamis "" --json'
is the-empty-line 0 '{"keys": 1, "found": 1, "missing": 0}' "" 'echo | tamis check a.tamis --json'

json many '(tamis create many.tamis && seq 200000 | tamis add many.tamis --json)' \
    'd["keys"] == 200000 and 198000 < d["added"] <= 200000'
is all-there 0 200000 "" 'seq 200000 | tamis check -c many.tamis'
json stated-rate-holds 'tamis info many.tamis --json' 'd["fpp_now"] <= d["fpp"] == 0.01'
is threads-add-the-same 0 200000 "" \
    'tamis create t.tamis && seq 200000 | tamis add -j 4 t.tamis && seq 200000 | tamis check -c t.tamis'
json deletable-counts 'tamis create d.tamis --deletable && tamis add d.tamis x x x && tamis info d.tamis --json' \
    'd["items"] == 3 and 0.9 < d["distinct"] < 1.1'

# Full.
tamis create full.tamis --growth fixed --capacity 100
cp full.tamis before
trouble full "the filter is full: full.tamis: 1[0-9][0-9] keys went in before, none was saved; " \
    'seq 1000 | tamis add full.tamis'
holds full-changes-nothing 'cmp full.tamis before'
is full-to-the-brim 0 "" "" 'seq 90 | tamis add full.tamis'
tamis create over.tamis --growth fixed --capacity 100 --overfill
is overfill 0 "" "" 'seq 1000 | tamis add over.tamis'
json overfill-shows 'tamis info over.tamis --json' 'd["items"] > 500 and d["fpp_now"] > 0.1'

trouble no-file 'no file: FILE: ' 'tamis add'
trouble missing 'No such file or directory: nosuch.tamis: check the name' 'tamis add nosuch.tamis x'
holds missing-makes-nothing '[ ! -e nosuch.tamis ] && [ ! -e nosuch.tamis.lock ]'
trouble unknown-option 'unknown option: --quick: see tamis help add$' 'tamis add a.tamis --quick'
trouble unreadable-input '.*: standard input: ' 'tamis add a.tamis <.'
is permissions-stay 0 640 "" 'tamis create shared.tamis; chmod 640 shared.tamis; tamis add shared.tamis x; stat -c %a shared.tamis'
is permissions-of-a-new-file 0 600 "" 'tamis create -f few.tamis; stat -c %a few.tamis'
finish
