#!/bin/bash
# tamis index: what counts as an input, what is a record, what is said about bad ones.
. "$(dirname "$0")/common.sh"

# Files and folders, plain and packed, in one order.
mkdir -p logs/sub logs/.hidden
printf 'ip,user\n1,ann\n2,bob\n' >logs/b.csv
printf '{"ip": "1", "user": "bob"}\n' | gzip >logs/a.jsonl.gz
printf 'user\tip\nann\t3\n' | zstd -q >logs/sub/c.tsv.zst
printf '{"ip": "1", "user": "hid"}\n' | tee logs/.hidden/x.jsonl logs/.y.jsonl >logs/notes.txt
ln -s b.csv logs/link.csv
all=$'{"ip": "1", "user": "bob"}\n1,ann\n2,bob\n{"ip": "1", "user": "hid"}\nann\t3'
is folder 0 "" "" 'tamis index -o c.tamis --attrs ip,user logs'
is folder-records 0 "$all" "" 'tamis find c.tamis ip=1 ip=2 ip=3'
is files 0 "" "" 'tamis index -o f.tamis --attrs ip,user logs/notes.txt logs/b.csv logs/b.csv'
is files-records 0 $'{"ip": "1", "user": "hid"}\n1,ann' "" 'tamis find f.tamis ip=1'
is slash-and-twice 0 "" "" 'tamis index -o s.tamis --attrs ip,user logs/ logs/b.csv'
is slash-records 0 "$all" "" 'tamis find s.tamis ip=1 ip=2 ip=3'
is link-given 0 "" "" 'tamis index -o l.tamis --attrs ip,user logs/link.csv && tamis find l.tamis ip=2 >found'
json report 'tamis index -o c.tamis --attrs ip,user logs --json' \
    'd["inputs"] == d["read"] == 4 and d["records_read"] == 5 and d["segments_added"] == 1 and d["bad_records"] == 0'
holds verbose 'tamis index -v -o c.tamis --attrs ip,user logs 2>&1 | grep -q "5 records in 1 segments read from 4 inputs, 0 lines that do not fit, 0 bad"'
for option in '--day today' '--keep 3' '--seal today'; do
    trouble "nothing-published ${option%% *}" 'nothing is published: --day, --keep, --seal: give --publish and --as$' "tamis index $option -o e.tamis ."
done
for option in '--publish somewhere' '--as host'; do
    trouble "half-published ${option%% *}" '--publish ADDRESS and --as HOST belong together: give both$' "tamis index $option -o e.tamis ."
done
trouble no-recognised-file 'no inputs: empty: no file in it can be read; see tamis help index$' 'mkdir -p empty; tamis index -o e.tamis --attrs ip empty'
holds nothing-written '[ ! -e e.tamis ]'

# Paths: as given, relative ones relative to the catalog.
mkdir -p there/deep
is elsewhere 0 "" "" 'tamis index -o there/deep/c.tamis --attrs ip logs/b.csv'
is elsewhere-found 0 '{"file": "there/deep/../../logs/b.csv", "offset": 8, "line": 2, "record": "1,ann", "fields": {"ip": "1", "user": "ann"}}' "" \
    'tamis find there/deep/c.tamis ip=1 --json'
is from-another-folder 0 "1,ann" "" '(cd there && tamis find deep/c.tamis ip=1)'
is moved-together 0 "1,ann" "" 'mkdir m m/x m/x/y; cp -r logs m; cp -a there/deep/c.tamis m/x/y; mv m n; tamis find n/x/y/c.tamis ip=1 --trust'
is absolute 0 "{\"file\": \"$PWD/logs/b.csv\", \"offset\": 8, \"line\": 2, \"record\": \"1,ann\", \"fields\": {\"ip\": \"1\", \"user\": \"ann\"}}" "" \
    'tamis index -o there/a.tamis --attrs ip "$PWD/logs/b.csv"; tamis find there/a.tamis ip=1 --json'
