#!/bin/bash
# Folders as people have them, asked as people ask: zones, several catalogs, forms of the answer without conditions.
. "$(dirname "$0")/common.sh"

# The hour that occurs twice: a record and a question with the same text mean the same moment, in any order.
printf 'time,x\n2024-10-27 02:30:00,first\n2024-10-27 02:30:00+01:00,second\n2024-07-01 12:00:00,summer\n' >turn.csv
tamis index --tz Europe/Paris turn.csv
for question in "time='2024-10-27 02:30:00'" time=2024-10-27T02:30 'time=2024-10-27T00:30:00Z' 'x!= --until 2024-10-27T00:30Z --since 2024-10-27'; do
    is "turn-${question%% *}" 0 $'x\nfirst' "" "tamis find turn.csv $question --fields x"
done
is turn-second 0 $'x\nsecond' "" "tamis find turn.csv 'time=2024-10-27T01:30Z' --fields x"
trouble zone-unknown 'unknown time zone: --tz Mars/Phobos: give a name such as Europe/Paris; ' \
    'tamis index --tz Mars/Phobos -o mars.tamis turn.csv'
trouble zone-of-another-machine 'unknown time zone Europe/Paris: turn.csv.tamis: ' \
    'TZDIR=$PWD tamis find turn.csv x=first'
trouble zone-of-another-machine-update 'unknown time zone Europe/Paris: turn.csv.tamis: ' \
    'TZDIR=$PWD tamis index --update turn.csv.tamis'
for zone in UTC Etc/UTC CET-1CEST '<+03>-3' /usr/share/zoneinfo/Asia/Tokyo; do
    is "zone-$zone" 0 "" "" "tamis index --tz '$zone' -o z.tamis turn.csv"
done
is zone-here-unknown 0 UTC "" 'TZ=Nowhere/At_All tamis index -o z2.tamis turn.csv; tamis find z2.tamis | sed -n "s/^time zone *//p"'

# Several catalogs are one answer: an archive in one of them matters only if nothing was found in any.
mkdir some other
printf 'user,n\nann,1\nbob,2\nann,3\n' >some/a.csv
printf 'user,n\ncho,4\n' >other/b.csv
printf 'PK\003\004%0100d' 0 >other/c.zip
tamis index some && tamis index other 2>.told
told='tamis find: not searched: other/c.zip: a zip archive: give --exclude or --skip-unknown to tamis index --update other.tamis'
is found-in-one 0 2 "$told" 'tamis find some other -- user=ann -c'
is found-in-the-other 0 1 "$told" 'tamis find other some -- user=cho -c'
is found-in-none 2 0 "$told" 'tamis find some other -- user=dan -c'
trouble no-catalog-before 'no catalog: --: give at least one before it' 'tamis find -- user=ann'
is catalog-as-a-word 1 "" "tamis find: none: other: that was searched as a word of the line; to search it as a catalog, write -- after the catalogs" \
    'tamis find some other user=ann'

# Without conditions, a form of the answer means all records.
is all-count 0 3 "" 'tamis find some -c'
is all-count-by 0 $'2\tann\n1\tbob' "" 'tamis find some --count-by user'
is all-top 0 $'2\tann' "" 'tamis find some --count-by user --limit 1'
is all-fields 0 $'n\n1\n2\n3' "" 'tamis find some --fields n'
is all-limit 0 ann,1 "" 'tamis find some --limit 1'
is all-lines 0 $'some/a.csv:2:ann,1\nsome/a.csv:3:bob,2\nsome/a.csv:4:ann,3' "" 'tamis find some -Hn'
is all-segments 0 $'some/a.csv\t7\t18' "" 'tamis find some --segments'
json all-explained 'tamis find some --explain --json' 'd["matches"] == 3'
trouble all-by-none "no input has an attribute 'nosuch'; " 'tamis find some --count-by nosuch'

# Lines of text that start with seconds since 1970; a table of such numbers stays one.
printf '1714557603.250     87 10.0.0.1 TCP_MISS/200 1024\n1714557604.001 100000 10.0.0.2 TCP_HIT/200 9\n' >squid.log
printf '[171455760%d] SERVICE ALERT: web1;Swap;CRITICAL;SOFT;%d;text\n' 3 1 4 2 5 3 >nagios.log
printf '171455760%d.5\t2.%d\t3.%d\n' 3 1 4 4 2 5 5 3 6 >numbers.log
for name in squid nagios numbers; do tamis index --tz UTC $name.log; done
is lead-fraction 0 '1714557604.001 100000 10.0.0.2 TCP_HIT/200 9' "" 'tamis find squid.log --since 2024-05-01T10:00:04Z'
is lead-brackets 0 $'1714557604\n1714557605' "" "tamis find nagios.log --since 2024-05-01T10:00:04 --fields time | tail -n +2"
is lead-brackets-format 0 text "" "tamis info --inputs --json nagios.log.tamis | sed 's/.*\"format\": \"//; s/\".*//'"
is lead-table 0 $'1714557604.5\t2.2\t3.5' "" 'tamis find numbers.log 2=2.2'

