#!/bin/bash
# Options: every way to write them, every way to get them wrong.
. "$(dirname "$0")/common.sh"

tamis create a.tamis --fpp 1e-6
tamis add a.tamis x y
is equals 0 x "" 'tamis check a.tamis --field=1 --delimiter=: x'
is apart 0 x "" 'tamis check a.tamis --field 1 --delimiter : x'
is letters-together 0 1 "" 'tamis check -vc a.tamis x q'
is letter-with-value 0 x "" 'tamis check -j2 a.tamis x'
is letter-value-apart 0 x "" 'tamis check -j 2 a.tamis x'
is anywhere 0 1 "" 'tamis check a.tamis x q -c'
is flags-may-repeat 0 q "" 'tamis check -v -v a.tamis x q'
is dash-is-a-word 1 "" "" 'tamis check a.tamis -'
is words-after-dashes 1 0 "" 'tamis check -c a.tamis -- -c --field'
is tab-by-name 0 $'x\t1' "" 'printf "x\t1\n" | tamis check a.tamis --field 1 --delimiter "\t"'
trouble unknown-long 'unknown option: --nosuch: see tamis help check$' 'tamis check a.tamis --nosuch'
trouble unknown-with-value 'unknown option: --nosuch: ' 'tamis check a.tamis --nosuch=3'
trouble no-abbreviations 'unknown option: --coun: ' 'tamis check a.tamis --coun x'
trouble unknown-letter 'unknown option: -z: see tamis help check$' 'tamis check a.tamis -z'
trouble unknown-letter-inside 'unknown option: -z: ' 'tamis check a.tamis -vz'
trouble value-missing 'missing value: --field: see tamis help check$' 'tamis check a.tamis --field'
trouble value-is-an-option 'missing value: --field: -j is an option; if it is the value, give --field=-j$' 'tamis check a.tamis --field -j 2'
trouble letter-value-is-an-option 'missing value: -j: --json is an option; ' 'tamis check a.tamis -j --json'
trouble update-verbose 'missing value: --update: -v is an option; ' 'tamis index --update -v c.tamis'
trouble letter-value-missing 'missing value: -j: see tamis help check$' 'tamis check a.tamis -j'
trouble value-not-wanted "unexpected value '1': --count: the option takes no value$" 'tamis check a.tamis --count=1'
trouble given-twice 'option given twice: --field: give it once$' 'tamis check a.tamis --field 1 --field 2'
trouble not-a-number "wrong value 'x': --field: give a whole number " 'tamis check a.tamis --field x'
trouble negative "wrong value '-3': --field: " 'tamis check a.tamis --field -3'
trouble hexadecimal "wrong value '0x10': --field: " 'tamis check a.tamis --field 0x10'
trouble odd-suffix "wrong value '3m': --field: " 'tamis check a.tamis --field 3m'
trouble too-small-for-a-number "wrong value '1e-400': --field: " 'tamis check a.tamis --field 1e-400'
trouble empty-value "wrong value '': --field: " 'tamis check a.tamis --field ""'
trouble newline-in-a-name 'No such file or directory: a\\nb: ' "tamis check \$'a\nb' x"
finish
