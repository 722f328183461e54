#!/bin/bash
# Makes Debian packages of a staged installation, as packaging/packages says. Called by make deb.
#
#   packaging/deb.sh STAGE LIBDIR VERSION OUT
set -euo pipefail
stage=$1 libdir=$2 version=$3-1 out=$4
arch=$(dpkg --print-architecture)
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out" "$work/debian"
stage=$(cd "$stage" && pwd)
out=$(cd "$out" && pwd)
printf 'Source: tamis\n\nPackage: tamis\nArchitecture: any\n' >"$work/debian/control"

die() {
    echo "deb: $*" >&2
    exit 1
}

binaries() { find "$1" -type f \( -name '*.so' -o -name '*.so.[0-9]*' -o -path '*/bin/*' \); }

# The packages of the libraries that the programs and libraries of a folder are linked with.
needs() {
    local files
    files=$(binaries "$1")
    [ -n "$files" ] || return 0
    (cd "$work" && dpkg-shlibdeps -O --ignore-missing-info -l"$work/libtamis0$libdir" $files 2>errors) |
        sed 's/^shlibs:Depends=//' || die "$(cat "$work/errors")"
}

name=
finish() {
    [ -n "$name" ] || return 0
    local root=$work/$name libraries all
    binaries "$root" | xargs -r strip --strip-unneeded
    find "$root" -type f -name '*.a' -exec strip --strip-debug {} +
    libraries=$(needs "$root")
    all=$(printf '%s\n%s\n' "$depends" "$libraries" | sed '/^$/d' | paste -sd, | sed 's/,\([^ ]\)/, \1/g')
    mkdir -p "$root/DEBIAN"
    {
        printf 'Package: %s\nVersion: %s\nArchitecture: %s\nMulti-Arch: same\n' "$name" "$version" "$arch"
        printf 'Maintainer: tamis maintainers <maintainers@localhost>\nSection: libs\nPriority: optional\n'
        [ -z "$all" ] || printf 'Depends: %s\n' "$all"
        [ -z "$recommends" ] || printf 'Recommends: %s\n' "$recommends"
        [ -z "$suggests" ] || printf 'Suggests: %s\n' "$suggests"
        printf 'Installed-Size: %s\nDescription: %s\n' "$(du -ks "$root" | cut -f1)" "$text"
    } >"$root/DEBIAN/control"
    case $name in tamis | tamis-redis) sed -i '/^Multi-Arch/d; s/^Section: libs/Section: utils/' "$root/DEBIAN/control" ;; esac
    case $name in lib*-dev) sed -i 's/^Section: libs/Section: libdevel/' "$root/DEBIAN/control" ;; esac
    case $name in lib*0) echo activate-noawait ldconfig >"$root/DEBIAN/triggers" ;; esac
    dpkg-deb --root-owner-group -Zxz --build "$root" "$out/${name}_${version}_$arch.deb" >/dev/null
    echo "$out/${name}_${version}_$arch.deb"
}

take() { # a pattern of files of the stage, which go to the package
    local from n=0
    for from in "$stage"$1; do
        [ -e "$from" ] || [ -L "$from" ] || continue
        install -d "$work/$name$(dirname "${from#"$stage"}")"
        mv "$from" "$work/$name${from#"$stage"}"
        n=$((n + 1))
    done
    [ $n -gt 0 ] || die "$1: nothing of this name was installed"
}

while read -r what value; do
    value=${value//LIBDIR/$libdir}
    value=${value//VERSION/$version}
    case $what in
    '' | '#'*) ;;
    package)
        finish
        name=$value depends='' recommends='' suggests='' text=''
        mkdir -p "$work/$name"
        ;;
    depends | recommends | suggests | text) printf -v "$what" %s "$value" ;;
    file) take "$value" ;;
    *) die "$what: not understood in packaging/packages" ;;
    esac
done <"$here/packages"
finish
left=$(find "$stage" ! -type d)
[ -z "$left" ] || die "in no package:" $left
