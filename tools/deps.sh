#!/bin/bash
# Installs the Debian packages that tamis needs and that are missing; says which.
#
#   tools/deps.sh [-n] GROUP...     groups: build check bench lab browser all; -n only tells
#
# When nothing is missing it returns at once (one dpkg-query, no network, no root).
set -u

build="gcc g++ make pkg-config libxxhash-dev libsodium-dev libisal-dev libzstd-dev
       libbz2-dev liblzma-dev liblz4-dev libpcre2-dev libhiredis-dev libmicrohttpd-dev
       libcurl4-openssl-dev libssl-dev"
check="clang clang-format libclang-rt-dev cppcheck valgrind python3 python3-pytest python3-redis
       python3-hypothesis redis-server openssl dpkg-dev gnuplot-nox zlib1g-dev zstd bzip2
       xz-utils lz4"
bench="libbloom-dev librocksdb-dev zlib1g-dev redis-server zstd ripgrep sqlite3"
lab="python3"
browser="chromium fonts-dejavu-core"

say() { echo "deps: $*" >&2; }

die() {
    say "$*"
    exit 1
}

dry_run=
wanted=
for arg; do
    case $arg in
    -n) dry_run=1 ;;
    build | check | bench | lab | browser) wanted+=" ${!arg}" ;;
    all) wanted+=" $build $check $bench $lab $browser" ;;
    *) die "unknown group '$arg'; groups: build check bench lab browser all" ;;
    esac
done
[ -n "$wanted" ] || die "name a group: build check bench lab browser all"
wanted=$(printf '%s\n' $wanted | sort -u)

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "this is not a Debian system, so nothing was installed. Where Debian has these packages,"
    say "install your system's equivalents:" $wanted
    [ -n "${TAMIS_DEPS_OK:-}" ] && exit 0
    die "then run again with TAMIS_DEPS_OK=1 to skip this step"
fi

# The wanted packages that are not installed, one a line.
missing_packages() {
    local installed state='${db:Status-Status}'
    # Where pkgconf took pkg-config's place it provides that name.
    installed=$(dpkg-query -W -f="$state \${Package}\n$state \${Provides}\n" $wanted pkgconf \
        2>/dev/null | sed -n 's/^installed //p' | tr ', ' '\n\n')
    printf '%s\n' $wanted | grep -vxF -f <(printf '%s\n' "$installed" | grep .)
}

missing=$(missing_packages)
[ -n "$missing" ] || exit 0
say "missing:" $missing
[ -z "$dry_run" ] || exit 1

as_root=
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "not root and no sudo; as root run: apt-get install" $missing
    as_root=sudo
fi

# Debian starts a server when its package is installed. The tests start their own on free ports,
# so the system's stays down: RUNLEVEL=1 tells the init scripts, the mask tells systemd.
hold_redis=
if [ -d /run/systemd/system ] && grep -qx redis-server <<<"$missing"; then
    hold_redis=1
    $as_root systemctl --quiet --runtime mask redis-server.service 2>/dev/null
fi

release_redis() {
    [ -n "$hold_redis" ] || return 0
    $as_root systemctl --quiet --runtime unmask redis-server.service 2>/dev/null
    $as_root systemctl --quiet disable redis-server.service 2>/dev/null
    hold_redis=
}

log=$(mktemp)
trap 'release_redis; rm -f "$log"' EXIT

apt() {
    $as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 LC_ALL=C \
        apt-get -qq -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=2 "$@" \
        >>"$log" 2>&1 </dev/null
}

say "installing with apt-get"
apt update || say "apt-get update failed (offline?); trying with the package lists at hand"
apt install --no-install-recommends $missing
status=$?

# What counts is what is there: a service that would not start is no reason to stop.
missing=$(missing_packages)
if [ "$missing" = redis-server ] && command -v redis-server >/dev/null; then
    say "redis-server is installed but its service did not start; the tests start their own"
    missing=
fi
if [ -n "$missing" ]; then
    cat "$log" >&2
    say "apt-get ended with status $status; still missing:" $missing
    die "check the network and the package sources, then run: apt-get install" $missing
fi
say "done"