# A year and a month are spans too, never seconds since 1970.
printf 'time,x\n2023-12-31T23:59:59Z,a\n2024-01-01T00:00:00Z,b\n2024-02-29T10:00:00Z,c\n2024-12-31T23:00:00Z,d\n2025-01-01T00:00:00Z,e\n' >years.csv
tamis index --tz UTC years.csv
is year-since 0 4 "" 'tamis find years.csv --since 2024 -c'
is year-until 0 4 "" 'tamis find years.csv --until 2024 -c'
is year 0 3 "" 'tamis find years.csv time=2024 -c'
is month 0 1 "" 'tamis find years.csv --since 2024-02 --until 2024-02 -c'
is month-until 0 2 "" 'tamis find years.csv --until 2024-01 -c'
is month-last 0 1 "" 'tamis find years.csv time=2024-12 -c'
is year-range 0 4 "" 'tamis find years.csv time=2023..2024-12 -c'
trouble year-wrong "not a time: '2024-13' in 2024-13: write " 'tamis find years.csv --since 2024-13'
trouble since-a-word "not a time: 'yesterday' in yesterday: write 2h or 7d .*, 2024-05-31, " 'tamis find years.csv --since yesterday'

# An operator without an attribute is a slip of the shell, not a word.
for word in =ann '!=ann' '~ann' '^=ann' '<=5' '~/a.n/'; do
    trouble "nameless$word" "no attribute: .*: write attr" "tamis find some '$word'"
done
is nameless-quoted 1 "" "" "tamis find some '\"=zoe\"'"
is angles-are-text 1 "" "" "tamis find some '<script>'"

# A table without a header beside files that name their fields: it lacks these, and is indexed and searched.
mkdir mixed
printf '{"user": "ann", "12345678": "x"}\n{"user": "bob", "12345678": "y"}\n' >mixed/a.jsonl
printf '10.1.2.3|17|up\n10.1.2.4|18|down\n10.1.2.5|19|up\n' >mixed/b.log
is mixed-index 0 "" "" 'tamis index mixed'
is mixed-inputs 0 $'same jsonl 2\nsame csv 3' "" 'tamis info --inputs mixed.tamis | awk "NR > 1 {print \$1, \$2, \$3}"'
is mixed-user 0 '{"user": "ann", "12345678": "x"}' "" 'tamis find mixed user=ann'
is mixed-number 0 '10.1.2.4|18|down' "" 'tamis find mixed 1=10.1.2.4'
is mixed-missing 0 3 "" 'tamis find mixed user! -c'
is mixed-large-number 0 2 "" 'tamis find mixed 12345678=x 12345678=y -c'
is mixed-none 1 "" "" 'tamis find mixed user=zoe'
is mixed-named 0 2 "" 'tamis index -o mixed2.tamis --attrs user,12345678,2 mixed; tamis find mixed2.tamis 12345678!=zoe user! 2=17 2=18 -c'
trouble names-without-header "no column 'ip': standard input: without a header, columns have numbers, from 1" \
    'tamis create r.tamis --attrs ip,user; echo 1,2 | tamis add r.tamis --no-header'

# Each input has its own field of times, and the lines between its records have the time of the record before.
mkdir times
printf '{"eventTime": "2024-05-01T10:00:00Z", "x": 1}\n{"eventTime": "2024-05-01T11:00:00Z", "x": 2}\nno object\n' >times/a.jsonl
printf '{"ts": 1714557600.5, "x": 3}\n{"ts": 1714561200.5, "x": 4}\n' >times/b.jsonl
printf 'when,x\n2024-05-01 12:00:00,5\n2024-05-02 12:00:00,6\n' >times/c.csv
printf 'time,x\n2024-05-01 12:30:00,7\n2024-05-02 12:30:00,8\n' >times/d.csv
printf '10.1.2.3 - - [01/May/2024:10:30:00 +0000] "GET / HTTP/1.1" 200 5\n' >times/e.log
printf 'x,y\n9,9\n' >times/f.csv
tamis index --tz UTC times
is times-since 0 7 'tamis find: left out because they have no time: 1 matching record' 'tamis find times --since 2024-05-01T11 -c'
is times-since-again 0 $'{"eventTime": "2024-05-01T11:00:00Z", "x": 2}\n{"ts": 1714561200.5, "x": 4}\n2024-05-01 12:00:00,5\n2024-05-02 12:00:00,6\n2024-05-01 12:30:00,7\n2024-05-02 12:30:00,8' \
    "tamis find: left out because they have no time: 1 matching record" 'tamis find times "x!=0" x!= --since 2024-05-01T11 | grep -v object'