is by-a-link 0 "1,ann" "" 'ln -s ../c.tamis there/link.tamis; tamis find there/link.tamis user=ann ip=1'
# A catalog among its inputs goes where their folder goes, wherever it was made from.
is in-its-folder 0 '{"file": "home/a.csv", "offset": 8, "line": 2, "record": "1,ann", "fields": {"ip": "1", "user": "ann"}}' "" \
    'mkdir -p home/in; printf "ip,user\n1,ann\n" >home/a.csv; printf "ip,user\n2,bob\n" >home/in/b.csv
     tamis index -o home/c.tamis --attrs ip,user home && tamis find home/c.tamis ip=1 --json'
is its-folder-renamed 0 2,bob "" 'mv home house; tamis find house/c.tamis ip=2; mv house home'
is below-its-folder 0 1,ann "" 'tamis index -o home/in/c.tamis --attrs ip,user home/in ./home/a.csv &&
    mv home house && tamis find house/in/c.tamis ip=1; mv house home'
is from-within 0 1,ann "" '(cd home/in && tamis index -o ../d.tamis --attrs ip,user .. . ../a.csv) &&
    mv home house && tamis find house/d.tamis ip=1 --trust; mv house home'
# One file by several names is one input; two hard links are two.
is named-twice 0 1,ann "" 'tamis index -o t.tamis --attrs ip,user home/a.csv ./home/a.csv "$PWD/home/a.csv" home// &&
    tamis find t.tamis ip=1'
is named-twice-by-a-folder 0 $'1,ann\n2,bob' "" '(cd home && tamis index -o t.tamis --attrs ip,user . in a.csv ./in/b.csv &&
    tamis find t.tamis ip=1 ip=2)'
is named-again-in-an-update 0 1,ann "" 'tamis index -o t.tamis --attrs ip,user home && tamis index --update t.tamis "$PWD/home" &&
    tamis find t.tamis ip=1'
both=$'1,ann\n2,bob'
is folder-in-a-folder 0 "$both" "" 'tamis index -o t.tamis --attrs ip,user home "$PWD/home/in" && tamis find t.tamis ip=1 ip=2'
is folder-around-a-folder 0 $'2,bob\n1,ann' "" 'tamis index -o t.tamis --attrs ip,user "$PWD/home/in" home home/in &&
    tamis find t.tamis ip=1 ip=2'
is folder-of-the-catalog 0 "$both" "" 'tamis index -o home/in/t.tamis --attrs ip,user home home/in && tamis find home/in/t.tamis ip=1 ip=2'
is folder-in-a-folder-by-an-update 0 "$both" "" 'tamis index -o t.tamis --attrs ip,user home && ln -s home/in way &&
    tamis index --update t.tamis way "$PWD" && tamis find t.tamis ip=1 ip=2 | head -2'
is hard-links 0 $'1,ann\n1,ann' "" 'ln home/a.csv link.csv; tamis index -o t.tamis --attrs ip,user home/a.csv link.csv && tamis find t.tamis ip=1'

