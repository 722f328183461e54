#!/bin/bash
# tamis find: conditions, forms of the answer, what changed since the catalog was made.
. "$(dirname "$0")/common.sh"

mkdir d
printf 'ip,user,n\n1,ann,1\n1,bob,2\n2,ann,3\n2,,4\n' >d/a.csv
printf '{"ip": 1, "user": "cho"}\n{"user": "ann", "x=y": "z"}\n' >d/b.jsonl
tamis index --fpp 1e-9 -o c.tamis --attrs ip,user,n:int,x=y --combo ip+user d

is one 0 $'1,ann,1\n1,bob,2\n{"ip": 1, "user": "cho"}' "" 'tamis find c.tamis ip=1'
is pair 0 1,ann,1 "" 'tamis find c.tamis ip=1 user=ann'
is any-order 0 1,ann,1 "" 'tamis find user=ann c.tamis ip=1 2>/dev/null || tamis find c.tamis user=ann ip=1'
is recombined 1 "" "" 'tamis find c.tamis ip=2 user=bob'
is any-of 0 $'1,ann,1\n1,bob,2\n2,ann,3' "" 'tamis find c.tamis user=bob user=ann ip=2 ip=1'
is empty 0 2,,4 "" 'tamis find c.tamis user='
is missing 0 '{"user": "ann", "x=y": "z"}' "" 'tamis find c.tamis ip!'
is missing-or 0 $'2,ann,3\n2,,4\n{"user": "ann", "x=y": "z"}' "" 'tamis find c.tamis ip! ip=2'
is equals-in-a-name 0 '{"user": "ann", "x=y": "z"}' "" 'tamis find c.tamis x=y=z'
is typed 0 1,bob,2 "" 'tamis find c.tamis n=+02'
is none 1 "" "" 'tamis find c.tamis user=zoe'
is not-verified 0 1,ann,1 'tamis find: not verified as a combination; add --combo user+n' 'tamis find c.tamis user=ann n=1'
for i in $(seq 300); do echo "i$i,u$i"; done | sed '1i ip,user' >many.csv
tamis index --attrs ip,user many.csv
is too-many-choices 0 300 'tamis find: not verified as a combination: too many choices: give fewer values' \
    'tamis find many.csv -c $(seq -f ip=i%g 300) $(seq -f user=u%g 300)'
is count 0 3 "" 'tamis find c.tamis ip=1 --count'
is count-none 1 0 "" 'tamis find -c c.tamis ip=7'
is count-json 0 '{"matches": 3}' "" 'tamis find c.tamis ip=1 -c --json'
is limit 0 $'1,ann,1\n1,bob,2' "" 'tamis find c.tamis ip=1 --limit 2'
is limit-count 0 2 "" 'tamis find c.tamis ip=1 --limit 2 -c'
is segments 0 $'d/a.csv\t10\t29\nd/b.jsonl\t0\t53' "" 'tamis find c.tamis ip=1 user=ann --segments'
is segments-none 1 "" "" 'tamis find c.tamis ip=7 --segments'
is segments-json 0 $'{"file": "d/a.csv", "offset": 10, "length": 29, "line": 2, "segment": 0}\n{"file": "d/b.jsonl", "offset": 0, "length": 53, "line": 1, "segment": 0}' "" \
    'tamis find c.tamis ip=1 --segments --json'
is records-json 0 $'{"file": "d/a.csv", "offset": 10, "line": 2, "record": "1,ann,1", "fields": {"ip": "1", "user": "ann", "n": "1"}}\n{"file": "d/a.csv", "offset": 18, "line": 3, "record": "1,bob,2", "fields": {"ip": "1", "user": "bob", "n": "2"}}\n{"file": "d/b.jsonl", "offset": 0, "line": 1, "record": {"ip": 1, "user": "cho"}}' "" \
    'tamis find c.tamis ip=1 --json'