is times-until 0 $'{"eventTime": "2024-05-01T10:00:00Z", "x": 1}\n{"ts": 1714557600.5, "x": 3}\n10.1.2.3 - - [01/May/2024:10:30:00 +0000] "GET / HTTP/1.1" 200 5' "*" 'tamis find times --until 2024-05-01T10:59'
is times-between 0 'no object' "*" 'tamis find times object --since 2024-05-01T11 --until 2024-05-01T11'
json times-range 'tamis find times --json' 'd["since"] == "2024-05-01T10:00:00Z" and d["until"] == "2024-05-02T12:30:00Z"'
printf '{"ts": 1714647600, "x": 10}\n' >>times/b.jsonl
printf '{"eventTime": "2024-05-02T10:00:00Z", "x": 11}\n' >times/g.jsonl
is times-grown 0 $'{"ts": 1714647600, "x": 10}\n{"eventTime": "2024-05-02T10:00:00Z", "x": 11}' "*" 'tamis find times --since 2024-05-02 x=10 x=11'
# Between the rows of a table and the objects of a log, too, are lines that are neither. Times that nobody can read are
# counted, once per record.
mkdir traces
printf 'time,level,msg\n2024-05-01T10:00:00Z,INFO,one\n2024-05-02T10:00:00Z,ERROR,boom\njava.lang.Exception: boom\n\tat Baz.run(Baz.java:1)\n\tat Baz.call(a, b, c, d)\n2024-05-03T10:00:00Z,INFO\nxx,INFO,bad\n,INFO,none\nCaused by: xx\n' >traces/a.csv
tr , '\t' <traces/a.csv | sed 's/^\t//' >traces/b.tsv
printf 'level,time,msg\nINFO,2024-05-02T10:00:00Z,one\n17\nERROR,never\n' >traces/c.csv
printf '{"time": "2024-05-02T10:00:00Z"}\n[1, 2]\n"x"\n5\nnull\n{"time": "xx"}\n{"time": ["yy", "zz"]}\n{"time": null}\n[3]\n{"time": "2024-05-04"}\n[4]\n' >traces/d.jsonl
is traces-index 0 "" 'tamis index: bad record: traces/d.jsonl, line 3: not an object: 3 found only by their lines' 'tamis index --tz UTC traces'
is traces-csv 0 $'2024-05-02T10:00:00Z,ERROR,boom\njava.lang.Exception: boom\n\tat Baz.run(Baz.java:1)\n\tat Baz.call(a, b, c, d)\n2024-05-03T10:00:00Z,INFO' \
    'tamis find: left out because they have no time: 3 matching records' 'tamis index -o ta.tamis --tz UTC traces/a.csv; tamis find ta.tamis --since 2024-05-02'
is traces-tsv 0 4 'tamis find: left out because they have no time: 3 matching records' 'tamis index -o tb.tamis --tz UTC traces/b.tsv; tamis find tb.tamis --since 2024-05-02 --until 2024-05-02 -c'
is traces-values 0 $'17\nERROR,never' "" 'tamis index -o tc.tamis --tz UTC traces/c.csv; tamis find tc.tamis --since 2024-05-02 level=17 level=ERROR'
tamis index -o td.tamis --tz UTC traces/d.jsonl 2>.told
is traces-jsonl 0 $'{"time": "2024-05-02T10:00:00Z"}\n[1, 2]\n"x"\n5\nnull\n{"time": "2024-05-04"}\n[4]' \
    'tamis find: left out because they have no time: 4 matching records' 'tamis find td.tamis --since 2024-05-02'
