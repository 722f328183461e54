#!/bin/bash
# tamis merge: unions, what keeps them from being one.
. "$(dirname "$0")/common.sh"

tamis create a.tamis --fpp 1e-4
tamis create b.tamis --like a.tamis
tamis create c.tamis --like a.tamis
seq 1 1000 | tamis add a.tamis
seq 501 1500 | tamis add b.tamis
seq 1501 3000 | tamis add c.tamis
is quiet 0 "" "" 'tamis merge -o all.tamis a.tamis b.tamis c.tamis'
is union 0 3000 "" 'seq 3000 | tamis check -c all.tamis'
holds inputs-stay '[ "$(seq 3000 | tamis check -c a.tamis)" -lt 1100 ]'
trouble refuses-existing 'the file exists: all.tamis: give another name, or --force$' \
    'tamis merge -o all.tamis a.tamis b.tamis'
is force 0 1500 "" 'tamis merge -f -o all.tamis a.tamis b.tamis && seq 1500 | tamis check -c all.tamis'
is into-an-input 0 3000 "" 'tamis merge -o all.tamis all.tamis c.tamis && seq 3000 | tamis check -c all.tamis'
json json 'tamis merge -f -o j.tamis a.tamis c.tamis --json' 'd["fpp_now"] <= d["fpp"] and d["items"] > 2400'
tamis create s.tamis --growth scalable && tamis create t.tamis --like s.tamis && tamis add s.tamis x && tamis add t.tamis y
json concat 'tamis merge -f -o j.tamis s.tamis t.tamis --concat --json' 'd["vectors"] > 1'
is itself 0 1000 "" 'tamis merge -f -o j.tamis a.tamis a.tamis && seq 1000 | tamis check -c j.tamis'

tamis create f1.tamis --growth fixed --capacity 1000
tamis create f2.tamis --like f1.tamis
seq 1000 | tamis add f1.tamis
seq 1001 1900 | tamis add f2.tamis
trouble rate-would-break '.*rate.*: f2.tamis: allow a new rate with --restate$' 'tamis merge -o f.tamis f1.tamis f2.tamis'
holds makes-nothing-then '[ ! -e f.tamis ]'
json restate 'tamis merge --restate -o f.tamis f1.tamis f2.tamis --json' 'd["fpp"] > 0.01'
is restated-has-all 0 1900 "" 'seq 1900 | tamis check -c f.tamis'

tamis create d1.tamis --deletable --unique
tamis create d2.tamis --like d1.tamis
seq 100 | tamis add d1.tamis
seq 101 200 | tamis add d2.tamis
json disjoint-keeps-unique 'tamis merge --disjoint -o d.tamis d1.tamis d2.tamis --json' 'd["unique"]'
json else-not 'tamis merge -f -o d.tamis d1.tamis d2.tamis --json' 'not d["unique"] and d["deletable"]'
is removable 0 "" "" 'seq 200 | tamis remove d.tamis'
printf '000102030405060708090a0b0c0d0e0f' >key
tamis create k1.tamis --key-file key
tamis create k2.tamis --key-file key
is no-key 0 "" "" 'tamis merge --no-key -o k.tamis k1.tamis k2.tamis'
trouble no-key-then '.*key.*: give --key-file$' 'tamis check k.tamis x'

trouble other-kind 'they differ in .*: d1.tamis: make them alike with create --like$' 'tamis create z.tamis --like d1.tamis --fpp 0.01 &&
    tamis merge -o y.tamis z.tamis d1.tamis'
tamis create lone.tamis
trouble other-family '.*famil.*: lone.tamis: make filters that belong together' 'tamis merge -o y.tamis a.tamis lone.tamis'
trouble no-output 'no output file: -o OUT: ' 'tamis merge a.tamis b.tamis'
trouble one-input 'a file is missing: tamis merge -o OUT A B...: ' 'tamis merge -o y.tamis a.tamis'
trouble missing 'No such file or directory: nosuch: ' 'tamis merge -o y.tamis a.tamis nosuch'
holds nothing-made '[ ! -e y.tamis ]'
finish