json explain 'tamis find c.tamis ip=1 user=ann --explain --json' \
    'd["segments"] == 1 and d["candidates"] == 1 and d["false_candidates"] == 0 and d["matches"] == 1 and d["bytes_read"] == 82 and d["bytes_total"] == 92 and d["verified"] and d["records"] == 6 and d["seconds"] > 0'
holds explain-text 'tamis find c.tamis ip=1 --explain | grep -qE "^  false candidates +0$"'
is explain-none 1 0 "" '(tamis find c.tamis ip=7 --explain >f; s=$?; grep "^matching records" f | tr -dc 0-9; echo; exit $s)'

# The line is an attribute of every input, indexed or not.
is line-field 0 $'line\n"1,ann,1"\n"1,bob,2"\n"{""ip"": 1, ""user"": ""cho""}"' "" 'tamis find c.tamis ip=1 --fields line'
is line-among-fields 0 $'user,line,ip\nbob,"1,bob,2",1' "" 'tamis find c.tamis user=bob --fields user,line,ip'
is line-counted 0 $'1\t1,ann,1\n1\t1,bob,2' "" 'tamis find c.tamis ip=1 n=1..2 --count-by line'
json line-json 'tamis find c.tamis user=bob --json --fields line' 'd["fields"] == {"line": "1,bob,2"}'
is line-equal 0 1,bob,2 "" 'tamis find c.tamis line=1,bob,2'
is line-not 0 5 "" 'tamis find c.tamis -c "line!=1,bob,2"'
is line-missing 1 "" "" 'tamis find c.tamis line!'

# What cannot be asked.
trouble unknown-attribute ".*.usr..*ip, user, n, x=y.*: usr=ann: " 'tamis find c.tamis usr=ann'
trouble unknown-missing ".*.usr..*: " 'tamis find c.tamis usr!'
trouble attribute-alone "an attribute's name alone: user: write user=VALUE, or '\"user\"' for the word$" 'tamis find c.tamis user'
trouble no-order 'user is text, which has no order: user>=5: ' "tamis find c.tamis 'user>=5'"
trouble pattern '[*] has no meaning here: user=a[*]: write user\^=PREFIX' "tamis find c.tamis 'user=a*'"
is doubt 1 "" "tamis find: none: n=5xx: that is not a value of type int, so it was searched as text; write n== to mean that, or a value of the type" 'tamis find c.tamis n=5xx'
is doubt-regex 1 "" "tamis find: none: user=/an+/: = compares whole values; for a regular expression write user~/regex/" 'tamis find c.tamis user=/an+/'
is doubt-quotes 1 "" "tamis find: none: user=\"ann\": the quotes were searched as part of the value; leave them to the shell" "tamis find c.tamis 'user=\"ann\"'"
is doubt-or 1 "" "tamis find: none: OR: that was searched as a word of the line; values of one attribute are alternatives (a=v a=w), all else must hold, and a!=v excludes" \
    'tamis find c.tamis user=ann OR user=bob'
is doubt-and 1 "" "tamis find: none: and: that was searched as a word of the line; values of one attribute are alternatives (a=v a=w), all else must hold, and a!=v excludes" \
    'tamis find c.tamis user=ann and ip=1'
for word in user:bob 'user = bob' 'n > 1'; do
    is "doubt-name-$word" 1 "" "tamis find: none: $word: that was searched as words of the line; for the attribute write ${word%%[: ]*}=VALUE" "tamis find c.tamis '$word'"
done
for word in 10.1.0.0/16 user~2001:db8::/32; do
    is "doubt-$word" 1 "" "tamis find: none: $word: that was searched as words; for the addresses of a network write ATTR=NETWORK, for an attribute of type ip" "tamis find c.tamis $word"