json traces-unfit 'tamis info --inputs --json ta.tamis' 'd["unfit_lines"] == 4 and d["records"] == 9'
# Traces between its rows do not hide that a column has times, nor what is in segments of it.
(echo time,n; for i in $(seq 300); do
    printf '2024-05-01T00:%02d:%02dZ,%d\n' $((i / 60)) $((i % 60)) $i
    [ $((i % 10)) != 0 ] || printf 'Traceback (most recent call last):\n  File "x.py", line 3, in f\nValueError: bad %d\n' $i
done) >python.csv
tamis index --segment 500 python.csv
is trace-typed 0 17 "" 'tamis find python.csv time=2024-05-01T00:04:10..2024-05-01T00:04:20 -c'
json trace-prunes 'tamis find python.csv --since 2024-05-01T00:04:50 --explain --json' 'd["matches"] == 17 and d["candidates"] < 4 < d["segments"]'
# Windows events as PowerShell 5 writes them.
printf '[\n{"Id": 4624, "TimeCreated": "\\/Date(1714557600000)\\/"},\n{"Id": 4625, "TimeCreated": "\\/Date(1714561200250)\\/"}\n]\n' >events.json
tamis index --tz UTC events.json
is time-of-powershell 0 $'Id\n4625' "" 'tamis find events.json --since 2024-05-01T11:00:00Z --fields Id'
printf 'id, when, n\n1, 2024-05-01 10:00:00, 7\n2, 2024-05-02 , 8\n3, "2024-05-03", 9\n' >blanks.csv
tamis index --tz UTC blanks.csv
is time-between-blanks 0 2 "" 'tamis find blanks.csv --since 2024-05-02 -c'
is time-between-blanks-equal 0 '2, 2024-05-02 , 8' "" 'tamis find blanks.csv " when=2024-05-02"'
# What is given as a time is one, even where few values look like it.
printf 'when,x\n2024-05-01,1\nnever,2\nnever,3\n2024-05-02,4\n' >given.csv
tamis index --tz UTC --attrs when:time,x given.csv
is time-given 0 2024-05-02,4 'tamis find: left out because they have no time: 2 matching records' 'tamis find given.csv --since 2024-05-02'
# What is asked by time alone reads what it must, whatever the field is called.
seq 1700000000 60 1700600000 | sed 's/.*/{"ts": &, "n": "&-&-&-&"}/' >one.jsonl
tamis index --segment 64k one.jsonl
json times-prune 'tamis find one.jsonl --since 1700590000 --explain --json' 'd["candidates"] <= 2 and d["segments"] > 5 and d["rejected_by_attributes"] == d["segments"] - d["candidates"] and d["matches"] == 167'

# A bracket does not make JSON: most lines decide.
mkdir brackets
printf '[1] 2024/05/01 07:19:40.624334 [INF] Starting server\n[1] 2024/05/01 07:19:41.6 [INF] Listening\n' >brackets/nats.log
printf '{"a": 1},\n{"a": 2},\n{"a": 3}\n' >brackets/commas.log
printf '{main} started\n{main} stopped\n' >brackets/braces.log
printf '{"a": 4}\nTraceback\n{"a": 5}\n' >brackets/lines.log
is brackets-index 0 "" "tamis index: bad record: brackets/lines.log, line 2: not an object: 1 found only by their lines" 'tamis index brackets'
is brackets-formats 0 'braces.log text 2 commas.log text 3 lines.log jsonl 2 nats.log text 2' "" \
    'echo $(tamis info --inputs brackets.tamis | awk "NR > 1 {sub(/.*\//, \"\", \$6); print \$6, \$2, \$3}")'
is brackets-words 0 2 "" 'tamis find brackets main -c'

# A catalog that is named twice is asked once, and a field that is asked for twice is one of the object.
holds catalogs-once '[ "$(tamis find brackets brackets.tamis ./brackets -- main -c)" = 2 ]'
holds fields-once 'tamis find one.jsonl ts=1700000060 --json --fields ts,ts | grep -qF "\"fields\": {\"ts\": \"1700000060\"}}"'

# A damaged file counts once, however often it is met; journals and event logs are named.
mkdir hurt
seq 3000 | gzip >hurt/a.gz
printf '\377\377' | dd of=hurt/a.gz bs=1 seek=$(($(stat -c %s hurt/a.gz) - 8)) conv=notrunc 2>.dd
printf 'ElfFile\0%0200d\001\002\003' 0 >hurt/b.evtx
printf 'LPKSHHRH\0\001\002%0200d' 0 >hurt/c.journal
printf '{"time": "2024-05-01T10:00:00Z"}\n' >hurt/d.jsonl
tamis index hurt 2>.told
is hurt-once 2 1 'tamis find: not searched: hurt/a.gz: damaged part way through when it was indexed: see tamis info --inputs hurt.tamis' \
    'tamis find hurt --since 2024 -c 2>&1 | grep -v "no time" >.both; s=${PIPESTATUS[0]}; grep -v "^tamis" .both; grep "^tamis" .both >&2; (exit $s)'
is hurt-named 0 $'a Windows event log\na systemd journal' "" 'tamis info --inputs hurt.tamis | sed -n "s/^passed over.*: //p"'
finish
