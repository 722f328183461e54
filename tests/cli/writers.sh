#!/bin/bash
# Several processes and one file: no key is lost, the second waits or says so, a killed one harms
# nothing.
. "$(dirname "$0")/common.sh"

tamis create a.tamis
for i in 1 2 3 4 5 6; do
    seq -f "$i-%.0f" 3000 | tamis add a.tamis &
done
wait
lost=0
for i in 1 2 3 4 5 6; do
    [ "$(seq -f "$i-%.0f" 3000 | tamis check -c a.tamis)" = 3000 ] || lost=1
done
holds six-writers-lose-nothing "[ $lost = 0 ]"
holds no-lock-is-left '[ ! -e a.tamis.lock ]'

# One that holds the lock: its input does not end.
mkfifo pipe
tamis add a.tamis <pipe &
writer=$!
exec 3>pipe
echo slow >&3
await '[ -s a.tamis.lock ]' # signed, so held
trouble no-wait-says-who "process $writer is writing to a.tamis: wait for it, or try again later\$" \
    'tamis add --no-wait a.tamis x 3>&-'
trouble no-wait-merge 'process [0-9]+ is writing to a.tamis: ' 'tamis merge --no-wait -o a.tamis a.tamis a.tamis'
is readers-do-not-wait 0 1-1 "" 'tamis check a.tamis 1-1'
tamis add a.tamis patient 3>&- &
second=$!
exec 3>&-
wait $writer
wait $second
is the-second-waited 0 $'slow\npatient' "" 'tamis check a.tamis slow patient'

# Killed at any moment of an add or a merge, the file is whole and has every key of the runs that ended
# well. Every fifth is left to end, and the others are killed within the time that it took.
runs=15 rounds=1 good=0 missing=0 saved=0 killed=0 took=0
[ -n "${TAMIS_LONG:-}" ] && rounds=14

killed_run() { # killed_run NUMBER
    local before writer status start
    before=$(md5sum <k.tamis)
    start=$(date +%s%N)
    if [ $(($1 % 3)) = 0 ]; then
        tamis clear side.tamis
        seq -f "$1-%.0f" 20000 | tamis add side.tamis
        tamis merge -o k.tamis k.tamis side.tamis 2>.err &
    else
        seq -f "$1-%.0f" 20000 | tamis add k.tamis &
    fi
    writer=$!
    if [ $(($1 % 5)) != 1 ]; then
        sleep "$(awk -v took=$took -v part=$((RANDOM % 100)) 'BEGIN { printf "%f", took / 1e9 * part / 100 }')"
        kill -9 $writer 2>/dev/null
    fi
    wait $writer 2>/dev/null
    status=$?
    [ $(($1 % 5)) != 1 ] || took=$(($(date +%s%N) - start))
    [ $status != 137 ] || killed=$((killed + 1))
    # It ended well, or was killed after the rename.
    [ $status = 0 ] || [ "$(md5sum <k.tamis)" != "$before" ]
}

for _ in $(seq $rounds); do
    tamis create -f k.tamis --deletable
    tamis create -f side.tamis --like k.tamis
    done_runs=
    for i in $(seq $runs); do
        killed_run "$i" && done_runs+=" $i"
        tamis verify k.tamis >/dev/null 2>.err && good=$((good + 1))
    done
    for i in $done_runs; do
        saved=$((saved + 1))
        [ "$(seq -f "$i-%.0f" 20000 | tamis check -c k.tamis)" = 20000 ] || missing=$((missing + 1))
    done
done
[ -z "${TEST_VERBOSE:-}" ] || echo "$saved of $((rounds * runs)) were saved"
holds killed-leaves-it-whole "[ $good = $((rounds * runs)) ]"
holds some-were-killed-and-some-saved "[ $killed -ge $rounds ] && [ $saved -ge $((3 * rounds)) ]"
holds killed-loses-no-saved-key "[ $missing = 0 ]"
is lock-of-the-dead-is-taken-over 0 "" "" 'tamis add --no-wait k.tamis x'
finish