done
is no-doubt 1 "" "" 'tamis find c.tamis n==5xx'
is no-doubt-words 1 "" "" "tamis find c.tamis 'user bob' '\"user:bob\"' usr:bob"
trouble list-of-no-file 'a list without a file: user!=@: write user!=@FILE, or user!==@ for the text$' 'tamis find c.tamis user!=@'
trouble whole-numbers "not a whole number: '1.5' in n>1.5: write digits such as 500$" 'tamis find c.tamis "n>1.5"'
trouble no-catalog 'no catalog: CATALOG: ' 'tamis find'
trouble missing-catalog 'no catalog: nosuch: give one first, made by tamis index, or what it was made of$' 'tamis find nosuch ip=1'
trouble question-first 'no catalog: ip=1: give one first, made by tamis index, or what it was made of$' 'tamis find ip=1'
trouble not-indexed 'no catalog: d/a.csv.tamis: make it with tamis index d/a.csv$' 'tamis find d/a.csv ip=1'
trouble no-name "no catalog: $PWD.tamis: make it with tamis index .$" 'tamis find . ip=1'
trouble no-name-at-all 'no catalog: /: give the one that was made of it with -o$' 'tamis find / ip=1'
trouble text-catalog '.*: d/a.csv' 'tamis find d/a.csv ip=1'
trouble filter-catalog '.*: f.tamis' 'tamis create f.tamis; tamis find f.tamis ip=1'
trouble two-answers 'two kinds of answer: ' 'tamis find c.tamis ip=1 --count --segments'
trouble limit-zero "wrong value '0': --limit: " 'tamis find c.tamis ip=1 --limit 0'
trouble full-output 'No space left on device: standard output: ' 'tamis find c.tamis ip=1 >/dev/full'

# Questions of every kind; what each holds for: tests/unit/test_question.c and tests/python/test_questions.py.
mkdir q
cat >q/a.log <<'END'
10.1.2.3 - ann [01/May/2024:10:00:00 +0000] "GET /admin/x HTTP/1.1" 200 12 "-" "curl/7.88"
10.1.2.4 - bob [01/May/2024:11:00:00 +0000] "GET /index.html HTTP/1.1" 404 - "-" "Mozilla/5.0"
Traceback: connection refused
192.168.0.9 - - [02/May/2024:12:00:00 +0000] "POST /admin/y HTTP/1.1" 500 7 "-" "curl/7.88"
END
cut -d '"' -f 1 q/a.log >.heads
tamis index --tz UTC q
is network 0 2 "" 'tamis find q host=10.1.0.0/16 -c'
is network-or-value 0 3 "" 'tamis find q host=10.1.2.3/32 host=10.1.2.4 host=192.168.0.9 -c'
is range 0 "404" "" 'tamis find q status=300..499 --fields status | tail -1'
is open-range 0 2 "" 'tamis find q status=300.. -c'
is above 0 1 "" "tamis find q 'status>404' -c"
is prefix 0 2 "" 'tamis find q path^=/admin/ -c'
is word 0 "Traceback: connection refused" "" "tamis find q 'connection refused'"
is word-of-a-field 0 2 "" 'tamis find q agent~CURL -c'
is regex 0 1 "" 'tamis find q "path~/index[.]/" -c'
is regex-too-slow 2 0 'tamis find: not searched: slow.csv: the regular expression in k~/^(a|a)*[bc]$/ takes too long on line 3: write a simpler one' \
    '(echo k,v; echo b,1; printf "a%.0s" $(seq 300); echo ,2) >slow.csv; tamis index --attrs k slow.csv -o slow.tamis; tamis find slow.tamis "k~/^(a|a)*[bc]$/" "v=2" -c'
