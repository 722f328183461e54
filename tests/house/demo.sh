#!/bin/bash
# The demonstration runs on this machine, whatever logs it has, and what it says is so.
. "$(dirname "$0")/common.sh"

demo() { "$TAMIS_ROOT/examples/demo.sh" </dev/null >out 2>err && [ ! -s err ]; }
all_steps() { [ "$(grep -c '^.\[1m[1-6]\. ' out)" = 6 ]; }
every_command_prints() { # but the one that makes the catalog, which has nothing to say
    awk '/^  \$ / { if (last && !n) print last; last = /tamis index/ ? "" : $0; n = 0; next } /^    ./ { n++ }
         END { if (last && !n) print last }' out >silent
    [ ! -s silent ] || { cat silent; return 1; }
}
no_complaint() { # remarks about what is in the logs of this machine are none
    ! grep '^    tamis [a-z]*: ' out | grep -v 'left out because\|not searched\|not read\|bad record\|not verified\|skipped'
}
next_to_nothing_is_read() {
    [ "$(sed -n 's/^ *bytes of files read *\([0-9]*\).*/\1/p' out)" = 0 ] &&
        [ "$(sed -n 's/^ *bytes hashed to prove what is known *\([0-9]*\).*/\1/p' out)" = 0 ]
}

check runs demo
check all-steps all_steps
check every-command-prints every_command_prints
check no-complaint no_complaint
check next-to-nothing-is-read next_to_nothing_is_read
exit $failed
