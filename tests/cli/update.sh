#!/bin/bash
# tamis index --update: what is read again, what goes, what stays.
. "$(dirname "$0")/common.sh"

facts() { # facts NAME EXPRESSION: of one update
    json "$1" 'tamis index --update c.tamis --json' "$2"
}
mkdir d
for i in 1 2 3; do printf 'ip,user\n%d,ann\n%d,bob\n' $i $i >d/$i.csv; done
sleep 2.1 # so that their times are past
tamis index -o c.tamis --attrs ip,user d
cp c.tamis before
facts nothing-to-do 'd["read"] == 0 and d["new"] == d["changed"] == d["grown"] == d["removed"] == 0'
holds nothing-written 'cmp c.tamis before'

printf '4,cho\n' >>d/1.csv
facts grown 'd["grown"] == 1 and d["read"] == 1 and d["bytes_read"] == 6 and d["records_read"] == 1'
is grown-found 0 4,cho "" 'tamis find c.tamis user=cho'
printf 'ip,user\n5,dan\n' >d/0.csv
facts new 'd["new"] == 1 and d["records_read"] == 1'
is new-found 0 5,dan "" 'tamis find c.tamis user=dan'
printf 'ip,user\n2,eve\n2,bob\n' >d/2.csv
facts changed 'd["changed"] == 1 and d["records_read"] == 2'
is changed-found 0 2,eve "" 'tamis find c.tamis user=eve ip=2'
is changed-gone 1 "" "" 'tamis find c.tamis ip=2 user=ann'
rm d/3.csv
facts removed 'd["removed"] == 1 and d["read"] == 0'
is removed-gone 1 "" "" 'tamis find c.tamis ip=3'
is the-rest-stays 0 $'5,dan\n1,ann\n1,bob\n4,cho\n2,eve\n2,bob' "" 'tamis find c.tamis ip=1 ip=2 ip=4 ip=5'
touch -d '2001-01-01' d/1.csv
facts another-time-is-no-change 'd["changed"] == d["read"] == 0'
# The same size and time, but other bytes at an end: noticed by the update.
touch -r d/2.csv when
sed -i 's/eve/amy/' d/2.csv
touch -r when d/2.csv
facts same-size-and-time 'd["changed"] == 1'
is same-size-and-time-found 0 2,amy "" 'tamis find c.tamis user=amy'
mkdir d/sub more
printf '{"ip": "6", "user": "fay"}\n' | gzip >d/sub/x.jsonl.gz
printf 'ip,user\n7,gus\n' >more/y.csv
json another-root 'tamis index --update c.tamis more --json' 'd["new"] == 2 and d["inputs"] == 5'
is another-root-found 0 7,gus "" 'tamis find c.tamis user=gus'
printf 'ip,user\n8,hal\n' >more/z.csv
is another-root-is-watched 0 8,hal "" 'tamis find c.tamis user=hal'
facts another-root-stays 'd["new"] == 1 and d["inputs"] == 6'

# A line a minute does not make a segment a minute.
printf 'n\n' >log.csv
echo 0 >>log.csv
tamis index -o l.tamis --attrs n log.csv
for i in $(seq 60); do
    echo $i >>log.csv
    tamis index --update l.tamis || echo failed
done >.out 2>&1
json few-segments 'tamis find l.tamis n=30 --explain --json' 'd["segments"] <= 8 and d["matches"] == 1 and d["records"] == 61'
is all-found 0 "" "" 'for i in $(seq 0 60); do tamis find l.tamis n=$i; done | cmp - <(seq 0 60)'
# An open record, half written, then whole; a packed file cut short, then whole.
printf 'n\n1\n2' >open.csv
seq 5000 | sed 's/.*/{"n": &}/' | gzip >whole.gz
head -c 5000 whole.gz >p.jsonl.gz
tamis index -o o.tamis --attrs n open.csv p.jsonl.gz 2>told
holds half-is-told 'grep -q "p.jsonl.gz: the rest of it was skipped" told'
printf '34\n5\n' >>open.csv
tail -c +5001 whole.gz >>p.jsonl.gz
json both-grew 'tamis index --update o.tamis --json' 'd["grown"] == 2 and d["failed"] == 0'
is open-record 0 234 "" 'tamis find o.tamis n=234 | head -1'
is open-record-gone 0 '{"n": 2}' "" 'tamis find o.tamis n=2'
is packed-end 0 '{"n": 5000}' "" 'tamis find o.tamis n=5000'
json records-counted 'tamis find o.tamis n=1 --explain --json' 'd["records"] == 5003'