is not 0 3 "" 'tamis find q user!=ann -c'
is missing-dash 0 2 "" 'tamis find q user! -c'
printf '10.1.2.4\n9.9.9.9\n192.168.0.0/24\n' >list
is list 0 $'tag,line,status\n10.1.2.4,2,404\n192.168.0.0/24,4,500' "" 'tamis find q host=@list --tag -n --fields status'
is list-records 0 "10.1.2.4 192.168.0.0/24" "" 'echo $(tamis find q host=@list --tag | cut -f 1)'
is tag-of-what-is-not 0 $'user!=ann\tTraceback: connection refused' "" 'tamis find q "user!=ann" line~refused --tag'
is tag-of-missing 0 "ann bob ! !" "" 'echo $(tamis find q user! user=bob user=ann --tag | cut -f 1)'
trouble tag-of-nothing 'nothing to tag: --tag: ask for what is found, or leave it out$' 'tamis find q --tag'
is list-of-days 0 "2024-05-01 2024-05-02" "" 'printf "2024-05-02\n2024-05-01\n" >days; echo $(tamis find q time=@days --tag | cut -f 1 | sort -u)'
trouble list-line 'days:2: user is text, which has no networks: 10.0.0.0/8: ' 'printf "ann\n10.0.0.0/8\n" >days; tamis find q user=@days'
trouble range-of-text 'path is path, which has no ranges: path=500..: write path==500.. for the text, or index' 'tamis find q path=500..'
is since 0 2 "" 'tamis find q --since 2024-05-01T11:00:00Z --until 2024-05-01 -c'
is since-day 0 1 "" 'tamis find q --since 2024-05-02 -c'
is since-later 1 0 "tamis find: none: --since 2024-05-02: that is later than --until" 'tamis find q --since 2024-05-02 --until 2024-05-01 -c'
is since-alike 0 3 "" 'tamis find q --since 2024-05-01 --until 2024-05-01 -c'
is range-reversed 1 0 "tamis find: none: status=499..300: the range ends before it begins" 'tamis find q status=499..300 -c'
is range-of-one 0 1 "" 'tamis find q status=404..404 -c'
is until-hour 0 1 "" 'tamis find q --until 2024-05-01T10 -c'
is relative 0 4 "" 'tamis find q --until 2h -c'
is fields 0 $'host,user\n10.1.2.3,ann\n10.1.2.4,bob' "" 'tamis find q status=200..404 --fields host,user'
is count-by 0 $'2\tcurl/7.88\n1\tMozilla/5.0\n1\t!' "" 'tamis find q --until 2h --count-by agent'
is count-by-json 0 $'{"count": 2, "value": "curl/7.88"}\n{"count": 1, "value": "Mozilla/5.0"}' "" 'tamis find q --until 2h --count-by agent --json --limit 2'
is place 0 "q/a.log:3:Traceback: connection refused" "" 'tamis find q -Hn refused'
json one-json 'tamis find q status=404 --json' 'd["line"] == 2 and d["fields"]["host"] == "10.1.2.4" and d["fields"]["status"] == "404" and "ident" not in d["fields"]'
json explain-conditions 'tamis find q status=404 "agent~/moz/i" --explain --json' 'd["conditions"]["status=404"] == "rejects segments" and "only filters" in d["conditions"]["agent~/moz/i"]'
trouble compact-date "not a time: '20240501' in 20240501: write 2h or 7d .ago., 2024-05-31, " 'tamis find q --since 20240501'
is slashed-day 0 3 "" 'tamis find q --until 2024/05/01 -c'
trouble slashes 'a regular expression without an attribute: /refus/: write line~/refus/, or ' 'tamis find q /refus/'
trouble negated-word "! stands before = or at the end: !refused: write 'line~" "tamis find q '!refused'"
is negated-word-as-told 0 3 "" "tamis find q 'line~/(?s)^(?!.*refused)/' -c"
# A text that is asked for as a whole has all of its words: the longest rejects segments.
for i in 1 2 3 4 5; do
    for j in {1..200}; do echo "{\"n\": $j, \"msg\": \"alpha$i beta$j gamma\"}"; done
