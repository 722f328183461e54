#!/bin/bash
# Files that cannot be: each one clear line, status 2, nothing changed.
. "$(dirname "$0")/common.sh"

tamis create a.tamis --fpp 1e-6
tamis add a.tamis x
cp a.tamis before
mkdir folder

for verb in add remove check info verify fold clear; do
    trouble "$verb-missing" 'No such file or directory: nosuch.tamis: ' "tamis $verb nosuch.tamis </dev/null"
    told='Is a directory: folder: give the name of a file$'
    [ $verb != info ] || told='no catalog: folder.tamis: make it with tamis index folder$' # it may stand for one
    trouble "$verb-folder" "$told" "tamis $verb folder </dev/null"
    echo "hello, I am no filter, and longer than any header would need to be" >text
    trouble "$verb-text" '.*not a tamis structure.*: text: ' "tamis $verb text </dev/null"
    : >empty
    trouble "$verb-empty" '.*: empty' "tamis $verb empty </dev/null"
done
trouble create-in-missing-folder 'No such file or directory: no/a.tamis: check the name and its folder$' \
    'tamis create no/a.tamis'
trouble create-like-missing 'No such file or directory: nosuch.tamis: check the name and its folder$' \
    'tamis create b.tamis --like nosuch.tamis'
trouble lock-in-the-way 'Is a directory: c.tamis.lock: remove it if no other tamis is running$' \
    'mkdir c.tamis.lock; tamis create c.tamis'
rmdir c.tamis.lock
trouble create-over-folder 'the file exists: folder: ' 'tamis create folder'
trouble create-over-folder-by-force 'Is a directory: folder: ' 'tamis create -f folder'
trouble a-file-for-a-folder 'Not a directory: text/a.tamis: ' 'tamis create text/a.tamis'
trouble long-name 'File name too long: ' "tamis create $(printf '%0300d' 0)"
printf 'ip\n1\n' >few.csv
tamis index -o few.tamis --attrs ip few.csv
trouble check-a-catalog 'this is a catalog, not a filter: few.tamis, byte 12: catalogs are for tamis find, ' 'tamis check few.tamis ip=1'
trouble find-in-a-filter 'this is a filter, not a catalog: a.tamis, byte 12: .* for tamis check$' 'tamis find a.tamis ip=1'
trouble fold-a-catalog 'this is a catalog, not a filter: few.tamis, byte 12: see tamis help fold$' 'tamis fold few.tamis'
trouble check-a-patch '.*: patch' 'cp a.tamis b.tamis; tamis add b.tamis y; tamis diff a.tamis b.tamis >patch; tamis check patch x'
holds folder-left-alone '[ -d folder ] && [ -z "$(ls -A folder)" ]'

# A newer format: the version stands after the magic, and the header is under a checksum, so any
# change is noticed; that it is named as a version is what docs/format.md says of the field.
/usr/bin/python3 - <<'END'
data = bytearray(open("a.tamis", "rb").read())

for i in range(4, 16):
    if data[i] == 2 and bytes(data[i + 1:i + 4]) == b"\0\0\0":
        data[i] = 99
        break
open("future.tamis", "wb").write(data)
END
trouble future-version '.*version 99.*: future.tamis.*: get a newer tamis$' 'tamis check future.tamis x'
trouble verify-future-version '.*: future.tamis.*: get a newer tamis$' 'tamis verify future.tamis'

# A folder where nothing may be written, as a user that may not write everywhere.
if as_user "$(command -v tamis)" version >/dev/null 2>&1; then
    mkdir closed
    cp a.tamis closed/
    chmod 755 . closed 2>/dev/null
    chmod 644 closed/a.tamis
    [ "$(id -u)" = 0 ] || chmod 555 closed
    trouble read-only-add 'Permission denied: closed/a.tamis: check the permissions' \
        'as_user tamis add closed/a.tamis y'
    trouble read-only-create 'Permission denied: closed/b.tamis: check the permissions' \
        'as_user tamis create closed/b.tamis'
    trouble read-only-clear 'Permission denied: closed/a.tamis: ' 'as_user tamis clear closed/a.tamis'
    is read-only-check 0 x "" 'as_user tamis check closed/a.tamis x'
    holds read-only-unchanged 'cmp closed/a.tamis before && [ "$(ls -A closed)" = a.tamis ]'
    chmod 000 closed/a.tamis
    trouble unreadable 'Permission denied: closed/a.tamis: ' 'as_user tamis check closed/a.tamis x'
    chmod 755 closed
else
    echo "skip read-only folder: no other user may run the program"
fi

# A filter that is cut short while it is asked: an error, told in a line, not the end by a signal.
tamis create large.tamis --growth fixed --capacity 2M
mkfifo keys
trouble cut-while-asked 'cut short while it was read: large.tamis: run again; replace files by renaming, not in place$' \
    '(seq 10; until [ -e cut ]; do sleep 0.05; done; seq 200000) >keys & feeder=$!
     tamis check -v large.tamis <keys >answers & asker=$!
     until [ -s answers ]; do sleep 0.05; done
     truncate -s 4096 large.tamis; : >cut; wait $asker; s=$?; wait $feeder; (exit $s)'

# A full disk.
mkdir small
if mount -t tmpfs -o size=64k tmpfs small 2>/dev/null; then
    tamis create small/a.tamis
    tamis add small/a.tamis x
    cp small/a.tamis before-small
    trouble full-disk-create 'No space left on device: small/b.tamis: make room' \
        'tamis create small/b.tamis --growth fixed --capacity 1M'
    trouble full-disk-add 'No space left on device: small/a.tamis: make room and run again; nothing was changed$' \
        'seq 300000 | tamis add small/a.tamis'
    trouble full-disk-merge 'No space left on device: small/b.tamis: ' \
        'tamis create big.tamis --like small/a.tamis; seq 300000 | tamis add big.tamis;
         tamis merge -o small/b.tamis small/a.tamis big.tamis'
    (echo ip; seq 300000) >many.csv
    tamis index -o small/c.tamis --attrs ip few.csv
    cp small/c.tamis before-catalog
    trouble full-disk-update 'No space left on device: small/c.tamis: make room and run again; nothing was changed$' \
        'tamis index --update small/c.tamis many.csv'
    holds full-disk-catalog 'cmp small/c.tamis before-catalog && rm small/c.tamis'
    holds full-disk-publish 'cp small/a.tamis small/p.tamis; seq 300000 | sed s/^/+/ |
        tamis publish small/p.tamis --to file:small/x --as p --linger 100ms >told 2>&1; [ $? = 2 ] &&
        [ $(grep -c "No space left on device: small/p.tamis.changes: " told) = 1 ] && ! grep -q "is saved" told; s=$?; rm -r small/x small/p.tamis small/p.tamis.changes; [ $s = 0 ]'
    holds full-disk-unchanged 'cmp small/a.tamis before-small && [ "$(ls -A small)" = a.tamis ]'
    is full-disk-still-answers 0 x "" 'tamis check small/a.tamis x'
    umount small
else
    echo "skip full disk: mounting is not allowed here"
fi
holds nothing-changed 'cmp a.tamis before'
finish
