#!/bin/bash
# Indexes: create --attrs, and add, remove, check, info, verify, clear, merge on records.
. "$(dirname "$0")/common.sh"

# --- create
is create 0 "" "" 'tamis create a.tamis --attrs ip,user,size:int --fpp 1e-6 --deletable'
json create-json 'tamis create j.tamis --attrs a,b,c,d --combo a+b --combo b+c+d --verifier table --distinct b=10 --json' \
    'd["kind"] == "records" and [x["name"] for x in d["attributes"]] == list("abcd") and [x["attributes"] for x in d["combos"]] == ["a+b", "b+c+d"] and d["verifier"] == "table"'
json pairs-by-default 'tamis create p.tamis --attrs a,b,c --json' '[x["attributes"] for x in d["combos"]] == ["a+b", "a+c", "b+c"]'
json no-pairs 'tamis create q.tamis --attrs a,b,c --combo none --json' 'd["combos"] == []'
json types 'tamis create t.tamis --attrs n:int,d:dec,t:time,x:text --json' '[x["type"] for x in d["attributes"]] == ["int", "dec", "time", "text"]'
json distinct-saves 'tamis create r.tamis --attrs a,b --distinct b=10 --capacity 100k --json' 'd["attributes"][1]["bits"] < d["attributes"][0]["bits"] / 50'
trouble attr-twice "given twice: --attrs, 'a': " 'tamis create x.tamis --attrs a,b,a'
trouble attr-empty "no name: --attrs 'a,,b': " 'tamis create x.tamis --attrs a,,b'
trouble attr-type "unknown type 'real': --attrs: give text \(which a name with a colon needs too\), int, dec, time, ip, path, words or fold" 'tamis create x.tamis --attrs a:real'
trouble combo-unknown "unknown attribute 'z': --combo a\+z: " 'tamis create x.tamis --attrs a,b --combo a+z'
trouble combo-alone "not a combination: --combo a: " 'tamis create x.tamis --attrs a,b --combo a'
trouble combo-without-attrs "only for records: --combo: give --attrs too$" 'tamis create x.tamis --combo a+b'
for value in mixed basic attenuated; do
    json "value-$value" "tamis create -f val.tamis --attrs a,b --verifier table --value $value &&
        tamis add val.tamis a=1 b=2 && tamis check val.tamis a=1 b=2 >/dev/null && tamis info val.tamis --json" \
        "d[\"value\"] == \"$value\" and d[\"records\"] == 1"
done
json as-published 'tamis create -f pub.tamis --attrs a,b,c --combo none \
    --bits 2240 --hashes 7 --capacity 200 --value attenuated && seq 150 | sed "s/.*/&,x&,y&/" | sed 1i\ a,b,c |
    tamis add pub.tamis && tamis verify pub.tamis >/dev/null && tamis info pub.tamis --json' \
    'd["bits"] == 4 * 2240 and d["records"] == 150 and d["capacity"] == 200 and 0 < d["fpp"] < 0.01'
is as-published-has-them 0 '' '' 'for i in $(seq 150); do tamis check pub.tamis a=$i b=x$i c=y$i >/dev/null || exit 1; done'
is as-published-decoded 0 "maybe a=7	b=x7	c=y7" "" \
    '/usr/bin/python3 "$TAMIS_ROOT/tools/decode.py" check pub.tamis "a=7	b=x7	c=y7"'
trouble as-published-grows "records of given bits and hashes do not grow: growth fixed" \
    'tamis create x.tamis --attrs a,b --bits 2240 --hashes 7 --growth scalable'
trouble value-without-attrs "only for records: --value: " 'tamis create x.tamis --value basic'
trouble value-of-nothing "no verifier: --value: " 'tamis create x.tamis --attrs a,b --verifier none --value basic'
trouble verifier-without-attrs "only for records: --verifier: " 'tamis create x.tamis --verifier none'
trouble combo-not-verified "no verifier: --combo: " 'tamis create x.tamis --attrs a,b,c --combo a+b --verifier none'
trouble distinct-unknown "unknown attribute 'z': --distinct: " 'tamis create x.tamis --attrs a,b --distinct z=4'
trouble distinct-wrong "wrong value 'a': --distinct: " 'tamis create x.tamis --attrs a,b --distinct a'
trouble no-window "only for filters: --growth window: " 'tamis create x.tamis --attrs a,b --growth window:1h'
trouble no-unique "only for filters: --unique: " 'tamis create x.tamis --attrs a,b --deletable --unique'
holds nothing-was-made '! [ -e x.tamis ]'

# --- add and check: one record from the arguments
is add 0 '{"records": 1, "added": 1, "already": 0, "bad": 0}' "" 'tamis add a.tamis ip=10.1.2.3 user=ann size=007 --json'
is add-verbose 0 "" "tamis add: 1 records: a.tamis: 1 added, 0 seemed to be members already" 'tamis add -v a.tamis ip=10.1.2.4 user=bob "size!"'
is whole 0 "ip=10.1.2.3 user=ann size=7" "" 'tamis check a.tamis ip=10.1.2.3 user=ann size=7'
is one 0 "user=bob" "" 'tamis check a.tamis user=bob'
is pair 0 "user=ann ip=10.1.2.3" "" 'tamis check a.tamis user=ann ip=10.1.2.3'
is recombined 1 "" "" 'tamis check a.tamis ip=10.1.2.3 user=bob'
is others 0 "ip=10.1.2.3 user=bob" "" 'tamis check -v a.tamis ip=10.1.2.3 user=bob'
is any-of-them 0 "ip=10.1.2.3 user=zoe user=ann" "" 'tamis check a.tamis ip=10.1.2.3 user=zoe user=ann'
is none-of-them 1 "" "" 'tamis check a.tamis ip=10.1.2.3 user=zoe user=bob'
is missing 0 "user=bob size!" "" 'tamis check a.tamis user=bob "size!"'
is missing-is-not-empty 1 "" "" 'tamis check a.tamis user=bob size='
is number-as-text 0 'size=" 7 "' "" "tamis check a.tamis 'size=\" 7 \"'"
is count 0 1 "" 'tamis check -c a.tamis user=ann'
is count-none 1 0 "" 'tamis check -c a.tamis user=zoe'
is quiet 0 "" "" 'tamis check -q a.tamis user=ann'
is json 0 '{"records": 1, "found": 1, "missing": 0, "verified": true, "bad": 0}' "" 'tamis check --json a.tamis user=ann ip=10.1.2.3'
trouble unknown-attribute 'no attribute "usr"; there are: ip, user, size: usr=ann: name one of them$' 'tamis check a.tamis usr=ann'
trouble unknown-missing 'no attribute "usr"; there are: ip, user, size: usr!: ' 'tamis check a.tamis "usr!"'
trouble no-value 'no value: ann: give attr=value, attr= \(empty\) or attr! \(missing\)$' 'tamis check a.tamis ann'
trouble add-two-values 'two values: user=bob: a record has one for each attribute' 'tamis add a.tamis user=ann user=bob'
is value-with-equals 0 "" "" 'tamis add a.tamis "user=a=b" ip=1 && tamis check -q a.tamis "user=a=b" ip=1 && ! tamis check -q a.tamis user=a ip=1'
tamis create eq.tamis --attrs 'a=b,c' --fpp 1e-6
is name-with-equals 0 "a=b=1 c=2" "" 'tamis add eq.tamis a=b=1 c=2 && tamis check eq.tamis a=b=1 c=2'

# --- what is not verified is said
tamis create v.tamis --attrs a,b,c,d --combo a+b --fpp 1e-6
printf 'a,b,c,d\n1,1,1,1\n2,2,2,2\n' | tamis add v.tamis
is verified 1 "" "" 'tamis check v.tamis a=1 b=2'
is not-verified 0 "a=1 c=2" "tamis check: not verified as a combination; add --combo a+c" 'tamis check v.tamis a=1 c=2'
is not-verified-no 1 "" "tamis check: not verified as a combination; add --combo a+c" 'tamis check v.tamis a=1 c=3'
is not-verified-json 0 '{"records": 1, "found": 1, "missing": 0, "verified": false, "bad": 0}' "*" 'tamis check --json v.tamis a=1 c=2'
is subset-of-it-counts 1 "" "tamis check: not verified as a combination; add --combo a+b+c" 'tamis check v.tamis a=1 b=2 c=1'
tamis create n.tamis --attrs a,b --verifier none
tamis add n.tamis a=1 b=1
is no-verifier 0 "a=1 b=1" "tamis check: not verified as a combination; make the set with --verifier filter" 'tamis check n.tamis a=1 b=1'

# --- standard input
cat >in.csv <<'END'
ip,user,size,more
10.0.0.1,"x, ""y""",1,
10.0.0.2,,02,
10.0.0.3,"two
lines",3
END
is csv 0 '{"records": 3, "added": 3, "already": 0, "bad": 0}' "" 'tamis add a.tamis --json <in.csv'
is csv-again 0 '{"records": 3, "added": 0, "already": 3, "bad": 0}' "" 'cp a.tamis b.tamis && tamis add b.tamis --json <in.csv'
is csv-quoted 0 'ip=10.0.0.1 user=x, "y"' "" $'tamis check a.tamis ip=10.0.0.1 \'user=x, "y"\''
is csv-newline 0 "" "" $'tamis check -q a.tamis user=$\'two\\nlines\' size=3'
is csv-empty 0 "user= size=2" "" 'tamis check a.tamis user= size=2'
is csv-out 0 $'10.0.0.2,,02,\n10.0.0.3,"two\nlines",3' "" $'grep -v "^10.0.0.1" in.csv | tamis check a.tamis'
is csv-others 0 "10.0.0.1,bob,1" "" 'printf "ip,user,size\n10.0.0.1,bob,1\n10.1.2.3,ann,7\n" | tamis check -v a.tamis'
is csv-part 0 "ann,10.1.2.3" "" 'printf "user,ip\nann,10.1.2.3\nann,10.1.2.4\n" | tamis check a.tamis'
is csv-no-final-newline 0 "ann" "" 'printf "user\nzoe\nann" | tamis check a.tamis'
is csv-crlf 0 $'ann\r' "" 'printf "user\r\nann\r\nzoe\r\n" | tamis check a.tamis'
is csv-short-row 0 "10.1.2.4,bob" "" 'printf "ip,user,size\n10.1.2.4,bob\n" | tamis check a.tamis'
is csv-delimiter 0 "ann;10.1.2.3" "" 'printf "user;ip\nann;10.1.2.3\n" | tamis check a.tamis --format csv --delimiter ";"'
is tsv 0 $'ann\t10.1.2.3' "" 'printf "user\tip\nann\t10.1.2.3\n" | tamis check a.tamis'
is jsonl 0 '{"ip": "10.1.2.3", "user": "ann", "size": 7}' "" 'printf "%s\n" "{\"ip\": \"10.1.2.3\", \"user\": \"ann\", \"size\": 7}" "{\"ip\": \"10.1.2.3\"}" | tamis check a.tamis'
is jsonl-null-is-missing 0 1 "" 'echo "{\"ip\": \"10.1.2.4\", \"user\": \"bob\", \"size\": null}" | tamis check -c a.tamis'
is jsonl-some 0 '{"user": "ann"}' "" 'printf "%s\n" "{\"user\": \"ann\"}" "{\"user\": \"zoe\"}" | tamis check a.tamis --attrs user'
is gzip 0 "ann" "" 'printf "user\nann\n" | gzip | tamis check a.tamis'
is no-header 0 "1,2" "" 'tamis create c.tamis --attrs 1,2 && printf "1,2\n3,4\n" | tamis add c.tamis --no-header && printf "1,2\n1,4\n" | tamis check c.tamis --no-header'
is empty-input 1 "" "" 'tamis check a.tamis </dev/null'
is empty-add 0 '{"records": 0, "added": 0, "already": 0, "bad": 0}' "" 'tamis add a.tamis --json </dev/null'
is header-alone 1 "" "" 'echo ip,user | tamis check a.tamis'
is quiet-stops 0 "" "" '(echo user; yes ann) | tamis check -q a.tamis'
is many 0 5000 "" '(echo ip,user; seq -f "10.9.%.0f,u" 5000) | tamis add b.tamis 2>/dev/null; (echo ip,user; seq -f "10.9.%.0f,u" 10000) | tamis check -c b.tamis'
trouble no-such-column "no column 'ip': standard input: " 'printf "a,b\n1,2\n" | tamis check a.tamis'
trouble attrs-not-there "no column 'size': standard input: " 'printf "ip,user\n1,2\n" | tamis check a.tamis --attrs ip,size'
trouble attrs-unknown 'no attribute "x"; there are: ip, user, size: --attrs ip,x: ' 'printf "ip,user\n1,2\n" | tamis check a.tamis --attrs ip,x'
is add-lacks-a-column 0 "" "tamis add: no column: standard input: size is missing in every record" 'cp a.tamis d.tamis && printf "ip,user\n1,2\n" | tamis add d.tamis && tamis check -q d.tamis ip=1 user=2 "size!"'

# --- bad records
cat >bad.jsonl <<'END'
{"ip": "1.1.1.1", "user": "eve", "size": 1}
{"ip": "1.1.1.2", "user": "eve"
not json
{"ip": "1.1.1.3", "user": "eve", "size": 3}
END
is bad-skipped 0 '{"records": 2, "added": 2, "already": 0, "bad": 2}' "*" 'cp a.tamis e.tamis && tamis add e.tamis --json <bad.jsonl'
holds bad-told 'tamis check -c a.tamis <bad.jsonl 2>told; grep -q "^tamis check: bad record: standard input, line 2: .*: 2 skipped$" told'
is bad-check 0 2 "*" 'tamis check -c e.tamis <bad.jsonl'
trouble bad-strict 'bad record: standard input, line 2: .*: nothing was changed; leave out --strict to skip such records$' 'cp a.tamis f.tamis; tamis add f.tamis --strict <bad.jsonl'
holds bad-strict-changes-nothing 'cmp a.tamis f.tamis'
is utf16 0 '{"records": 1, "added": 1, "already": 0, "bad": 0}' "" 'cp a.tamis wide.tamis; printf "ip,user,size\n9.9.9.9,zed,1\n" | iconv -t UTF-16 | tamis add wide.tamis --json'

# --- remove, clear, merge
is remove 0 '{"records": 1, "removed": 1, "pending": 0, "absent": 0, "bad": 0}' "" 'tamis remove a.tamis ip=10.1.2.3 user=ann size=7 --json'
is removed 1 "" "" 'tamis check a.tamis user=ann'
is remove-absent 1 '{"records": 1, "removed": 0, "pending": 0, "absent": 1, "bad": 0}' "" 'tamis remove a.tamis ip=10.1.2.3 user=ann size=7 --json'
is remove-csv 0 '{"records": 3, "removed": 3, "pending": 0, "absent": 0, "bad": 0}' "" 'tamis remove a.tamis --json <in.csv'
trouble remove-plain 'it is not deletable: v.tamis: ' 'tamis remove v.tamis a=1 b=1 c=1 d=1'
is merge 0 "" "" 'tamis create m1.tamis --attrs a,b --fpp 1e-6 && tamis create m2.tamis --like m1.tamis && tamis add m1.tamis a=1 b=1 && tamis add m2.tamis a=2 b=2 && tamis merge -o m.tamis m1.tamis m2.tamis'
is merged 0 $'1,1\n2,2' "" 'printf "a,b\n1,1\n1,2\n2,2\n" | tamis check m.tamis'
trouble merge-others 'the structures belong to different families' 'tamis merge -o x.tamis m1.tamis n.tamis'
trouble merge-filter 'this is a filter, not a set of records: f.f' 'tamis create f.f --like m1.tamis --capacity 10; tamis merge -o x.tamis m1.tamis f.f'
trouble merge-shape 'they differ in attributes, combinations or verifier: o.tamis: make them alike with create --like$' 'tamis create o.tamis --like m1.tamis --attrs a,c; tamis merge -o x.tamis m1.tamis o.tamis'
trouble intersect 'records cannot be intersected: ' 'tamis intersect -o x.tamis m1.tamis m2.tamis'
is clear 0 "" "" 'tamis clear m.tamis && ! tamis check -q m.tamis a=1'
json like-is-alike 'tamis create l.tamis --like a.tamis --json' 'd["records"] == 0 and [x["name"] for x in d["attributes"]] == ["ip", "user", "size"] and d["deletable"]'

# --- info, verify, full
json info 'tamis info v.tamis --json' 'd["kind"] == "records" and d["records"] == 2 and d["growth"] == "scalable" and abs(d["attributes"][0]["distinct"] - 2) < 0.1'
is info-text 0 "kind                    records" "" 'tamis info v.tamis | head -1'
holds info-attributes 'tamis info v.tamis | grep -q "^  a  text, 2 values (estimated), fpp now "'
holds info-combos 'tamis info v.tamis | grep -q "^  combination  a+b, fpp now "'
is verify 0 "v.tamis: OK, $(stat -c %s v.tamis) bytes" "" 'tamis verify v.tamis'
trouble verify-damaged 'the checksum of bytes .* does not match: x.bad, ' 'cp v.tamis x.bad; printf x | dd of=x.bad bs=1 seek=3000 conv=notrunc 2>/dev/null; tamis verify x.bad'
trouble full 'the set of records is full: g.tamis: [0-9]+ records went in before, none was saved' 'tamis create g.tamis --attrs a,b --growth fixed --capacity 10; seq 50 | sed "s/.*/&,&/; 1ia,b" | tamis add g.tamis'
is full-changes-nothing 1 0 "" 'seq 50 | sed "s/.*/&,&/; 1ia,b" | tamis check -c g.tamis'
is table-exact 0 $'1,1' "" 'tamis create h.tamis --attrs a,b --verifier table --fpp 0.5 && printf "a,b\n1,1\n2,2\n" | tamis add h.tamis && printf "a,b\n1,1\n1,2\n2,1\n" | tamis check h.tamis'

# --- keys here and records there
trouble field-of-records 'only for keys: --field: a.tamis holds records$' 'tamis check a.tamis --field 2'
trouble format-of-keys 'only for records: --format: k.tamis is a filter and takes keys$' 'tamis create k.tamis; tamis add k.tamis --format csv'
trouble format-of-arguments 'only for standard input: --format: ' 'tamis check a.tamis --format csv user=ann'
trouble fold-index 'this is a set of records, not a filter: a.tamis' 'tamis fold a.tamis'
trouble dedup-index 'this is a set of records, not a filter: a.tamis' 'tamis dedup a.tamis </dev/null'
is no-key 0 "a=1 b=2" "" 'head -c 16 /dev/urandom >key && tamis create s.tamis --attrs a,b --key-file key --no-key && tamis add s.tamis a=1 b=2 --key-file key && tamis check s.tamis --key-file key a=1 b=2'
trouble key-needed 'saved without its family key: queries need the key: s.tamis' 'tamis check s.tamis a=1'
finish