done >texts.jsonl
tamis index texts.jsonl --attrs n:int,msg:words --segment 8Ki --fpp 1e-6
is text-equal 0 '{"n": 7, "msg": "alpha3 beta7 gamma"}' "" 'tamis find texts.jsonl "msg=alpha3 beta7 gamma"'
is text-equal-any 0 2 "" 'tamis find texts.jsonl "msg=alpha5 beta1 gamma" "msg=alpha1 beta200 gamma" "msg=nothing else" -c'
is text-equal-in-another-order 1 "" "" 'tamis find texts.jsonl "msg=gamma beta7 alpha3"'
json text-equal-rejects 'tamis find texts.jsonl "msg=alpha3 beta777 gamma" --explain --json; [ $? = 1 ]' 'd["segments"] > 4 and d["candidates"] == 0'

# Several catalogs; the folder they were made of is as good as their name.
tamis index d
is several 0 4 "" 'tamis find q d -- user=ann -c'
is several-order 0 "3 4" "" 'echo $(tamis find d q.tamis -- user=ann user=bob --limit 3 -c) $(tamis find d q -- user=ann --fields user | grep -c ann)'
is field-of-another 0 1 "" 'tamis find d q -- status=404 -c'
trouble field-of-none "no input has an attribute 'nosuch'; " 'tamis find d q -- nosuch=1'
trouble not-made 'no catalog: e0.tamis: make it with tamis index e0$' 'mkdir e0; tamis find e0 x=1'
# Nothing asked: what can be.
json about 'tamis find q --json' 'd["inputs"] == 1 and d["formats"] == {"combined": 1} and {"name": "status", "type": "int", "indexed": True, "example": "200"} in d["attributes"] and d["since"] == "2024-05-01T10:00:00Z" and d["until"] == "2024-05-02T12:00:00Z"'
holds about-text 'tamis find q | grep -qE "^ +host +ip +10.1.2.3$"'

# An input that only grew: its tail is read too, an open last record anew.
cp -a d e
tamis index --fpp 1e-9 -o e.tamis --attrs ip,user e
printf '1,dan,5' >>e/a.csv
is grown 0 $'1,ann,1\n1,bob,2\n1,dan,5\n{"ip": 1, "user": "cho"}' "" 'tamis find e.tamis ip=1'
is grown-absent-before 0 1,dan,5 "" 'tamis find e.tamis ip=1 user=dan'
is grown-segments 0 $'e/a.csv\t39\t-' "" 'tamis find e.tamis user=dan --segments'
json grown-explained 'tamis find e.tamis user=dan --explain --json' 'd["grown"] == 1 and d["candidates"] == 0 and d["bytes_read"] == 7'
is trusted 1 "" "" 'tamis find e.tamis user=dan --trust'
tamis index --update e.tamis
printf '67\n2,dan,8\n' >>e/a.csv
is open-record-grew 0 $'1,dan,567\n2,dan,8' "" 'tamis find e.tamis user=dan'
# Any other change: it is read whole.
sed -i 's/bob/bea/' e/a.csv
is changed 0 1,bea,2 "" 'tamis find e.tamis user=bea'
is changed-away 1 "" "" 'tamis find e.tamis user=bob'
json changed-explained 'tamis find e.tamis user=bea --explain --json' 'd["changed"] == 1'
printf 'ip,user,n\n9,eve,1\n' >e/a.csv
is shorter 0 9,eve,1 "" 'tamis find e.tamis user=eve'
# New files are read whole. What is gone was not searched: found or not, that is no whole answer.
printf 'ip,user\n9,eve\n' >e/z.csv
is new 0 $'9,eve,1\n9,eve' "" 'tamis find e.tamis user=eve'
is new-segments 0 $'e/a.csv\t0\t-\ne/z.csv\t0\t-' "" 'tamis find e.tamis user=eve --segments'
json new-explained 'tamis find e.tamis user=eve --explain --json' 'd["new"] == 1 and d["unindexed_bytes_read"] == 32'
mv e/b.jsonl b.saved
told='tamis find: not searched: e/b.jsonl: removed since it was indexed: bring it back, or run tamis index --update e.tamis'
is removed 2 $'9,eve,1\n9,eve' "$told" 'tamis find e.tamis user=eve'
is removed-none 2 "" "$told" 'tamis find e.tamis user=nosuch'
is removed-trusted 2 "" "*" 'tamis find e.tamis user=cho --trust'
for i in $(seq 8); do cp e/z.csv e/z$i.csv; done
is many-new 2 10 "$told" 'tamis find e.tamis user=eve -c'
# A grown .gz and .zst: members and frames behind the old end.
mkdir g
printf '{"n": 1}\n{"n": 2}\n' >two
gzip <two >g/a.jsonl.gz
zstd -q <two >g/b.jsonl.zst
tamis index --fpp 1e-9 -o g.tamis --attrs n g
printf '{"n": 3}\n{"n": 1, "new": true}\n' >two
gzip <two >>g/a.jsonl.gz
zstd -q <two >>g/b.jsonl.zst
is grown-packed 0 $'{"n": 1}\n{"n": 1, "new": true}\n{"n": 1}\n{"n": 1, "new": true}' "" 'tamis find g.tamis n=1'
json grown-packed-explained 'tamis find g.tamis n=3 --explain --json' 'd["grown"] == 2 and d["matches"] == 2 and d["text_read"] == 62 and d["bytes_read"] < d["bytes_total"]'