# Odd inputs: a byte order mark, CRLF, quotes, newlines in quotes, empty lines, short rows, no final
# newline, no record at all, escapes, nested objects, keys given twice, null, bytes that are no UTF-8.
mkdir odd
: >odd/empty.csv
printf 'ip,user' >odd/header.csv
printf '\357\273\277ip,user\r\n"4","a\nb"\r\n"4","say ""hi"""\r\n\r\n4' >odd/quoted.csv
printf 'ip\tuser\n4\t"x"\n4\n' >odd/plain.tsv
printf '\357\273\277{"ip": "4", "user": "\\u0061\\u006en"}\n\n{"a": {"ip": "4"}, "ip": 4}' >odd/esc.jsonl
printf '{"ip": "5", "ip": "4"}\n{"ip": "4", "user": "caf\351"}\n{"ip": "4", "user": null}\n' >odd/twice.jsonl
is odd 0 "" "" 'tamis index -o odd.tamis --attrs ip,user,a.ip odd'
is odd-all 0 10 "" 'tamis find odd.tamis ip=4 -c'
is nested 0 '{"a": {"ip": "4"}, "ip": 4}' "" 'tamis find odd.tamis a.ip=4'
is escapes 0 '{"ip": "4", "user": "\u0061\u006en"}' "" 'tamis find odd.tamis user=ann'
is quoted-newline 0 $'"4","a\nb"\r' "" 'tamis find odd.tamis user=$'"'a\nb'"
is quoted-quotes 0 $'"4","say ""hi"""\r' "" "tamis find odd.tamis 'user=say \"hi\"'"
is quotes-in-tsv 0 $'4\t"x"' "" "tamis find odd.tamis 'user=\"x\"'"
is short-rows-and-null-are-missing 0 $'{"a": {"ip": "4"}, "ip": 4}\n4\n4\n{"ip": "5", "ip": "4"}\n{"ip": "4", "user": null}' "" \
    'tamis find odd.tamis user! ip=4'
is last-key-counts 1 "" "" 'tamis find odd.tamis ip=5'
is any-bytes 0 '{"ip": "4", "user": "caf?"}' "" "tamis find odd.tamis user=\$'caf\351' | LC_ALL=C tr '\351' '?'"
json any-bytes-json "tamis find odd.tamis --json user=\$'caf\351'" 'd["record"] == "{\"ip\": \"4\", \"user\": \"caf\ufffd\"}"'
json record-is-json "tamis find odd.tamis --json a.ip=4" 'd["record"]["a"]["ip"] == "4" and d["line"] == 3 and d["offset"] == 41'
is lines-with-byte-order-mark 0 '{"file": "odd/quoted.csv", "offset": 12, "line": 2, "record": "\"4\",\"a\nb\"", "fields": {"ip": "4", "user": "a\nb"}}' "" \
    'tamis find odd.tamis user=$'"'a\nb'"' --json | sed "s/\\\\u000a/\\\\n/"'

# Types, other delimiters, no header.
printf '1;07;1.50;2024-01-31T23:59:59+01:00\n2;+7;15e-1;1706741999\n3;x7;1.5x;\n' >t.csv
is no-header 0 "" "" 'tamis index -o t.tamis --attrs 1,2:int,3:dec,4:time --no-header --delimiter ";" t.csv'
is int 0 2 "" 'tamis find t.tamis 2=7 -c'
is int-as-text 0 '3;x7;1.5x;' "" 'tamis find t.tamis 2=x7'
is dec 0 2 "" 'tamis find t.tamis 3=1.5 -c'
is time 0 2 "" 'tamis find t.tamis 4=2024-01-31T22:59:59Z -c'
is empty-typed 0 '3;x7;1.5x;' "" 'tamis find t.tamis 4='
is format-given 0 "{1" "" 'printf "a\tb\n{1\t2\n" >odd.txt; tamis index -o o.tamis --attrs a --format tsv odd.txt; tamis find o.tamis a={1 | cut -f 1'
# -v names the format of each file that was read, and what a table was taken for.
mkdir named
printf 'ip;user\n1;ann\n2;bob\n' >named/a.csv
printf '10.0.0.1,5\n10.0.0.2,6\n' >named/b.csv
printf '{"a": 1}\n' >named/c
printf '\0\1\2\3\4\5\6\7' >named/d.bin
is named 0 "tamis index: named/a.csv: csv, separated by ';', with a header, 2 records
tamis index: named/b.csv: csv, separated by ',', without a header, 2 records
tamis index: named/c: jsonl, 1 records" "" "tamis index -v named 2>&1 | grep 'named/'"
# What -v states as the cost of an attribute is what the catalog has of it: networks of addresses and prefixes of paths too.
awk 'BEGIN {srand(7); for (i = 0; i < 9000; i++) printf "%d.%d.%d.%d - - [01/May/2024:%02d:%02d:%02d +0000] \"GET /%d/%d/%d HTTP/1.1\" 200 5 \"-\" \"%0500d\"\n",
    rand() * 250, rand() * 250, rand() * 250, rand() * 250, i / 3600, i / 60 % 60, i % 60, rand() * 5000, rand() * 5000, rand() * 5000, 0}' >costs.log
