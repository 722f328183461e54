# What the scripts of this folder share; source it first. The program is "tamis" in the PATH.
failed=0

pass() { echo "ok $1"; }

flunk() { # flunk NAME WHY
    echo "not ok $1: $2"
    failed=1
}

# is NAME STATUS OUT ERR COMMAND: the command, run by this shell, ends with STATUS and prints exactly
# OUT and ERR (a final newline is taken for granted; empty: nothing at all). ERR "*": anything.
is() {
    local name=$1 status=$2 out=$3 err=$4 got
    eval "$5" >.out 2>.err
    got=$?
    if [ "$got" != "$status" ]; then
        flunk "$name" "status $got, not $status; $(head -c 300 .err | tr '\n' ' ')"
    elif ! cmp -s .out <([ -z "$out" ] || printf '%s\n' "$out"); then
        flunk "$name" "printed '$(head -c 300 .out)', not '$out'"
    elif [ "$err" != "*" ] && ! cmp -s .err <([ -z "$err" ] || printf '%s\n' "$err"); then
        flunk "$name" "complained '$(head -c 300 .err)', not '$err'"
    else
        pass "$name"
    fi
}

# trouble NAME PATTERN COMMAND: status 2, nothing on standard output, one line "tamis …: PATTERN…" on
# standard error.
trouble() {
    local name=$1 pattern=$2 got lines
    eval "$3" >.out 2>.err
    got=$?
    lines=$(wc -l <.err)
    if [ "$got" != 2 ]; then
        flunk "$name" "status $got, not 2"
    elif [ -s .out ]; then
        flunk "$name" "printed '$(head -c 300 .out)'"
    elif [ "$lines" != 1 ]; then
        flunk "$name" "$lines lines of complaint: $(head -c 300 .err | tr '\n' ' ')"
    elif ! grep -qE "^tamis( [a-z]+)?: $pattern" .err; then
        flunk "$name" "complained '$(head -c 300 .err)'"
    else
        pass "$name"
    fi
}

# holds NAME COMMAND: the command succeeds.
holds() {
    if eval "$2" >.out 2>.err; then
        pass "$1"
    else
        flunk "$1" "$(cat .out .err | head -c 300 | tr '\n' ' ')"
    fi
}

# json NAME COMMAND [EXPRESSION]: prints valid JSON; with it as `d`, the Python expression is true.
json() {
    local name=$1
    if ! eval "$2" >.out 2>.err; then
        flunk "$name" "$(head -c 300 .err)"
    elif ! /usr/bin/python3 -m json.tool .out >/dev/null 2>.err; then
        flunk "$name" "no JSON: $(head -c 300 .out)"
    elif [ -n "${3:-}" ] && ! /usr/bin/python3 -c "
import json, math, sys
d = json.load(open('.out'))
sys.exit(0 if ($3) else 1)" 2>.err; then
        flunk "$name" "not so: $3: $(head -c 300 .out) $(tail -1 .err)"
    else
        pass "$name"
    fi
}

# await COMMAND: returns once it succeeds; fails if in two minutes it did not.
await() {
    local end=$((SECONDS + 120))
    until eval "$1"; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.05
    done
}

# as_user COMMAND: by a user that may not read and write everything.
as_user() { if [ "$(id -u)" = 0 ]; then setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; else "$@"; fi; }

finish() { exit $failed; }
