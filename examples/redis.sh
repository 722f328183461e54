#!/bin/bash
# The module in a private server: `make demo-redis` runs it; each step shows its command.
set -eu
build=${TAMIS_BUILD:-$(cd "$(dirname "$0")/.." && pwd)/build/release}
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; wait; rm -rf "$work"' EXIT
cd "$work"

redis-server --port 0 --unixsocket "$work/s" --save '' --loadmodule "$build/tamis.so" >log &
server=$!
for _ in $(seq 100); do
    [ -S s ] && redis-cli -s s ping >/dev/null 2>&1 && break
    sleep 0.05
done

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
run() {
    printf '  > %s\n' "$*"
    redis-cli -s s --no-raw "$@" | sed 's/^/    /'
}

say "1. A filter for 1000 items, wrong for at most 1 stranger in 100, however far it grows"
run TAMIS.RESERVE visitors 0.01 1000
run TAMIS.MADD visitors ann bob ann
run TAMIS.MEXISTS visitors ann zoe
seq 100000 | xargs -n 2000 redis-cli -s s TAMIS.MADD visitors >/dev/null
wrong=$(seq -f 'made-up-%.0f' 100000 | xargs -n 2000 redis-cli -s s TAMIS.MEXISTS visitors | grep -c '^1$')
printf '    with 100 times its capacity: of 100000 made-up items it takes %s for real\n' "$wrong"

say "2. BF commands, for clients that know no others"
run BF.INSERT friends CAPACITY 100 ERROR 0.001 ITEMS ann bob
run BF.INFO friends ITEMS

say "3. Items can be removed"
run TAMIS.RESERVE online 0.001 1000 DELETABLE
run TAMIS.MADD online ann bob
run TAMIS.DEL online ann
run TAMIS.MEXISTS online ann bob

say "4. Filters can be united"
run TAMIS.MADD monday ann
run TAMIS.MADD tuesday bob
run TAMIS.MERGE week 2 monday tuesday
run TAMIS.MEXISTS week ann bob zoe

say "5. Records: which values occur together"
run TAMIS.XRESERVE log 0.01 10000 ATTRIBUTES 2 ip user
run TAMIS.XADD log ip=10.1.2.3 user=ann
run TAMIS.XADD log ip=10.9.9.9 user=bob
run TAMIS.XQUERY log ip=10.1.2.3 user=ann
run TAMIS.XQUERY log ip=10.1.2.3 user=bob

say "6. A file of the command line becomes a key"
printf 'red\ngreen\n' >colours
"$build/tamis" create colours.tamis && "$build/tamis" add colours.tamis <colours
printf '  > redis-cli -x TAMIS.LOAD colours 0 < colours.tamis\n'
tail -c +1 colours.tamis | redis-cli -s s -x TAMIS.LOAD colours 0 | sed 's/^/    /'
run TAMIS.MEXISTS colours red blue

say "7. What there is to know"
run TAMIS.INFO visitors

say "Next: docs/redis.md"
