#!/bin/bash
# tamis create: every growth, layout and hash; families; what it refuses.
. "$(dirname "$0")/common.sh"

is makes-quietly 0 "" "" 'tamis create a.tamis'
holds readable-by-owner-only '[ "$(stat -c %a a.tamis)" = 600 ]'
trouble refuses-existing 'the file exists: a.tamis: give another name, or --force$' 'tamis create a.tamis'
is force-replaces 0 "" "" 'tamis create -f a.tamis'
holds leaves-no-lock '[ -z "$(ls -A | grep -v -e "^a.tamis$" -e "^\.out$" -e "^\.err$")" ]'

json default-is-smooth 'tamis create b.tamis --json' \
    'd["growth"] == "smooth" and d["hash"] == "xxh3" and d["fpp"] == 0.01 and d["items"] == 0 and
     d["vectors"] == 0 and not d["deletable"]'
json smooth-of-a-capacity 'tamis create -f b.tamis --capacity 1k --json' \
    'd["growth"] == "smooth" and d["layout"] == "blocked" and d["vectors"] == 1 and d["capacity"] == 1000'
json smooth-where-keys-go 'tamis create -f b.tamis --capacity 1k --deletable --json' 'd["growth"] == "smooth"'
json scalable-of-low-rates 'tamis create -f b.tamis --fpp 1e-5 --json' 'd["growth"] == "scalable"'
for growth in smooth fixed dynamic scalable flexible window window:90s window:30m window:24h window:7d; do
    json "growth-$growth" "tamis create -f g.tamis --growth $growth --json" \
        "d['growth'] == '${growth%%:*}'"
done
for layout in spread blocked; do
    json "layout-$layout" "tamis create -f g.tamis --layout=$layout --json" "d['layout'] == '$layout'"
done
for hash in xxh3 sip; do
    json "hash-$hash" "tamis create -f g.tamis --hash $hash --json" "d['hash'] == '$hash'"
done
json hash-h3-is-spread 'tamis create -f g.tamis --hash h3 --json' 'd["layout"] == "spread"'
json deletable-unique 'tamis create -f g.tamis --deletable --unique --json' \
    'd["deletable"] and d["unique"]'
json capacity-suffixes 'tamis create -f g.tamis --growth fixed --capacity 1.5M --json' \
    'd["capacity"] == 1500000'
json capacity-binary 'tamis create -f g.tamis --growth fixed --capacity 64Ki --json' \
    'd["capacity"] == 65536'
json rate-percent 'tamis create -f g.tamis --fpp 5% --json' 'd["fpp"] == 0.05'
json low-rates-are-spread 'tamis create -f g.tamis --fpp 1e-9 --json' 'd["layout"] == "spread"'
json as-published 'tamis create -f g.tamis --growth fixed --bits 1280 --hashes 7 \
    --capacity 133 --json' 'd["bits"] == 1280 and d["hashes"] == 7 and 0.0098 < d["fpp"] < 0.01'
json as-published-grows 'tamis create -f g.tamis --bits 640 --hashes 6 --json' 'd["bits"] == 640'
for growth in scalable dynamic flexible; do
    json "no-rate-stated-$growth" "tamis create -f g.tamis --growth $growth --bits 1280 --hashes 7 \
        --capacity 133 --json" 'd["fpp"] is None and d["fpp_now"] == 0'
done
is no-rate-in-words 0 'fpp (stated)          none stated' "" 'tamis info g.tamis | grep stated'
json add-always 'tamis create -f g.tamis --growth dynamic --bits 1280 --hashes 7 --capacity 133 \
    --layout spread --add-always && yes key | head -1330 | tamis add g.tamis && tamis info g.tamis --json' \
    'd["items"] == 1330 and d["vectors"] == 10'
json repeated-keys-take-no-room 'tamis create -f g.tamis --growth dynamic --bits 1280 --hashes 7 \
    --capacity 133 --layout spread && yes key | head -1330 | tamis add g.tamis && tamis info g.tamis --json' \
    'd["items"] == 1 and d["vectors"] == 1'
trouble add-always-fixed "only for plain filters that grow: --add-always: " \
    'tamis create -f g.tamis --growth fixed --add-always'
json dynamic-vectors 'tamis create -f g.tamis --growth dynamic --capacity 1000 --vectors 4 &&
    seq 980 | tamis add g.tamis && tamis info g.tamis --json' 'd["vectors"] == 4'
json dynamic-tolerate 'tamis create -f g.tamis --growth dynamic --fpp 0.01 --tolerate 0.05 --json' \
    'd["fpp"] == 0.05'
json flexible-lambda 'tamis create -f g.tamis --growth flexible --capacity 100 --lambda 1,2,3 &&
    seq 600 | tamis add g.tamis && tamis info -v g.tamis --json' \
    '[v["capacity"] for v in d["vector_list"]] == [100, 200, 400]'
json expansion 'tamis create -f g.tamis --capacity 100 --expansion 2 && seq 650 | tamis add g.tamis &&
    tamis info -v g.tamis --json' '[v["capacity"] for v in d["vector_list"]] == [100, 200, 400]'

# Families.
printf '000102030405060708090a0b0c0d0e0f\n' >hex
printf '\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f' >raw
tamis create k1.tamis --key-file hex
tamis create k2.tamis --key-file raw
tamis create k3.tamis
is hex-and-raw-keys-agree 0 "" "" 'tamis merge -f -o m.tamis k1.tamis k2.tamis'
trouble random-families-differ '.*famil.*: k3.tamis: ' 'tamis merge -f -o m.tamis k1.tamis k3.tamis'
is like-joins 0 "" "" 'tamis create k4.tamis --like k3.tamis && tamis merge -f -o m.tamis k3.tamis k4.tamis'
tamis create wide.tamis --growth fixed --capacity 5000 --fpp 0.001 --layout spread
tamis add wide.tamis x y z
json like-copies-shape 'tamis create wide2.tamis --like wide.tamis --json' \
    'd["growth"] == "fixed" and d["capacity"] == 5000 and d["layout"] == "spread" and d["items"] == 0'