tamis index -v costs.log 2>costs.told
json cost-stated 'tamis info --json costs.log.tamis' \
    'all(0.85 < r["bytes"] / d["input_text"] / (float(line.split()[-5]) / 100) < 1.15
         for r in d["relations"] for line in open("costs.told") if "indexed: %s:%s:" % (r["name"], r["type"]) in line and r["name"] in ("host", "path"))
     and sum("indexed: host:ip" in line or "indexed: path:path" in line for line in open("costs.told")) == 2'
# A table that only its content makes one: a quote that its line does not close glues no lines, however it grows or is packed.
mkdir glue
(echo time,level,msg; printf '2024-05-01T10:00:%02dZ,INFO,a\n' $(seq 9)
    printf '2024-05-01T10:01:00Z,WARN,"open\n2024-05-01T10:02:00Z,INFO,mid\n2024-05-01T10:03:00Z,WARN,close"\n2024-05-01T10:04:00Z,INFO,"b, c"\n') >glue/app.log
cp glue/app.log glue/app.csv
gzip -c glue/app.log >glue/app.log.2.gz
is glue-index 0 "" "*" 'tamis index -o glue.tamis --segment 64 glue'
is glue-formats 0 'app.csv csv 11 app.log csv 12 app.log.2.gz csv 12' "" \
    'echo $(tamis info --inputs glue.tamis | awk "NR > 1 {sub(/.*\//, \"\", \$6); print \$6, \$2, \$3}")'
is glue-mid 0 $'glue/app.log:12:2024-05-01T10:02:00Z,INFO,mid\nglue/app.log.2.gz:12:2024-05-01T10:02:00Z,INFO,mid' "" \
    'tamis find glue.tamis -Hn level=INFO msg=mid'
is glue-open 0 $'2024-05-01T10:01:00Z,WARN,"open\n2024-05-01T10:01:00Z,WARN,"open' "" 'tamis find glue.tamis open --until 2024-05-01T10:00 --since 2024'
is glue-quoted 0 3 "" "tamis find glue.tamis 'msg=b, c' -c"
printf '2024-05-01T10:05:00Z,INFO,"new\n2024-05-01T10:06:00Z,INFO,newer"\n' >>glue/app.log
is glue-grown 0 1 "" 'tamis find glue.tamis level=INFO msg=newer\" -c'
is glue-updated 0 1 "*" 'tamis index --update glue.tamis; tamis find glue.tamis level=INFO msg=newer\" -c'
is glue-explicit 0 1 "*" 'tamis index -o glue2.tamis --format csv glue/app.log; tamis find glue2.tamis msg~open msg~mid -c'
# A log in which quotes do not match: as CSV a line with one is bad, as TSV none is; all others are read.
printf '1 "open\n2 x\n3 "shut\n' >q.log
is quotes-that-do-not-match 0 "2 x" "tamis index: bad record: q.log, line 1: a quote is not closed: 2 found only by their lines" \
    'tamis index -o q.tamis --attrs 1 --no-header --delimiter " " q.log; tamis find q.tamis 1=2'
is quotes-that-are-text 0 "1 1 1" "" 'tamis index -o r.tamis --attrs 1 --no-header --delimiter " " --format tsv q.log
    echo $(for i in 1 2 3; do tamis find -c r.tamis 1=$i; done)'

# Bad records are counted, named and skipped; --strict stops.
printf '{"ip": "1"}\n{"ip": \n{"ip": "2"}\n[nothing\n' >bad.jsonl
holds bad 'tamis index -o bad.tamis --attrs ip bad.jsonl 2>.bad; [ $? = 0 ] &&
    grep -qE "^tamis index: bad record: bad.jsonl, line 2: .+: 2 found only by their lines$" .bad && [ "$(wc -l <.bad)" = 1 ]'
