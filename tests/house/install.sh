#!/bin/bash
# What "make install" puts in place is enough to build a program with, shows only what it should,
# and goes away again.
. "$(dirname "$0")/common.sh"
stage=$PWD/stage
make_in_root() { env -u MAKEFLAGS make -s -C "$TAMIS_ROOT" --no-print-directory "$@"; }

cat > user.c <<'EOF'
#include <tamis.h>
#include <tamis/catalog.h>
#include <tamis/plan.h>
#include <tamis/records.h>
#include <tamis/replica.h>
int main(void)
{
    return 0;
}
EOF

# As a distribution would: staged, in /usr, with a library folder of its own.
install_staged() {
    make_in_root install DESTDIR="$stage" PREFIX=/usr LIBDIR=/usr/lib/there
}

files_in_place() {
    local lib=$stage/usr/lib/there
    [ -f "$stage/usr/include/tamis.h" ] && [ -f "$stage/usr/include/tamis/catalog.h" ] && [ -f "$lib/libtamis.a" ] && [ -L "$lib/libtamis.so" ] &&
        [ -L "$lib/libtamis.so.0" ] && [ -f "$lib/libtamis.so.$(version)" ] &&
        readelf -d "$lib/libtamis.so" | grep -q 'SONAME.*\[libtamis\.so\.0\]'
}

export PKG_CONFIG_PATH=$stage/usr/lib/there/pkgconfig
flags() { PKG_CONFIG_SYSROOT_DIR=$stage pkg-config "$@" tamis; }
version() { pkg-config --modversion tamis; }

version_is_the_headers() { grep -qF "\"$(version)\"" "$stage/usr/include/tamis.h"; }

links_shared() {
    cc user.c -o user $(flags --cflags --libs) && LD_LIBRARY_PATH=$stage/usr/lib/there ./user
}

links_static() {
    cc -static user.c -o user-static $(flags --static --cflags --libs) && ./user-static
}

# The carriers are a library of their own, which brings what they need and no more.
cat > following.c <<'EOF'
#include <tamis/carrier.h>
int main(void)
{
    tamis_directory *d;
    tamis_following *f;
    if (tamis_directory_new(&d, 0, 0) != TAMIS_OK ||
        tamis_following_new(&f, "file:nowhere", d, 0, 0) != TAMIS_OK || tamis_following_start(f, 0) != TAMIS_OK)
        return 1;
    tamis_following_free(f);
    tamis_directory_free(d);
    return 0;
}
EOF

carrier_links_shared() {
    cc following.c -o following $(PKG_CONFIG_SYSROOT_DIR=$stage pkg-config --cflags --libs tamis-carrier) &&
        LD_LIBRARY_PATH=$stage/usr/lib/there ./following &&
        ! readelf -d "$stage/usr/lib/there/libtamis.so" | grep -q 'hiredis\|curl\|zstd'
}

carrier_links_its_own_archive() { # libtamis.a and libtamis-carrier.a: neither has a name of the other
    local lib=$stage/usr/lib/there
    cc -I"$stage/usr/include" following.c -o following-a "$lib/libtamis-carrier.a" "$lib/libtamis.a" \
        -lhiredis -lzstd -lsodium -lm -lpthread && ./following-a
}

only_carrier_symbols() {
    local others
    others=$(nm -D --defined-only "$stage/usr/lib/there/libtamis-carrier.so" | awk '{ print $3 }' |
        grep -v '^tamis_following_')
    [ -z "$others" ] || { echo "exports $others"; return 1; }
}

only_tamis_symbols() {
    local names others
    names=$(nm -D --defined-only "$stage/usr/lib/there/libtamis.so" | awk '{ print $3 }')
    [ -n "$names" ] || { echo "exports nothing"; return 1; }
    others=$(grep -v '^tamis_' <<< "$names")
    [ -z "$others" ] || { echo "exports $others"; return 1; }
}

# A program that links statically may use the names that the library has inside.
static_names_are_its_own() {
    local others
    others=$(nm -g --defined-only "$stage/usr/lib/there/libtamis.a" | awk 'NF == 3 { print $3 }' |
        grep -v '^tamis_')
    [ -z "$others" ] || { echo "defines $others"; return 1; }
    cat > clash.c <<'END'
#include <tamis.h>
int filter_append(void), vector_new(void), mem_new(void);
int filter_append(void) { return 1; }
int vector_new(void) { return 2; }
int mem_new(void) { return 3; }
int main(void)
{
    tamis_filter *filter;
    if (tamis_filter_new(&filter, 0, 0) != TAMIS_OK)
        return 1;
    tamis_filter_free(filter);
    return filter_append() + vector_new() + mem_new() != 6;
}
END
    cc -static clash.c -o clash $(flags --static --cflags --libs) && ./clash
}

# What a machine needs to keep a catalog up to date: the timer, the service that it starts, and the command in that.
units_in_place() {
    local unit there=$stage/usr/share/doc/tamis/examples
    for unit in "$TAMIS_ROOT"/packaging/*@.*; do
        cmp "$unit" "$there/${unit##*/}" || return 1
    done
    [ -f "$there/tamis-update@.timer" ] && [ -f "$there/tamis-update@.service" ] || return 1
    ! command -v systemd-analyze >/dev/null || systemd-analyze calendar "$(sed -n 's/^OnCalendar=//p' "$there/tamis-update@.timer")" >/dev/null ||
        return 1
    printf 'ip\n10.0.0.1\n' >hosts.csv && "$stage/usr/bin/tamis" index -o units.tamis --attrs ip hosts.csv || return 1
    eval "$(sed -n 's!^ExecStart=/usr/bin/env tamis !"$stage/usr/bin/tamis" !p' "$there/tamis-update@.service" | sed 's!%f!units.tamis!')"
}

leaves_nothing() {
    make_in_root uninstall DESTDIR="$stage" PREFIX=/usr LIBDIR=/usr/lib/there || return 1
    local left
    left=$(find "$stage" ! -type d)
    [ -z "$left" ] || { echo "left $left"; return 1; }
}

check installs install_staged
[ $failed = 0 ] || exit 1
check installed-files-in-place files_in_place
check installed-version-is-the-headers version_is_the_headers
check installed-links-shared links_shared
check installed-links-static links_static
check installed-exports-only-tamis only_tamis_symbols
check installed-carrier-links-shared carrier_links_shared
check installed-carrier-links-its-own-archive carrier_links_its_own_archive
check installed-carrier-exports-only-its-own only_carrier_symbols
check static-names-are-its-own static_names_are_its_own
check installed-units-in-place units_in_place
check uninstall-leaves-nothing leaves_nothing
exit $failed