trouble missing 'no catalog: nosuch: ' 'tamis index --update nosuch'
trouble no-new-shape 'options for a new catalog: --update c.tamis: ' 'tamis index --update c.tamis --fpp 0.1'
trouble strict 'bad record: d/bad.jsonl, line 1: ' 'echo "{oops" >d/bad.jsonl; cp c.tamis before; tamis index --update c.tamis --strict'
holds strict-changes-nothing 'cmp c.tamis before'
rm d/bad.jsonl

is permissions-stay 0 640 "" 'chmod 640 c.tamis; tamis index --update c.tamis; printf "ip,user\n9,ida\n" >d/9.csv
    tamis index --update c.tamis && stat -c %a c.tamis; rm d/9.csv; tamis index --update c.tamis'

# A folder that cannot be looked into is not empty: what is known of its files is in doubt, not gone.
if as_user "$(command -v tamis)" version >/dev/null 2>&1; then
    mkdir -p closed/in/sub closed/own
    printf 'ip,user\n1,ann\n' >closed/in/a.csv
    printf 'ip,user\n2,bob\n' >closed/in/sub/b.csv
    printf 'ip,user\n3,cho\n' >closed/in/sub.csv
    chmod 755 . closed closed/in closed/in/sub
    chmod 644 closed/in/*.csv closed/in/sub/*.csv
    chmod 777 closed/own
    as_user tamis index -o closed/own/c.tamis --attrs ip,user closed/in
    chmod 000 closed/in/sub
    rm closed/in/sub.csv
    cp closed/own/c.tamis before
    trouble shut-folder-strict 'Permission denied: closed/own/../in/sub: nothing was changed$' \
        'as_user tamis index --strict --update closed/own/c.tamis'
    holds shut-folder-strict-changes-nothing 'cmp closed/own/c.tamis before'
    is shut-folder 2 '0 1 2' "*" 'as_user tamis index --update closed/own/c.tamis --json >facts; s=$?
        /usr/bin/python3 -c "import json; d = json.load(open(\"facts\")); print(d[\"new\"], d[\"removed\"], d[\"inputs\"])"
        (exit $s)'
    holds shut-folder-told 'as_user tamis index --update closed/own/c.tamis 2>&1 |
        grep -q "Permission denied: closed/own/../in/sub: its files are not found"'
    is shut-folder-is-no-proof 2 "" "*" 'as_user tamis find closed/own/c.tamis ip=2'
    is others-are-there 0 1,ann "*" 'as_user tamis find closed/own/c.tamis ip=1 --trust; true'
    trouble shut-folder-new 'Permission denied: closed/own/../in/sub: nothing was changed$' \
        'as_user tamis index --strict -o closed/own/new.tamis --attrs ip,user closed/in'
    is shut-folder-new-status 2 "" "tamis index: Permission denied: closed/own/../in/sub: its files are not found" \
        'as_user tamis index -o closed/own/new.tamis --attrs ip,user closed/in'
    chmod 755 closed/in/sub
    is open-again 0 2,bob "" 'as_user tamis find closed/own/c.tamis ip=2'
    is open-again-updated 0 2,bob "" 'as_user tamis index --update closed/own/c.tamis; as_user tamis find closed/own/c.tamis ip=2'
else
    echo "skip a shut folder: no other user may run the program"
fi

# Rotation: what has a number or a date behind its name is one of the inputs still.
mkdir turn
printf '{"ip": 1, "user": "ann"}\n' >turn/web.jsonl
tamis index -o turn.tamis --attrs ip,user turn
mv turn/web.jsonl turn/web.jsonl.1
printf '{"ip": 2, "user": "ann"}\n' >turn/web.jsonl
is rotated-is-found 0 $'{"ip": 2, "user": "ann"}\n{"ip": 1, "user": "ann"}' "" 'tamis find turn.tamis user=ann'
json rotated-is-not-read 'tamis find turn.tamis user=ann --explain --json' \
    'd["renamed"] == d["new"] == 1 and d["changed"] == d["removed"] == 0 and d["bytes_hashed"] == d["unindexed_bytes_read"] == 25'
json rotated-is-not-read-again 'cp turn.tamis copy.tamis; tamis index --update copy.tamis --json' \
    'd["renamed"] == d["new"] == d["read"] == 1 and d["bytes_read"] == 25 and d["removed"] == d["changed"] == 0'
is rotated 0 $'{"ip": 2, "user": "ann"}\n{"ip": 1, "user": "ann"}' "" 'tamis index --update turn.tamis && tamis find turn.tamis user=ann'
gzip -c turn/web.jsonl.1 >turn/web.jsonl.2.gz && rm turn/web.jsonl.1
mv turn/web.jsonl turn/web.jsonl-20240131
printf '{"ip": 3, "user": "ann"}\n' >turn/web.jsonl
is rotated-again 0 3 "" 'tamis index --update turn.tamis && tamis find -c turn.tamis user=ann'

# A quote that was open at the end is closed by what comes: whatever was cut behind it.
(echo id,v; echo '0,"x'; seq -f '%g,yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy' 9000) >quote.csv
is open-quote 0 8000,yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy \
    "tamis index: bad record: quote.csv, line 2: a quote is not closed: 1 found only by their lines" \
    'tamis index -o q.tamis --attrs id --segment 64K quote.csv; tamis find q.tamis id=8000'
echo '9001,end"' >>quote.csv
is closed-quote 1 "" "" 'tamis find q.tamis id=8000'
is closed-quote-updated 1 "" "" 'tamis index --update q.tamis; tamis find q.tamis id=8000'
is closed-quote-counted 0 9002 "" 'tamis find q.tamis id=0 | wc -l'

# Two at once: the second waits, or says so. Killed: the old catalog is whole and can be updated.
seq 400000 | awk 'BEGIN {print "ip,user"} {print $1 ",u" $1 % 1000}' | gzip >d/big.csv.gz
tamis index --update c.tamis &
tamis index --update c.tamis
wait
is both-ended 0 400000,u0 "" 'tamis find c.tamis ip=400000'
flock -F c.tamis.lock sleep 600 &
holder=$!
await '! flock -n c.tamis.lock true'
trouble no-wait '.*is writing to c.tamis: ' 'tamis index --update c.tamis --no-wait'
tamis index --update c.tamis &
sleep 0.2
kill -TERM $!
wait $! 2>/dev/null
holds a-waiting-one-ends "[ $? = 143 ]"
kill $holder
wait $holder 2>/dev/null
rm -f c.tamis.lock
cp c.tamis before
for delay in 0.002 0.01 0.02 0.04 0.08; do
    touch -d "2002-01-01 $(date +%T)" d/big.csv.gz
    rm -f c.tamis.lock
    tamis index --update c.tamis &
    await '[ -s c.tamis.lock ] || ! kill -0 $! 2>/dev/null' # it is at work
    sleep $delay
    kill -KILL $! 2>/dev/null
    wait $! 2>/dev/null
    is "killed-$delay" 0 $'5,dan\n5,u5' "" 'tamis find c.tamis ip=5'
done
is updated-after-all 0 $'5,dan\n5,u5' "" 'tamis index --update c.tamis; tamis find c.tamis ip=5'
holds nothing-left '! ls -A | grep -q "lock\|\.tamis-"'

# Nothing said: attributes and types are chosen, and the catalog lies beside.
mkdir auto
for i in $(seq 200); do echo "10.1.0.$((i % 250)),user$((i % 7)),$((200 + i % 3)),0.$i,2024-05-01T10:00:$((10 + i % 50))Z"; done |
    sed '1i ip,user,status,ratio,at' >auto/a.csv
is auto 0 "" "" 'tamis index auto/'
json auto-chosen 'tamis find auto --json' '{a["name"]: a["type"] for a in d["attributes"] if a["indexed"]} == {"ip": "ip", "user": "text", "status": "int", "ratio": "dec", "at": "time"}'
is auto-time 0 4 "" 'tamis find auto --since 2024-05-01T10:00:59Z -c'
# Records so short that no attribute costs less than 3 %: the best one is indexed nevertheless, and told.
mkdir short
seq 200000 | awk 'BEGIN {print "n,user,kind"} {print $1 * 7919 % 1000003 ",u" $1 * 104729 % 999983 "," $1 % 3}' >short/a.csv
is short-told 0 "" "" 'tamis index short 2>told && grep -q "indexed: user:text: [5-9]\.[0-9] % of the text, since records are short" told'
json short-rejected 'tamis find short user=u104729 --explain --json' 'd["matches"] == 1 and d["candidates"] == 1'
json short-absent 'tamis find short user=nobody --explain --json; [ $? = 1 ]' 'd["candidates"] == 0'
is auto-explained 0 "" "" 'tamis index -v -o v.tamis auto/a.csv 2>told && grep -q "indexed: user:text: 7 values in 200 of 200 records" told && grep -q "lowest and highest: ratio:dec" told'
is auto-same 0 "" "" 'tamis index -o w.tamis auto/a.csv && cmp <(tamis info w.tamis | grep -v bytes) <(tamis info v.tamis | grep -v bytes)'
# Again: an update. Fields that come with new files are indexed from then on, others stay what they are.
printf '{"ip": "10.1.0.3", "order": "A-17", "user": "user3"}\n{"order": "B-4"}\n' >auto/b.jsonl
is auto-again 0 "" "" 'tamis index auto'
is auto-new-field 0 '{"order": "B-4"}' "" 'tamis find auto order=B-4'
json auto-new-is-indexed 'tamis find auto order=B-4 --explain --json' 'd["conditions"]["order=B-4"] == "rejects segments" and d["inputs"] == 2'
is auto-quiet 0 "" "" 'tamis index --update auto.tamis'
# By hand: attributes and combinations that were not thought of.
is more 0 "" "" 'tamis index -o m.tamis --attrs ip auto/a.csv && tamis index --update m.tamis --attrs user:text --combo ip+user'
is more-found 0 200 "" 'tamis find m.tamis user!=nobody -c'
is more-verified 0 10.1.0.3,user3,200,0.3,2024-05-01T10:00:13Z "" 'tamis find m.tamis ip=10.1.0.3 user=user3'
trouble more-shape 'options for a new catalog: ' 'tamis index --update m.tamis --segment 1Mi'
# --reread: the same, anew; what is gone is forgotten.
sed -i 's/user3/USER3/' auto/a.csv
rm auto/b.jsonl
is reread 0 "" "" 'tamis index --update auto.tamis --reread && tamis index --update m.tamis --reread'
is reread-found 0 29 "" 'tamis find auto user=USER3 -c'
is reread-pair 0 10.1.0.3,USER3,200,0.3,2024-05-01T10:00:13Z "" 'tamis find m.tamis ip=10.1.0.3 user=USER3'
trouble reread-gone "no input has an attribute 'order'" 'tamis find auto order=B-4'
json reread-explained 'tamis find m.tamis ip=10.1.0.3 --explain --json' 'd["changed"] == 0 and d["bytes_hashed"] >= 0 and d["unindexed_bytes_read"] == 0'
# The units that are installed as an example do this.
unit=$TAMIS_ROOT/packaging/tamis-update@.service
is unit 0 "" "" '$(sed -n "s|^ExecStart=||p" "$unit" | sed "s|%f|$PWD/auto.tamis|")'
# Tiny files: a rare value is in a segment of a few of them.
mkdir tiny
for i in $(seq 1000 1999); do echo "id$i"; done | split -l 1 --additional-suffix=.csv - tiny/t
sed -i '1i id' tiny/*
tamis index --attrs id --fpp 1e-6 tiny
json tiny-few-are-read 'tamis find tiny id=id1500 --explain --json' 'd["segments"] == 4 and d["candidates"] == 1 and d["matches"] == 1 and d["bytes_read"] < d["bytes_total"] / 3'
# What an update and the inputs say of lines that do not fit.
printf '10.1.2.%d - - [01/May/2024:10:00:00 +0000] "GET / HTTP/1.1" 200 12\n' 1 2 3 4 >unfit.log
printf 'Traceback\n  at x\n' >>unfit.log
json unfit-counted 'tamis index --json unfit.log' 'd["unfit_lines"] == 2 and d["records_read"] == 6 and d["bad_records"] == 0'
json unfit-listed 'tamis info --inputs --json unfit.log.tamis' 'd["unfit_lines"] == 2 and d["records"] == 6 and d["format"] == "common" and d["state"] == "same"'
# The folder, or the file, of which a catalog was made is as good as its name.
mkdir beside
printf 'k\n1\n' >beside/a.csv
trouble beside-not-there 'no catalog: beside.tamis: make it with tamis index beside$' 'tamis index --update beside'
trouble beside-not-there-either 'no catalog: beside/a.csv.tamis: make it with tamis index beside/a.csv$' 'tamis index --update beside/a.csv'
tamis index beside && tamis index beside/a.csv
printf 'k\n2\n' >beside/b.csv
is beside 0 "" "tamis index: beside/b.csv: csv, separated by ',', with a header, 1 records
tamis index: 1 new, 0 changed, 0 grown, 0 renamed, 0 removed, 1 as before" 'tamis index -v --update beside/ 2>&1 | head -2 >&2'
is beside-inputs 0 $'same beside/a.csv\nsame beside/b.csv' "" 'tamis info --inputs beside | awk "\$1 == \"same\" {print \$1, \$6}"'
is beside-a-file 0 1 "" 'printf "9\n" >>beside/a.csv; tamis index --update beside/a.csv && tamis find beside/a.csv k=9 -c'
json beside-figures 'tamis info --json beside' 'd["kind"] == "catalog" and d["inputs"] == 2'
trouble beside-here 'no catalog: .*[.]tamis: make it with tamis index [.]$' 'tamis index --update .'
# A file whose first lines said little: what it is shows when it grows, before the update too.
mkdir banner
echo 'Starting server' >banner/app.log
echo 'started' >banner/kv.log
tamis index banner
seq 1000 | sed 's/.*/{"time": "2024-05-01T10:00:00Z", "user": "u&"}/' >>banner/app.log
seq 5 | sed 's/.*/level=info user=ann n=&/' >>banner/kv.log
is banner-grown 0 '{"time": "2024-05-01T10:00:00Z", "user": "u7"}' "" 'tamis find banner user=u7'
is banner-grown-too 0 5 "" 'tamis find banner user=ann -c'
is banner-kept 0 'Starting server' "" 'tamis find banner starting'
trouble banner-unknown "no input has an attribute 'usr'" 'tamis find banner usr=u7'
tamis index --update banner 2>.told
is banner-formats 0 $'banner/app.log jsonl 1000\nbanner/kv.log logfmt 6' "" \
    'tamis info --inputs banner | awk "NR > 1 {print \$6, \$2, \$3}"'
is banner-found 0 '{"time": "2024-05-01T10:00:00Z", "user": "u7"}' "" 'tamis find banner user=u7'
finish
