#!/bin/bash
# tamis dedup: new lines once, in order, in memory and with a file.
. "$(dirname "$0")/common.sh"

report='tamis dedup: 5 lines, 3 new: expected to be lost: 0'
is memory 0 $'b\na\nc' "$report" 'printf "b\na\nb\nc\na\n" | tamis dedup'
is no-final-newline 0 $'b\na' "*" 'printf "b\na\nb" | tamis dedup'
is empty 0 "" "tamis dedup: 0 lines, 0 new: expected to be lost: 0" 'tamis dedup </dev/null'
is field 0 $'1,x\n3,y' "*" 'printf "1,x\n2,x\n3,y\n" | tamis dedup --field 2 --delimiter ,'
is field-missing-passes 0 $'1,x\nz\nz' "tamis dedup: 2 lines have no field 2: the first is line 2: they were passed on
tamis dedup: 4 lines, 3 new: expected to be lost: 0" 'printf "1,x\nz\n2,x\nz\n" | tamis dedup --field 2 --delimiter ,'
is nul 0 $'a\nb' "*" 'printf "a\0b\0a\0" | tamis dedup -0 | tr "\0" "\n"'
json json 'printf "a\nb\na\n" | tamis dedup --json 2>&1 >/dev/null' \
    'd["lines"] == 3 and d["new"] == 2 and d["expected_lost"] < 1e-9'

# Against awk, by file and by pipe, with and without threads. The numbers pass through more than one
# level of the sieve.
awk 'BEGIN { srand(1); for (i = 0; i < 1500000; i++) print int(rand() * 900000) }' >lines
awk '!seen[$0]++' lines >want
is from-a-file 0 "" "*" 'tamis dedup <lines | cmp - want'
is from-a-pipe 0 "" "*" 'cat lines | tamis dedup | cmp - want'
is with-threads 0 "" "*" 'tamis dedup -j 3 <lines | cmp - want'
is with-capacity 0 "" "*" 'tamis dedup --capacity 100k <lines | cmp - want'
is at-a-lower-rate 0 "" "*" 'tamis dedup --fpp 1e-12 <lines | cmp - want'
is as-a-filter 0 "" "*" 'tamis dedup --layout blocked <lines | cmp - want'
is repeats-never-pass 0 "" "*" 'tamis dedup --fpp 0.1 <lines | sort | uniq -d'
holds rate-is-kept 'lost=$(($(wc -l <want) - $(tamis dedup --fpp 0.01 2>report <lines | wc -l)))
    [ $lost -gt 0 ] && [ $lost -lt 9000 ]'
holds loss-is-as-expected 'said=$(sed "s/.*lost: //" report)
    awk -v lost=$lost -v said=$said "BEGIN { exit !(lost < said + 6 * sqrt(said) && lost > said - 6 * sqrt(said)) }"'
# What the filter is, not what was asked for, says how many are lost: one that is alike, one of so many
# bits, one that is overfull; and no more than lines that were not printed.
expected() { # expected NAME OPTION...: the loss of 30,000 different lines is as it was foretold
    local name=$1
    shift
    seq 30000 | tamis dedup --json "$@" 2>.said | wc -l >.passed
    holds "$name" '/usr/bin/python3 -c "
import json
said, lost = json.load(open(\".said\"))[\"expected_lost\"], 30000 - int(open(\".passed\").read())
assert lost > 100 and said > lost / 2 and said <= 30000, (said, lost)"'
}
tamis create model.tamis --fpp 0.2 --growth fixed --capacity 30k --overfill
expected lost-when-alike --like model.tamis
expected lost-of-so-many-bits --bits 100k --hashes 3 --growth fixed --capacity 30k
expected lost-when-overfull --growth fixed --capacity 10k --fpp 0.01 --overfill
is none-lost-if-all-are-printed 0 $'a\nb' 'tamis dedup: 2 lines, 2 new: expected to be lost: 0' \
    'printf "a\nb\n" | tamis dedup --fpp 0.5'
# Options that do not apply are refused in memory too.
trouble option-of-another-growth 'only for dynamic filters: --tolerate: ' 'tamis dedup --tolerate 0.1 </dev/null'
trouble wrong-lambda "wrong value '-1': --lambda: " 'tamis dedup --lambda=-1 </dev/null'
trouble hashes-alone 'bits and hashes must be given together: ' 'tamis dedup --hashes 3 </dev/null'
trouble unique-alone 'unique is a promise about removals: ' 'tamis dedup --unique </dev/null'

# With a file.
is file-made 0 $'a\nb' "*" 'printf "a\nb\na\n" | tamis dedup seen.tamis'
is file-remembers 0 c "*" 'printf "a\nb\nc\n" | tamis dedup seen.tamis'
json file-is-a-filter 'tamis info seen.tamis --json' 'd["items"] == 3 and d["fpp"] == 1e-9'
is file-keyed 0 $'a\nb\nc' "" 'tamis check seen.tamis a b c d'
cp seen.tamis before
trouble file-keeps-its-shape 'the file exists: seen.tamis: it was created with other options; leave them out$' \
    'echo x | tamis dedup seen.tamis --fpp 0.1'
is lost-output-is-not-seen 2 "" "tamis dedup: No space left on device: standard output: results are missing; make room and run again" \
    'seq 10 | tamis dedup seen.tamis >/dev/full'
holds file-unchanged-then 'cmp seen.tamis before'
is file-with-options 0 "" "*" 'tamis dedup other.tamis --fpp 1e-6 --capacity 2M <lines | cmp - want'

# The same command again and again, as a script gives it; what differs is refused.
tamis create kin.tamis --fpp 1e-6
for options in '--fpp 1e-12 --capacity 5k' '--growth window:24h' '--growth fixed --capacity 100k --layout blocked' \
    '--growth dynamic --capacity 100k --hash sip' '--like kin.tamis' '--like kin.tamis --fpp 1e-7' '--growth flexible'; do
    rm -f often.tamis
    is "often $options" 0 $'1\n2\n3\n4' "*" "for i in 1 2 3 4; do seq \$i | tamis dedup often.tamis $options || break; done"
    seq 5000 50000 | tamis dedup often.tamis >/dev/null 2>&1
    is "when it has grown $options" 0 5 "*" "seq 5 | tamis dedup often.tamis $options"
done
tamis dedup day.tamis --growth window:24h </dev/null 2>/dev/null
for options in '--growth window:23h' '--growth fixed' '--growth window:24h --fpp 1e-8' '--growth window:24h --hash sip' \
    '--growth window:24h --layout blocked' '--growth window:24h --overfill' '--like kin.tamis' '--capacity 9'; do
    trouble "never $options" 'the file exists: day.tamis: it was created with other options; leave them out$' \
        "tamis dedup day.tamis $options </dev/null"
done

# A window forgets.
is window 0 $'a\nb\na' "*" \
    '(printf "a\nb\na\n"; sleep 1.5; echo a) | tamis dedup --growth window:1s'
trouble full 'the filter is full: f.tamis: nothing was saved; ' \
    'seq 1000 | tamis dedup f.tamis --growth fixed --capacity 10 >/dev/null'
holds full-makes-nothing '[ ! -e f.tamis ]'
trouble two-files 'too many files: tamis dedup \[FILE\]: ' 'tamis dedup a b'
trouble bad-file '.*not a tamis structure.*: lines: ' 'echo x | tamis dedup lines'
finish
