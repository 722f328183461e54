#!/bin/bash
# The bar: on a terminal and for long work only, on standard error only.
. "$(dirname "$0")/common.sh"

tamis create a.tamis
slow() { for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.25; done; }
is none-in-a-pipe 0 "" "" 'slow | tamis add a.tamis'

# terminal COMMAND: runs it with standard error on a terminal, prints what appears there.
terminal() { "$TAMIS_ROOT/tests/support/terminal.py" --errors shown.out bash -c "$1"; }
export -f slow
export TERM=xterm
terminal 'slow | tamis add a.tamis' >shown
holds shown-on-a-terminal 'grep -qE "[0-9]+ B  .*B/s" shown'
holds taken-off-at-the-end '[ "$(tail -c 4 shown | od -An -c | tr -d " \n")" = "\\r033[K" ]'
# On a busy machine this may last a second, but not every time.
await "terminal 'seq 1000 | tamis add a.tamis' >shown; [ ! -s shown ]"
holds not-for-short-work '[ ! -s shown ]'
terminal 'slow | TERM=dumb tamis add a.tamis' >shown
holds not-on-one-that-cannot-erase '[ ! -s shown ]'
seq 8 >eight
terminal 'slow | tamis check a.tamis' >shown
holds results-are-clean 'cmp shown.out eight'
# A plain file tells its size: share and time left.
yes 7 | head -c 2000000 >sevens
terminal 'tamis check a.tamis <sevens | (for i in 1 2 3 4 5 6 7; do sleep 0.3; head -c 200000 >/dev/null; done; cat >/dev/null)' >shown
holds size-known 'grep -qE "\[#* *\] +[0-9]+%  .* of 1.9 MiB  .*/s  [0-9]+s left" shown'
finish