# An input that cannot be read.
if as_user "$(command -v tamis)" version >/dev/null 2>&1; then
    chmod 755 . g
    chmod 644 g.tamis g/b.jsonl.zst
    chmod 000 g/a.jsonl.gz
    is unreadable 2 $'{"n": 1}\n{"n": 1, "new": true}' "*" 'as_user tamis find g.tamis n=1 2>told'
    holds unreadable-is-told 'grep -q "Permission denied.*a.jsonl.gz\|a.jsonl.gz.*Permission denied" told'
    chmod 644 g/a.jsonl.gz
else
    echo "skip an unreadable input: no other user may run the program"
fi
head -c 30 g/a.jsonl.gz >half && cp half g/a.jsonl.gz
is damaged-goes-on 2 $'{"n": 1}\n{"n": 1, "new": true}' "" '(tamis find g.tamis n=1 >f 2>told; s=$?; tail -2 f; exit $s)'
holds damaged-is-told 'grep -q "^tamis find: not searched: g/a.jsonl.gz: gzip at byte 30: .*: see tamis info --inputs g.tamis$" told'

# A damaged catalog is never believed.
/usr/bin/python3 - <<'END'
import random
random.seed(3)
data = open("c.tamis", "rb").read()
for i in range(60):
    bad = bytearray(data)
    bad[random.randrange(len(bad))] ^= 1 << random.randrange(8)
    open("bad%d.tamis" % i, "wb").write(bad)
for i in range(20):
    open("bad%d.tamis" % (60 + i), "wb").write(data[:random.randrange(len(data))])
END
wrong=0
for i in $(seq 0 79); do
    tamis find "bad$i.tamis" ip=1 user=ann >.out 2>.err
    status=$?
    { [ $status = 0 ] && [ "$(cat .out)" = 1,ann,1 ]; } || { [ $status = 2 ] && [ "$(wc -l <.err)" = 1 ]; } || wrong=1
done
holds damaged-catalog "[ $wrong = 0 ]"

# Thousands of inputs, which several threads look at: what changed is found, and told in order.
mkdir -p m/-a m/a
for i in $(seq 1000 4499); do printf 'k\n%s\n' "$i" >"m/$i.csv"; done
cp m/1000.csv m/-a/x.csv && cp m/1001.csv m/a/x.csv
tamis index -o m.tamis --attrs k m
is many-as-they-were 0 $'1000\n1000' "" 'tamis find m.tamis k=1000 -j 4'
rm m/1500.csv m/4400.csv
printf 'k\n77\n' >m/2600.csv
printf '77\n' >>m/4300.csv
printf 'k\n77\n' >m/a/y.csv
told='tamis find: not searched: m/1500.csv and 1 more: removed since it was indexed: bring it back, or run tamis index --update m.tamis'
for threads in 1 2 9; do
    is "many-changed-$threads" 2 $'77\n77\n77' "$told" "tamis find m.tamis k=77 -j $threads"