json like-with-options-joins-only 'tamis create wide3.tamis --like wide.tamis --fpp 0.5 --json' \
    'd["growth"] == "smooth" and d["fpp"] == 0.5'
trouble like-missing 'No such file or directory: nosuch: ' 'tamis create z.tamis --like nosuch'
trouble like-other-hash 'conflicting hash: --hash: ' 'tamis create z.tamis --like wide.tamis --hash sip'

# Without the key in the file.
is no-key 0 "" "" 'tamis create nokey.tamis --key-file hex --no-key'
has_key() { /usr/bin/python3 -c 'import sys; sys.exit(open("raw", "rb").read() not in open(sys.argv[1], "rb").read())' "$1"; }
holds key-is-not-in-it 'has_key k1.tamis && ! has_key nokey.tamis'
trouble no-key-cannot-ask '.*key.*: nokey.tamis.*: give --key-file$' 'tamis check nokey.tamis x'
is no-key-add 0 "" "" 'tamis add nokey.tamis x --key-file raw'
is no-key-stays-out 0 "x" "" 'tamis check nokey.tamis x y --key-file hex'
trouble no-key-still-cannot-ask '.*key.*: give --key-file$' 'tamis check nokey.tamis x'
printf 'ff0102030405060708090a0b0c0d0e0f' >wrong
trouble no-key-wrong-key '.*key.*' 'tamis check nokey.tamis x --key-file wrong'
echo short >short
trouble short-key 'not a key: short: a key is 16 bytes or 32 hexadecimal digits$' \
    'tamis create z.tamis --key-file short'
trouble missing-key 'No such file or directory: nosuch: ' 'tamis create z.tamis --key-file nosuch'

# A family: whoever comes first makes its key.
is family 0 "" "" 'tamis create f1.tamis --family fam.key && tamis create f2.tamis --family fam.key && tamis merge -o fm.tamis f1.tamis f2.tamis'
is family-key 0 "600 33" "" 'stat -c "%a %s" fam.key'
is family-given 0 "" "" 'tamis create f3.tamis --key-file fam.key && tamis merge -f -o fm.tamis f1.tamis f3.tamis'
is family-alone 0 "fam.key" "" 'ls fam.key*'
trouble family-twice '--family has its own key: --key-file: leave it out' 'tamis create z --family fam.key --key-file fam.key'
trouble family-nowhere 'No such file or directory: no/such/key: ' 'tamis create z --family no/such/key'
trouble family-other 'not a key: f1.tamis: ' 'tamis create z --family f1.tamis'
trouble no-key-alone 'the random key would be lost: --no-key: ' 'tamis create z --no-key'

# What makes no filter.
trouble no-name 'no name: FILE: ' 'tamis create'
trouble two-names 'too many names: FILE: ' 'tamis create z y'
trouble bad-growth "wrong value 'quick': --growth: give smooth, fixed, " 'tamis create z --growth quick'
trouble bad-window "wrong duration 'soon': --growth: " 'tamis create z --growth window:soon'
trouble window-of-fixed "wrong value 'fixed:1h': --growth: " 'tamis create z --growth fixed:1h'
trouble bad-layout "wrong value 'flat': --layout: give spread\|blocked$" 'tamis create z --layout flat'
trouble bad-hash "wrong value 'md5': --hash: " 'tamis create z --hash md5'
for rate in 0 1 -1 2 nan inf 0x1 1e-400 abc ''; do
    trouble "bad-rate-$rate" "wrong value '$rate': --fpp: give a rate between 0 and 1" \
        "tamis create z --fpp '$rate'"
done
for count in -1 1.5 abc 1Q 99999999999999999999 1e30 ''; do
    trouble "bad-capacity-$count" "wrong value '$count': --capacity: give a whole number" \
        "tamis create z --capacity '$count'"
done
trouble unique-alone 'unique is a promise about removals: add deletable: z: ' 'tamis create z --unique'
trouble blocked-dynamic 'dynamic filters are bit-sliced' 'tamis create z --growth dynamic --layout blocked'
trouble deletable-window 'window filters expire keys by age' 'tamis create z --growth window --deletable'
trouble blocked-h3 'h3 gives an address' 'tamis create z --hash h3 --layout blocked'
trouble bits-alone 'bits and hashes must be given together' 'tamis create z --bits 100'
trouble lambda-alone 'only for flexible filters: --lambda: ' 'tamis create z --lambda 1,2'
trouble bad-lambda "wrong value '1,x': --lambda: " 'tamis create z --growth flexible --lambda 1,x'
trouble zero-lambda "wrong value '0': --lambda: " 'tamis create z --growth flexible --lambda 0'
trouble expansion-alone 'only for scalable filters: --expansion: ' \
    'tamis create z --growth fixed --expansion 2'
trouble tolerate-alone 'only for dynamic filters: --tolerate: ' 'tamis create z --tolerate 0.1'
for growth in '' '--growth smooth' '--growth scalable' '--growth flexible'; do
    trouble "overfill $growth" 'only for fixed, dynamic and window filters: --overfill: ' "tamis create z --overfill $growth"
done
trouble vectors-alone 'only for dynamic and window filters: --vectors: ' 'tamis create z --vectors 3'
trouble too-large '.*: z: ' 'tamis create z --growth fixed --capacity 1T --fpp 1e-9'
holds nothing-was-made '[ ! -e z ]'
finish
