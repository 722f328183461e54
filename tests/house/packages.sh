#!/bin/bash
# The Debian packages: every installed file is in one of them, each names what it needs, and together, unpacked,
# they work.
. "$(dirname "$0")/common.sh"
command -v dpkg-shlibdeps >/dev/null || { echo "skip packages: no dpkg-dev"; exit 0; }
debs=$(env -u MAKEFLAGS make -s -C "$TAMIS_ROOT" --no-print-directory deb) || { echo "not ok make-deb: $debs"; exit 1; }

of() { printf '%s\n' $debs | grep "/$1_"; }
unpack() { for deb in $debs; do dpkg-deb -x "$deb" root || return 1; done; }
names() { [ "$(printf '%s\n' $debs | sed 's!.*/!!; s!_.*!!' | sort | tr '\n' ' ')" = \
    "libtamis-carrier-dev libtamis-carrier0 libtamis-dev libtamis0 tamis tamis-redis " ]; }
needs() { dpkg-deb -f "$(of "$1")" Depends | grep -q "$2"; }
does_not_need() { ! dpkg-deb -f "$(of "$1")" Depends | grep -q "$2"; }

program() {
    root/usr/bin/tamis create a.tamis && root/usr/bin/tamis add a.tamis ann &&
        [ "$(root/usr/bin/tamis check a.tamis ann bob)" = ann ]
}

follower() { # against the unpacked headers and libraries alone
    local lib
    lib=$(echo root/usr/lib/*-*)
    printf '%s\n' '#include <tamis/carrier.h>' 'int main(void)' \
        '{ tamis_following *f; return tamis_following_new(&f, "x", 0, 0, 0) != TAMIS_EARG; }' >follow.c
    cc -Iroot/usr/include follow.c -o follow -L"$lib" -ltamis-carrier -ltamis &&
        LD_LIBRARY_PATH=$lib ./follow
}

units() { diff <(cd "$TAMIS_ROOT/packaging" && ls -d *@.*) <(cd root/usr/share/doc/tamis/examples && ls -d *@.*); }

check names names
check unpack unpack
check filters-need-no-server does_not_need libtamis0 hiredis
check filters-need-sodium needs libtamis0 libsodium
check carriers-need-hiredis needs libtamis-carrier0 libhiredis
check carriers-need-the-library needs libtamis-carrier0 'libtamis0 (= '
check carrier-headers-need-the-others needs libtamis-carrier-dev 'libtamis-dev (= '
check program program
check units units
check follower follower
exit $failed