done

# Many matches, many threads, a window that is full: the order stays.
seq 300000 | awk 'BEGIN {print "k,v"} {print $1 % 3 "," $1 "," "padding-padding-padding"}' >big.csv
tamis index --fpp 1e-9 -o big.tamis --attrs k,v --segment 100k big.csv
for threads in 1 2 7; do
    is "order-$threads" 0 "" "" "tamis find big.tamis k=1 k=2 -j $threads | cmp - <(grep '^[12],' big.csv)"
done
is limit-stops 0 2000 "" 'tamis find big.tamis k=1 k=2 --limit 2000 -j 3 | cmp - <(grep "^[12]," big.csv | head -2000) && echo 2000'
is list-doubt 1 "" "tamis find: none: doubtful:2: 10.1.2.300: that is not a value of type ip, so it was searched as text; write ip== to mean that, or a value of the type" \
    'printf "10.1.9.9\n10.1.2.300\nx\n" >doubtful; tamis index --attrs ip:ip many.csv -o doubt.tamis 2>/dev/null; tamis find doubt.tamis ip=@doubtful'
# Very many values of one attribute; what they cost: tests/python/test_costs.py.
printf 'k,v\n7,\n7\n' >>big.csv
is many-values 0 "" "" 'tamis find big.tamis v! v= $(seq -f v=%.0f 1 15 300000) | cmp - <(awk -F, "NF == 1 || \$2 == \"\" || \$2 % 15 == 1 && \$2 != \"v\"" big.csv)'
sed -i '300002,$d' big.csv
# A list of 100,000 values, none of which occurs: nothing of the logs is read. Half of the segments would be candidates
# if each value were looked for in each of them at this rate.
awk 'BEGIN {print "ip,user,text"; for (i = 0; i < 20000; i++)
    printf "10.0.%d.%d,user%d,%080d\n", i % 8, i % 251, i % 977, i}' >listed.csv
tamis index --fpp 1e-6 -o listed.tamis --attrs ip,user --segment 256k listed.csv
awk 'BEGIN {for (i = 0; i < 100000; i++) printf "172.%d.%d.%d\n", 16 + i % 7, i / 7 % 256, i / 1792}' >nowhere
is list-of-none 1 "" "" 'tamis find listed.tamis ip=@nowhere'
json list-reads-nothing 'tamis find listed.tamis ip=@nowhere --explain --json; [ $? = 1 ]' \
    'd["segments"] > 7 and d["candidates"] == 0 and d["matches"] == 0 and d["bytes_read"] == 0 and d["text_read"] == 0 and d["bytes_total"] > 1.5e6'
sed 's/^/u/' nowhere >names
json list-of-names-reads-nothing 'tamis find listed.tamis user=@names --explain --json; [ $? = 1 ]' 'd["candidates"] == 0 and d["bytes_read"] == 0'
is list-of-some 0 "" "" 'echo user7 >>names; tamis find listed.tamis user=@names | cmp - <(grep ",user7," listed.csv)'

# Cut short, it fails in every place that is read, and is told of once.
cp big.csv cut.csv
tamis index --fpp 1e-9 -o cut.tamis --attrs k --segment 100k cut.csv
truncate -s 200k cut.csv
is cut-is-told-once 0 "2 1" "" '(tamis find cut.tamis k=1 --trust -j 2 >f 2>told; echo "$? $(grep -c "not searched: cut.csv: .*: see tamis info --inputs cut.tamis$" told)")'
is closed-pipe 0 1,1,padding-padding-padding "" 'tamis find big.tamis k=1 | head -1'
finish
