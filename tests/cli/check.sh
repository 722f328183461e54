#!/bin/bash
# tamis check: like grep, from arguments and lines, with columns, with threads.
. "$(dirname "$0")/common.sh"

tamis create a.tamis --fpp 1e-6
tamis add a.tamis ann bob cho
is arguments 0 $'ann\nbob' "" 'tamis check a.tamis ann bob zoe'
is lines 0 $'ann\ncho' "" 'printf "ann\nzoe\ncho\n" | tamis check a.tamis'
is others 0 zoe "" 'printf "ann\nzoe\ncho\n" | tamis check -v a.tamis'
is others-long 0 zoe "" 'printf "ann\nzoe\ncho\n" | tamis check --invert-match a.tamis'
is none-is-1 1 "" "" 'tamis check a.tamis zoe'
is none-of-the-others-is-1 1 "" "" 'tamis check -v a.tamis ann'
is empty-input-is-1 1 "" "" 'tamis check a.tamis </dev/null'
is count 0 2 "" 'tamis check -c a.tamis ann bob zoe'
is count-others 0 1 "" 'tamis check -vc a.tamis ann bob zoe'
is count-none 1 0 "" 'tamis check -c a.tamis zoe'
is quiet 0 "" "" 'tamis check -q a.tamis zoe ann'
is quiet-none 1 "" "" 'tamis check -q a.tamis zoe'
is quiet-stops-early 0 "" "" 'yes ann | tamis check -q a.tamis'
is json 0 '{"keys": 3, "found": 2, "missing": 1}' "" 'tamis check --json a.tamis ann bob zoe'
is json-others 0 '{"keys": 3, "found": 2, "missing": 1}' "" 'tamis check -v --json a.tamis ann bob zoe'
is json-none 1 '{"keys": 1, "found": 0, "missing": 1}' "" 'tamis check --json a.tamis zoe'
is verify-first 0 ann "" 'tamis check --verify a.tamis ann'
is no-final-newline 0 $'ann\nbob' "" 'printf "ann\nbob" | tamis check a.tamis'

# Columns: the key is one, the line passes.
is field-tab 0 $'1\tann\tx' "" 'printf "1\tann\tx\n2\tzoe\tx\n" | tamis check a.tamis --field 2'
is field-comma 0 $'1,ann\n3,bob' "" \
    'printf "1,ann\n2,zoe\n3,bob\n" | tamis check a.tamis --field 2 --delimiter ,'
is field-first 0 ann,1 "" 'printf "ann,1\nzoe,2\n" | tamis check a.tamis --field=1 --delimiter=,'
is field-others 0 2,zoe "" 'printf "1,ann\n2,zoe\n" | tamis check -v a.tamis --field 2 --delimiter ,'
is field-of-arguments 0 1:ann "" 'tamis check a.tamis --field 2 --delimiter : 1:ann 2:zoe'
is field-empty 1 "" "" 'echo "ann,,x" | tamis check a.tamis --field 2 --delimiter ,'
is field-missing 0 1,ann "tamis check: 2 lines have no field 2: the first is line 2: they were skipped" \
    'printf "1,ann\nann\nbob\n" | tamis check a.tamis --field 2 --delimiter ,'
is field-missing-is-no-member 0 ann "*" 'printf "1,ann\nann\n" | tamis check -v a.tamis --field 2 --delimiter ,'
is field-strict 2 "" "tamis check: no field 2: line 1: nothing was changed; leave out --strict to skip such lines" \
    'printf "ann\n1,ann\n" | tamis check a.tamis --field 2 --delimiter , --strict'
is field-nul-delimiter 0 "x" "*" \
    'printf "1\0ann\n" | tamis check a.tamis --field 2 --delimiter "\0" | tr "\0" " " | grep -c "1 ann" >n; [ "$(cat n)" = 1 ] && echo x'
trouble field-zero "wrong value '0': --field: columns count from 1" 'tamis check a.tamis --field 0'
trouble delimiter-alone 'no column is used: --delimiter: give --field too$' 'tamis check a.tamis --delimiter ,'
trouble delimiter-newline 'not a valid separator: --delimiter: ' 'tamis check a.tamis --field 1 --delimiter "\n"'
trouble delimiter-long "wrong value 'ab': --delimiter: give one byte" 'tamis check a.tamis --field 1 --delimiter ab'

# Threads keep the order.
tamis create n.tamis
seq 1 3 300000 | tamis add n.tamis
seq 300000 | tamis check n.tamis >one
for threads in 2 4 0; do
    is "threads-$threads" 0 "" "" "seq 300000 | tamis check n.tamis -j $threads | cmp - one"
done
is threads-others 0 "" "" 'seq 300000 | tamis check -v -j3 n.tamis | sort -n - one | cmp - <(seq 300000)'
is threads-quiet 0 "" "" 'yes 1 | tamis check -q -j 4 n.tamis'
is threads-pipe 0 "" "" '(seq 150000; sleep 0.2; seq 150001 300000) | tamis check -j 2 n.tamis | cmp - one'
trouble threads-many 'too many threads: --threads: ' 'tamis check n.tamis -j 1000 x'
holds no-member-is-missed 'seq 1 3 300000 | tamis check n.tamis | cmp - <(seq 1 3 300000)'
holds rate-holds '[ $(seq 1000001 1100000 | tamis check -c n.tamis) -lt 1200 ]'

# What was found goes out before waiting for more.
mkfifo pipe
tamis check a.tamis <pipe >answer &
exec 3>pipe
echo bob >&3
await '[ -s answer ]'
holds answers-at-once '[ "$(cat answer)" = bob ]'
exec 3>&-
wait

trouble no-file 'no file: FILE: ' 'tamis check'
trouble missing 'No such file or directory: nosuch: ' 'tamis check nosuch x'
finish