is bad-skipped 0 $'{"ip": "1"}\n{"ip": "2"}' "" 'tamis find bad.tamis ip=1 ip=2'
cp bad.tamis before
trouble strict 'bad record: bad.jsonl, line 2: .*: nothing was changed; leave out --strict to skip such records$' \
    'tamis index -o bad.tamis --attrs ip --strict bad.jsonl'
holds strict-changes-nothing 'cmp bad.tamis before'
printf 'ip,user\n1,"ann\n2,bob\n3,cho\n' >open.csv
is open-quote 0 $'2,bob\n3,cho' "*" 'tamis index -o open.tamis --attrs ip open.csv; tamis find open.tamis ip=1 ip=2 ip=3'
seq 9000 | sed 's/.*/{"ip": "&"}/' | gzip >cut.jsonl.gz
head -c $(($(stat -c %s cut.jsonl.gz) / 2)) cut.jsonl.gz >half.jsonl.gz
trouble damaged '.*: half.jsonl.gz: the rest of it was skipped$' 'tamis index -o half.tamis --attrs ip half.jsonl.gz'
told='tamis find: not searched: half.jsonl.gz: damaged part way through when it was indexed: see tamis info --inputs half.tamis'
is damaged-start 2 '{"ip": "7"}' "$told" 'tamis find half.tamis ip=7'
is damaged-is-no-proof 2 "" "$told" 'tamis find half.tamis ip=nosuch --trust'
trouble damaged-strict '.*: half.jsonl.gz: nothing was changed$' 'tamis index -o new.tamis --attrs ip --strict half.jsonl.gz'
# The format of liblzma before xz has no magic number, only bytes that no text has.
mkdir lzma
seq -f '10.0.0.%g,ann' 300 | sed '1i ip,user' >lzma.csv
/usr/bin/python3 -c 'import lzma, sys; sys.stdout.buffer.write(lzma.compress(open("lzma.csv", "rb").read(), lzma.FORMAT_ALONE))' >lzma/a.csv.lzma
head -c 60 lzma/a.csv.lzma >cut.lzma
is lzma-read 0 $'lzma/a.csv.lzma:10.0.0.299,ann' "" 'tamis index lzma; tamis find lzma -H ip=10.0.0.299'
trouble lzma-cut 'lzma at byte 60: the file is cut off: cut.lzma: ' 'tamis index -o cutlzma.tamis cut.lzma'
is lzma-twice 2 "" "tamis index: a file compressed twice is not read; decompress it, or use gzip, zstd, bzip2, xz or lz4: twice.lzma.gz: it was skipped" \
    'gzip -c lzma/a.csv.lzma >twice.lzma.gz; tamis index -o twice.tamis twice.lzma.gz'
trouble other-compression 'xz at byte 12: damaged: x.csv.xz: it was skipped$' \
    'printf "\3757zXZ\0aaaaaaaa" >x.csv.xz; tamis index -o xz.tamis --attrs ip x.csv.xz'
for pack in bzip2 xz lz4; do
    is "packed-by-$pack" 0 2,bob "" "printf 'ip,user\n1,ann\n2,bob\n' | $pack -c >packed.csv.$pack
        tamis index -o packed.tamis --attrs ip packed.csv.$pack >/dev/null && tamis find packed.tamis ip=2"
done
is pretty-json 0 $'{\n"ip": 1\n}' "" 'printf "{\n\"ip\": 1\n}\n" >pretty.json
    tamis index -o pretty.tamis --attrs ip pretty.json >/dev/null; tamis find pretty.tamis ip=1'
is pretty-json-by-force 2 "" "tamis index: bad record: pretty.json, line 1: a key is missing: 3 found only by their lines
tamis index: no record: pretty.json: give CSV or TSV with a header, or one JSON object per line; see --format and --delimiter" \
    'tamis index -o p.tamis --attrs ip --format jsonl pretty.json'
