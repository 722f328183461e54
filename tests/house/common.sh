# Sourced by the scripts of this folder: check NAME COMMAND... says whether the command succeeds.
failed=0

check() { # check NAME COMMAND...
    local name=$1 output
    shift
    if output=$("$@" 2>&1); then
        echo "ok $name"
    else
        echo "not ok $name: ${output:-failed}"
        failed=1
    fi
}
