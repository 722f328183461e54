#!/bin/bash
# A minute with tamis, on this machine's own files. `make demo` runs it; each step shows its command.
set -eu
tamis=${TAMIS:-tamis}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
run() {
    printf '  $ %s\n' "$(echo "$*" | sed "s|$tamis|tamis|g")"
    bash -c "$*" | sed 's/^/    /'
}

say "Every file under /usr: a set of paths"
find /usr -xdev -type f 2>/dev/null >paths || true
printf '    %s paths, %s bytes as text\n' "$(wc -l <paths)" "$(stat -c %s paths)"

say "1. Into a filter, which grows as it must and is wrong for 1 key in 100"
run "$tamis create paths.tamis && $tamis add paths.tamis <paths"
run "$tamis info paths.tamis"

say "2. Is it here? No is a proof, yes is right 99 times in 100"
run "$tamis check paths.tamis /usr/bin/env /usr/bin/no-such-program || true"
seq -f '/usr/lib/made-up-%.0f' 100000 >madeup
printf '    of 100000 made-up paths it takes %s for real\n' "$($tamis check -c paths.tamis <madeup || true)"

say "3. Lines not seen before, in a pipe: the words of all copyright notices"
cat /usr/share/doc/*/copyright 2>/dev/null | tr -s '[:space:]' '\n' >words || true
printf '    %s words, distinct by sort -u: %s\n' "$(wc -l <words)" "$(sort -u words | wc -l)"
run "$tamis dedup <words | wc -l"

say "4. Sets that shrink: a deletable filter forgets what is removed"
run "$tamis create --deletable --capacity 1000 cache.tamis && seq 1000 | $tamis add cache.tamis"
run "seq 990 | $tamis remove cache.tamis && seq 1000 | $tamis check cache.tamis | tail -3"

say "5. Before deciding: what would a million keys take?"
run "$tamis plan fixed --items 1M --fpp 0.001"

say "Next: tamis help; tamis help add; man docs/man/tamis.1; make check; README.md"