is bare-returns 0 2,bob "" 'printf "ip,user\r1,ann\r2,bob\r" >cr.csv
    tamis index -o cr.tamis --attrs ip cr.csv >/dev/null; tamis find cr.tamis ip=2'
is utf16 0 2,bob "" 'printf "\377\376i\0p\0,\0u\0\n\0001\0,\0a\0\n\0002\0,\0b\0o\0b\0\n\0" >wide.csv
    tamis index -o wide.tamis --attrs ip wide.csv >/dev/null; tamis find wide.tamis ip=2'
is json-array 0 '{"id":2}' "" 'echo "[{\"id\":1},{\"id\":2}]" >array.json
    tamis index -o array.tamis --attrs id array.json >/dev/null; tamis find array.tamis id=2'
is wrapped-records 0 '{"id":2}' "" 'echo "{\"Records\":[{\"id\":1},{\"id\":2}]}" >trail.json
    tamis index -o trail.tamis --attrs id trail.json >/dev/null; tamis find trail.tamis id=2'
line='10.0.0.1 - - [01/Jan/2026:10:00:00 +0000] "GET /a?b HTTP/1.1" 200 5'
is access-log 0 "$line" "" 'printf "%s\n  at java.lang\n" "$line" >access.log
    tamis index -o access.tamis --attrs host,path,line access.log >/dev/null; tamis find access.tamis path=/a'
is access-log-line-that-does-not-fit 0 "  at java.lang" "" 'tamis find access.tamis host! "line=  at java.lang"'
trouble packed-tar "a tar archive is not read; extract it first: t.csv.gz: it was skipped$" \
    'tar -czf t.csv.gz cr.csv; tamis index -o x.tamis --attrs id t.csv.gz'
trouble no-text 'no record: void.csv: ' ': >void.csv; tamis index -o nothing.tamis --attrs ip void.csv'
holds no-record-no-catalog '[ ! -e nothing.tamis ] && [ ! -e p.tamis ]'
told="tamis index: no record has the attribute: usr: check the names in --attrs, and --delimiter"
is absent-attribute 0 "" "$told"$'\ntamis index: logs/a.jsonl.gz begins: START' 'tamis index -o c.tamis --attrs ip,usr logs 2>&1 | sed "s/begins: .*/begins: START/" >&2'
is absent-in-a-table 2 "" "${told/usr/ip}"$'\ntamis index: IP.csv begins: IP,User' \
    'printf "IP,User\r\n1,ann\r\n" >IP.csv; tamis index -o x.tamis --attrs ip IP.csv'

# Long lines.
size=$((100 * 1024 * 1024))
[ "${TAMIS_VARIANT:-release}" = release ] || size=$((10 * 1024 * 1024))
long() { head -c "$size" /dev/zero | tr '\0' x; }
(echo '{"ip": "1"}'; printf '{"ip": "2", "user": "'; long; echo '"}'; echo '{"ip": "3"}') >long.jsonl
is long-line 0 "$((size + 24))" "" 'tamis index -o long.tamis --attrs ip,user long.jsonl; tamis find long.tamis ip=2 | wc -c'
is after-long-line 0 '{"ip": "3"}' "" 'tamis find long.tamis ip=3'
rm -f long.jsonl

# Large files are split, compressed ones too; threads change nothing but the time.
rows=200000 one=123456
[ "${TAMIS_VARIANT:-release}" = release ] || rows=50000 one=34567
seq $rows | awk '{print $1 "," ($1 % 7) "," ($1 * 7919 % 10007)}' | (echo n,seven,x; cat) >big.csv
gzip -k big.csv
zstd -q big.csv
for file in big.csv big.csv.gz big.csv.zst; do
    json "split-$file" "tamis index --fpp 1e-6 -o $file.tamis --attrs n,seven,x --segment $rows --json $file -j 3" \
        "d['records_read'] == $rows and d['bytes_read'] > 10 * $rows and d['segments_added'] >= 6"
    is "found-$file" 0 "$one,$((one % 7)),$((one * 7919 % 10007))" "" "tamis find $file.tamis n=$one"
    is "pair-$file" 0 "" "" "tamis find $file.tamis seven=3 x=5000 | cmp - <(awk -F, '\$2 == 3 && \$3 == 5000' big.csv)"
