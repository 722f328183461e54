#!/bin/bash
# Publish, follow and locate over a shared folder. With a server: tests/replica.
. "$TAMIS_ROOT/tests/cli/common.sh"

tamis create a.tamis --deletable --fpp 1e-6
tamis create b.tamis --like a.tamis
is publish 0 "" "" 'printf "+ann\n+bob\n" | tamis publish a.tamis --to file:x --as alpha'
is publish-another 0 "" "" 'printf "+bob\n+cho\n" | tamis publish b.tamis --to file:x --as "beta/2" --beat none'
is follow 0 "" "" 'tamis follow file:x -o d --once --for 120s'
is located 0 $'ann\talpha\nbob\talpha beta/2\ncho\tbeta/2' "" 'tamis locate d ann bob cho zoe'
is from-lines 0 $'cho\tbeta/2' "" 'printf "zoe\ncho\n" | tamis locate d'
is nobody 1 "" "" 'tamis locate d zoe'
is verified 0 "d/alpha.replica: OK, *" "" 'tamis verify d/alpha.replica | sed "s/[0-9]* bytes/*/"'
trouble damaged 'd/broken.replica: .*checksum.*|.*checksum.*: d/broken.replica.*' \
    'sed "s/alpha/alpHa/" d/alpha.replica >d/broken.replica; tamis verify d/broken.replica >/dev/null'
json json 'tamis locate d ann --json' 'd == {"key": "ann", "owners": ["alpha"], "maybe": []}'
json json-of-bytes 'printf "a\0b\"\n" | tamis locate d --json; true' 'd["key"] == "a\0b\""'
# What is no folder of copies proves nothing.
trouble no-copies 'no copies in it: hollow: make it with tamis follow$' 'mkdir hollow; tamis locate hollow ann'
trouble a-file 'Not a directory: a.tamis: give the folder of tamis follow$' 'tamis locate a.tamis ann'
holds heard-nothing-yet 'tamis follow file:silent -o new --for 100ms; tamis locate new ann; [ $? = 1 ]'
trouble not-deletable 'it is not deletable: plain.tamis: lines with - need one made with create --deletable$' \
    'tamis create plain.tamis; printf "+ann\n-ann\n" | tamis publish plain.tamis --to file:plain --as plain'
is nowhere 2 "" "tamis publish: no/such/x: No such file or directory: trying again
tamis publish: no/such/x: No such file or directory: 2 messages were not sent: the file is saved, publish it again" \
    'tamis publish b.tamis --to file:no/such/x --as beta --linger 100ms </dev/null'
is removed 0 "" "" 'printf -- "-ann\n" | tamis publish a.tamis --to file:x --as alpha'
is follow-again 0 "" "" 'tamis follow file:x -o d --once --for 120s'
is gone 1 "" "" 'tamis locate d ann'
is kept 0 $'bob\talpha beta/2' "" 'tamis locate d bob'
is file-was-saved 0 "bob" "" 'tamis check a.tamis ann bob'

is short-lease 0 "" "" 'echo +dan | tamis publish a.tamis --to file:x --as alpha --beat 100ms &&
    tamis follow file:x -o d --for 500ms'
sleep 0.5
is stale 0 $'bob\t?alpha beta/2' "" 'tamis locate d bob'
is stale-only 1 $'zoe\t?alpha' "" 'tamis locate d zoe'
is stale-maybe 0 $'zoe\t?alpha' "" 'tamis locate d zoe --maybe'
is owners 0 $'?alpha\nbeta/2' "" 'tamis locate d --owners | cut -f 1'
is no-beat 0 "" "" 'echo +dan | tamis publish a.tamis --to file:x --as alpha --beat none &&
    tamis follow file:x -o d --once --for 120s'
is never-stale 0 $'dan\talpha' "" 'tamis locate d dan'

json report 'seq 1000 | sed s/^/+/ | tamis publish a.tamis --to file:x --as alpha --json' \
    'd["added"] == 1000 and d["snapshots"] >= 1 and d["deltas"] > 5 and d["version"] > 5'
json follow-report 'tamis follow file:x -o d --once --for 120s --json' \
    'd["origins"] == 2 and d["current"] == 2 and d["owners"]["alpha"]["items"] == 1003'
is thousand 0 1000 "" 'seq 1000 | tamis locate d | grep -c alpha'
is split 0 "" "" 'seq 2000 | sed s/^/+/ | tamis publish b.tamis --to file:x --as "beta/2" --beat none --message 1Ki &&
    tamis follow file:x -o d --once --for 120s'
is split-located 0 2000 "" 'seq 2000 | tamis locate d | grep -c beta/2'
is targets 0 "" "" 'echo +x | tamis publish a.tamis --to file:x --as alpha --false-rate 5% --weights 1,10 \
    --member-miss off --dirty 10% --max-age 1s'
is null 0 "" "" 'printf "+a\nb\0" | tamis publish a.tamis --to file:x --as alpha -0 && tamis check -0 -q a.tamis "a
b"'

is no-key 0 "" "" 'head -c 16 /dev/zero >key; tamis create k.tamis --key-file key &&
    echo +ann | tamis publish k.tamis --to file:y --as k --no-key'
is no-key-follow 1 "" "tamis follow: refused: saved without its family key: the key is needed to ask: k" 'tamis follow file:y -o e --once --for 500ms'
is no-key-given 0 "" "" 'tamis follow file:y -o e --once --for 120s --key-file key'
is no-key-located 0 $'ann\tk' "" 'tamis locate e ann --key-file key'

is retire 0 "" "" 'tamis publish a.tamis --to file:x --as alpha --retire </dev/null &&
    tamis follow file:x -o d --for 300ms'
is retired 1 "" "" 'tamis locate d ann'

is bad-line 0 "" 'tamis publish: 1 lines do not begin with + or -: standard input, the first is line 2: they were skipped' \
    'printf "+a\nb\n" | tamis publish b.tamis --to file:x --as b'
trouble strict '.*line 1: nothing after it was read' 'printf "b\n" | tamis publish b.tamis --to file:x --as b --strict'
trouble no-address 'a file, --to and --as are needed: ' 'tamis publish b.tamis --as b'
trouble bad-address 'not an address: give redis://HOST:PORT/NAME or file:FOLDER: --to' \
    'tamis publish b.tamis --to http://x --as b'
trouble bad-redis 'not an address of Redis: ' 'tamis publish b.tamis --to redis://host:99999/n --as b'
trouble no-server '.*: nothing was published: ' \
    'tamis publish b.tamis --to redis+unix:///nonexistent/sock?name=n --as b --linger 300ms </dev/null 2>&1 | tail -1 >&2; (exit ${PIPESTATUS[0]})'
is follow-no-server 2 "" "tamis follow: /nonexistent/sock: No such file or directory: trying again
tamis follow: /nonexistent/sock: No such file or directory: never reached in that time: the copies are as they were" \
    'tamis follow redis+unix:///nonexistent/sock?name=n -o d --for 300ms'
trouble bad-time "wrong value 'soon': --max-age: " 'tamis publish b.tamis --to file:x --as b --max-age soon'
trouble bad-weights "wrong value '1': --weights: " 'tamis publish b.tamis --to file:x --as b --weights 1'
trouble no-folder 'No such file or directory: nosuch: make it with tamis follow' 'tamis locate nosuch x'
trouble damaged-status 'not written by tamis follow, or damaged: d/status: ' \
    'echo hello >d/status; tamis locate d x'
trouble long-name 'not a name of 1 to 255 bytes: --as: ' 'tamis publish b.tamis --to file:x --as $(printf %0300d 1) </dev/null'
finish
