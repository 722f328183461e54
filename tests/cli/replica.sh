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

json report 'seq 1000 | sed s/^/+/ | tamis publish a.tamis --to file:x --as alpha --min-gap none --json' \
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
is no-key-follow 1 "" "tamis follow: refused: saved without its family key: queries need the key: k" 'tamis follow file:y -o e --once --for 500ms'
is no-key-given 0 "" "" 'tamis follow file:y -o e --once --for 120s --key-file key'
is no-key-located 0 $'ann\tk' "" 'tamis locate e ann --key-file key'

# With the key, nothing is taken that is not sealed with it.
is sealed-only 1 "" "tamis follow: refused: p: the message is not sealed: it was published with its key, or forged: p" \
    'tamis create p.tamis --key-file key && echo +ann | tamis publish p.tamis --to file:open --as p &&
    tamis follow file:open -o open-copies --once --for 500ms --key-file key'

# A burst of a third more keys is one message, or two if a gap ends meanwhile.
json burst 'tamis create burst.tamis; seq 3000 | sed s/^/+/ | tamis publish burst.tamis --to file:b --as b
    seq 3001 4000 | sed s/^/+/ | tamis publish burst.tamis --to file:b --as b --min-gap 10s --json' \
    'd["added"] == 1000 and d["deltas"] <= 2'
json no-gap 'seq 4001 5000 | sed s/^/+/ | tamis publish burst.tamis --to file:b --as b --min-gap none --json' 'd["deltas"] > 5'
# Snapshots travel compressed.
holds small-snapshot 'tamis create roomy.tamis --growth fixed --capacity 1M; echo +ann | tamis publish roomy.tamis --to file:z --as z;
    [ $(stat -c %s z/z/snapshot) -lt 5000 ] && tamis follow file:z -o zz --once --for 120s && [ "$(tamis locate zz ann)" = "ann	z" ]'

# Times that cannot be: a message that is yet to be written, a copy that is yet to be heard of, another
# machine. All of these mean doubt.
is time-ahead 1 "" "" 'echo +ann | tamis publish p.tamis --to file:ahead --as p;
    touch -d "+1 hour" ahead/p/0*; tamis follow file:ahead -o ahead-copies --once --for 400ms'
is follow-now 0 "" "" 'tamis publish p.tamis --to file:ahead --as p </dev/null && tamis follow file:ahead -o ahead-copies --once --for 120s'
is trusted 0 $'ann\tp' "" 'tamis locate ahead-copies ann'
is set-back 1 $'zoe\t?p' "" 'cp -r ahead-copies back; sed -i -E "s/^(owner p [0-9]+ [0-9]+) [0-9]+/\1 9999999999999999999/" back/status
    tamis locate back zoe'
is other-machine 1 $'zoe\t?p' "" 'cp -r ahead-copies other; sed -i "s/^boot .*/boot 5e1f/" other/status; tamis locate other zoe'

# The log of changes: what was acknowledged and not saved is done again; others do not write meanwhile.
is ack 0 $'3' "" 'tamis create l.tamis --deletable; printf "+ann\n+bob\n-ann\n" | tamis publish l.tamis --to file:l --as l --ack'
holds log-gone '[ ! -e l.tamis.changes ]'
trouble log-waits 'it has changes of a tamis publish that was killed: l.tamis.changes: ' 'echo x >l.tamis.changes; tamis add l.tamis cho'
trouble log-damaged 'not a log of changes, or damaged: l.tamis.changes: ' 'head -c 100 /dev/zero >l.tamis.changes; tamis publish l.tamis --to file:l --as l </dev/null'
is log-cut 0 "" "" 'head -c 7 /dev/zero >l.tamis.changes; tamis publish l.tamis --to file:l --as l </dev/null'

# An owner that does not come again.
is forget 0 "" "" 'tamis forget file:l l'
is forget-nobody 1 "" "" 'tamis forget file:l nobody'
is forgotten 1 "" "" 'tamis follow file:l -o lost --for 300ms; tamis locate lost ann'
is forget-copy 0 "" "" 'tamis forget ahead-copies p'
is forgot-copy 1 "" "" 'tamis locate ahead-copies ann'
is back-again 0 "" "" 'tamis publish l.tamis --to file:l --as l </dev/null && tamis follow file:l -o lost --once --for 120s'
is back-located 0 $'bob\tl' "" 'tamis locate lost bob'

is retire 0 "" "" 'tamis publish a.tamis --to file:x --as alpha --retire </dev/null &&
    tamis follow file:x -o d --for 300ms'
is retired 1 "" "" 'tamis locate d ann'

is bad-line 0 "" 'tamis publish: 1 lines do not begin with + or -: standard input, the first is line 2: they were skipped' \
    'printf "+a\nb\n" | tamis publish b.tamis --to file:x --as b'
trouble strict '.*line 1: nothing after it was read' 'printf "b\n" | tamis publish b.tamis --to file:x --as b --strict'
trouble no-address 'a file, --to and --as are needed: ' 'tamis publish b.tamis --as b'
trouble bad-address 'not an address: give redis://HOST:PORT/NAME or file:FOLDER .or, to follow, https://.: --to' \
    'tamis publish b.tamis --to ftp://x --as b'
trouble bad-redis 'not an address of Redis: ' 'tamis publish b.tamis --to redis://host:99999/n --as b'
trouble no-server '.*: nothing was published: ' \
    'tamis publish b.tamis --to redis+unix:///nonexistent/sock?name=n --as b --linger 300ms </dev/null 2>&1 | tail -1 >&2; (exit ${PIPESTATUS[0]})'
is follow-no-server 2 "" "tamis follow: /nonexistent/sock: No such file or directory: trying again
tamis follow: /nonexistent/sock: No such file or directory: not reached in that time: the copies are unchanged" \
    'tamis follow redis+unix:///nonexistent/sock?name=n -o d --for 300ms'
trouble bad-time "wrong value 'soon': --max-age: " 'tamis publish b.tamis --to file:x --as b --max-age soon'
trouble bad-weights "wrong value '1': --weights: " 'tamis publish b.tamis --to file:x --as b --weights 1'
trouble no-folder 'No such file or directory: nosuch: make it with tamis follow' 'tamis locate nosuch x'
trouble damaged-status 'not written by tamis follow, or damaged: d/status: ' \
    'echo hello >d/status; tamis locate d x'
trouble bad-lease "wrong value 'long': --max-lease: " 'tamis follow file:x -o d --max-lease long'
trouble forget-what 'an address or folder and an owner are needed: ' 'tamis forget file:x'
trouble long-name 'not a name of 1 to 255 bytes: --as: ' 'tamis publish b.tamis --to file:x --as $(printf %0300d 1) </dev/null'
finish