done
json few-bytes-read "tamis find big.csv.tamis n=$one --explain --json" \
    'd["segments"] >= 8 and d["candidates"] <= 3 and d["bytes_read"] < 0.4 * d["bytes_total"] and d["matches"] == 1'
mkdir many
for i in $(seq 300); do printf 'n,x\n%d,%d\n' "$i" $((i % 10)) >"many/$i.csv"; done
json small-files-are-packed 'tamis index -o many.tamis --attrs n,x many --json' \
    'd["read"] == 300 and d["segments_added"] == 2'
is small-files-in-order 0 "" "" 'tamis find many.tamis x=3 | sort | cmp - <(seq 3 10 300 | sed "s/$/,3/" | sort)'

json info 'tamis info --json many.tamis' \
    'd["kind"] == "catalog" and d["segments"] == 2 and d["records"] == 300 and d["inputs"] == 300 and [r["name"] for r in d["relations"]] == ["n", "x", "n+x"] and d["relations"][1]["distinct"] == 20'
holds info-text 'tamis info many.tamis | grep -qE "^  combination +n\+x: 300 values"'
holds verify 'tamis verify many.tamis | grep -q "^many.tamis: OK, "'

# What cannot be.
trouble several-inputs 'no name for the catalog: several inputs: give one with -o$' 'tamis index logs logs/b.csv'
mkdir -p here/in && cp logs/b.csv here/in
holds here-is-named-from-above '(cd here/in && tamis index . && tamis find . --limit 1) >/dev/null && test -f here/in.tamis'
trouble root-has-no-name 'no name for the catalog: /: give one with -o$' 'tamis index /'
trouble combo-without-attrs 'no attributes: --combo ip[+]user: ' 'tamis index -o x.tamis --combo ip+user logs'
trouble reread-without-update 'no catalog to read again: --reread: ' 'tamis index -o x.tamis --reread logs'
trouble no-input 'no inputs: INPUT: ' 'tamis index -o x.tamis --attrs ip'
trouble missing-input 'No such file or directory: nosuch: ' 'tamis index -o x.tamis --attrs ip logs nosuch'
trouble pipe-input 'not a file: -: ' 'echo | tamis index -o x.tamis --attrs ip -'
trouble attribute-twice "given twice: --attrs, 'ip': " 'tamis index -o x.tamis --attrs ip,ip logs'
trouble no-name "no name: --attrs 'ip,': " 'tamis index -o x.tamis --attrs ip, logs'
trouble unknown-type "unknown type 'integer': --attrs: " 'tamis index -o x.tamis --attrs ip:integer logs'
trouble unknown-in-combo "unknown attribute 'usr': --combo ip\+usr: " 'tamis index -o x.tamis --attrs ip,user --combo ip+usr logs'
trouble combo-of-one 'not a combination: --combo ip: ' 'tamis index -o x.tamis --attrs ip,user --combo ip logs'
trouble segment-size "wrong value '7': --segment: " 'tamis index -o x.tamis --attrs ip --segment 7 logs'
trouble many-threads 'too many threads: ' 'tamis index -o x.tamis --attrs ip -j 1000 logs'
trouble not-over-data 'the file exists and is not a catalog: logs/b.csv: ' 'tamis index -o logs/b.csv --attrs ip logs'
trouble not-over-a-filter 'the file exists and is not a catalog: f: ' 'tamis create f; tamis index -o f --attrs ip logs'
is over-a-damaged-catalog 0 "" "" 'tamis index -o h.tamis --attrs ip logs && printf x | dd of=h.tamis bs=1 seek=230 conv=notrunc 2>/dev/null &&
    ! tamis find h.tamis ip=1 2>/dev/null && tamis index -o h.tamis --attrs ip logs && tamis find h.tamis ip=2 >/dev/null'
trouble no-folder 'No such file or directory: no/x.tamis: check the name of its folder$' 'tamis index -o no/x.tamis --attrs ip logs'
trouble both 'two catalogs: ' 'tamis index -o x.tamis --update c.tamis'
holds no-leftovers '[ ! -e x.tamis ] && ! ls -A | grep -q "lock\|\.tamis-"'

# Killed or interrupted while it works: the old catalog is whole, nothing is left behind.
if [ "${TAMIS_VARIANT:-release}" != release ]; then # slow enough to be killed with less of it
    head -n 20000 big.csv >few.csv && mv few.csv big.csv
    gzip -kf big.csv && zstd -qf big.csv
fi
tamis index -o k.tamis --attrs n,seven,x big.csv
cp k.tamis before
for signal in KILL INT TERM; do
    for delay in 0.002 0.01 0.03 0.06; do
        rm -f k.tamis.lock
        tamis index -o k.tamis --attrs n,x --segment 100k big.csv big.csv.gz big.csv.zst 2>/dev/null &
        await '[ -s k.tamis.lock ] || ! kill -0 $! 2>/dev/null' # it is at work
        sleep $delay
        kill -$signal $! 2>/dev/null
        wait $! 2>/dev/null
    done
    holds "killed-$signal" 'tamis find k.tamis n=77 --count | grep -qx "[13]"'
done
rm -f k.tamis.lock
# Told to stop while it works, it stops, and the shell sees how.
interrupted() {
    bash -c 'tamis index -o k.tamis --attrs n,x big.csv.gz big.csv &
        until [ -s k.tamis.lock ] || ! kill -0 $! 2>/dev/null; do :; done
        kill -INT $!; wait $!' 2>/dev/null
    [ $? = 130 ]
}
holds interrupted-status 'await interrupted'
# What no record fits is told; it is found as text.
printf 'hello world\nfoo bar\n' >plain.log
is pattern-fits-none 0 2 $'tamis index: no line fits: --pattern (?<a>[0-9]+) (?<b>.*): check it; 2 lines are found only as text\ntamis index: plain.log begins: hello world' \
    'tamis index -o p.tamis --pattern "(?<a>[0-9]+) (?<b>.*)" plain.log; tamis find p.tamis -c --limit 9'
trouble pattern-names-nothing '--pattern: no named group, such as .*user.*: see man pcre2pattern$' 'tamis index -o p2.tamis --pattern "(\w+)" plain.log'
trouble records-nowhere 'no record: wrapped.json: check the path in --records$' \
    'echo "{\"data\": {\"items\": [{\"id\": 1}]}}" >wrapped.json; tamis index --records items wrapped.json'
trouble pattern-is-wrong '--pattern: missing closing parenthesis, at character 6: see man pcre2pattern$' 'tamis index -o p2.tamis --pattern "(?<a>" plain.log csv.csv'
is pattern-fits-some 0 "" "" 'tamis index -o p.tamis --pattern "(?<a>[fo]+) (?<b>.*)" plain.log'
is format-fits-none 0 1 $'tamis index: no line fits: --format combined: check it; 2 lines are found only as text\ntamis index: plain.log begins: hello world' \
    'tamis index -o p.tamis --format combined plain.log; tamis find p.tamis foo -c'
is time-of-none 0 "" $'tamis index: no record of the sample has the time: --time nope: check the name; --since and --until leave out records without it\ntamis index: logs/a.jsonl.gz begins: {"ip": "1", "user": "bob"}' \
    'tamis index -o p.tamis --time nope --attrs ip logs'
printf '{"ip": "1", "t": "2024-05-01"}\n' >timed.jsonl
is time-of-some 0 "" "" 'tamis index -o p.tamis --time t --attrs ip logs timed.jsonl'
finish
