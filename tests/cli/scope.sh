#!/bin/bash
# What is in scope was searched, or status 2 says otherwise: edits, rotations, what is gone or odd.
. "$(dirname "$0")/common.sh"

# A file that was edited in the middle and appended to did not only grow.
(echo id; seq -f 'k%05g' 3000) >t.csv
tamis index -o t.tamis --attrs id t.csv
sed -i 's/^k01500$/kEDIT0/' t.csv
echo new >>t.csv
is edited-and-grown 0 kEDIT0 "" 'tamis find t.tamis id=kEDIT0'
is edited-away 1 "" "" 'tamis find t.tamis id=k01500'
is edited-and-updated 0 kEDIT0 "" 'tamis index --update t.tamis && tamis find t.tamis id=kEDIT0'
# The same of a large one, in place, at the same time of change, in each of its chunks.
(echo id; seq -f 'k%07g' 400000) >big.csv
tamis index --segment 300k -o big.tamis --attrs id big.csv
i=0
for n in 5 150000 399990; do
    i=$((i + 1))
    touch -r big.csv when
    printf 'kEDITED%d' $i | dd of=big.csv bs=1 seek=$((3 + 9 * (n - 1))) conv=notrunc 2>/dev/null
    printf 'more%s\n' $n >>big.csv
    touch -r when big.csv
    is "edited-$n" 0 kEDITED$i "" "tamis find big.tamis id=kEDITED$i"
    is "edited-$n-away" 1 "" "" "tamis find big.tamis id=$(printf 'k%07d' $n)"
    tamis index --update big.tamis
    is "edited-$n-updated" 0 $"kEDITED$i"$'\n'"more$n" "" "tamis find big.tamis id=more$n id=kEDITED$i"
done
# What only grew is hashed, and its tail is read; sums go on where they ended.
for i in 1 2 3; do
    size=$(stat -c %s big.csv)
    echo tail$i >>big.csv
    json "grown-$i" "tamis find big.tamis id=tail$i --explain --json" \
        "d['matches'] == d['grown'] == 1 and d['unindexed_bytes_read'] == 6 and d['bytes_hashed'] == $size"
    json "grown-$i-updated" 'tamis index --update big.tamis --json' 'd["grown"] == 1'
done
# A promise is believed: only inode and size are looked at. Another inode is hashed all the same.
tamis index --append-only 'big*' --segment 300k -o promised.tamis --attrs id big.csv
echo promised >>big.csv
json promised 'tamis find promised.tamis id=promised --explain --json' 'd["matches"] == d["grown"] == 1 and d["bytes_hashed"] == 0'
json promise-is-kept 'tamis index --update promised.tamis --json; echo again >>big.csv' 'd["grown"] == 1'
json promised-again 'tamis find promised.tamis id=again --explain --json' 'd["matches"] == d["grown"] == 1 and d["bytes_hashed"] == 0'
cp big.csv other && mv other big.csv
json promised-not-for-another-file 'tamis find promised.tamis id=again --explain --json' 'd["matches"] == d["grown"] == 1 and d["bytes_hashed"] > 3600000'

# Rotation by renaming, over and over, with and without an update: nothing is parsed again.
mkdir logs
for day in 1 2 3 4 5; do
    for n in 3 2 1; do [ ! -e logs/app.csv.$n ] || mv logs/app.csv.$n logs/app.csv.$((n + 1)); done
    [ ! -e logs/app.csv ] || mv logs/app.csv logs/app.csv.1
    (echo day,n; seq 2000 | sed "s/^/$day,/") >logs/app.csv
    [ $day -gt 1 ] || tamis index -o logs.tamis --attrs day,n logs
    [ $day -lt 2 ] || json "rotated-$day" "tamis find logs.tamis day=1 n=7 --explain --json" \
        "d['matches'] == 1 and d['new'] == 1 and d['renamed'] == $day - 1 and d['removed'] == d['changed'] == 0 and d['unindexed_bytes_read'] == $(stat -c %s logs/app.csv)"
    [ $day -lt 2 ] || json "rotated-$day-updated" "tamis index --update logs.tamis --json" \
        "d['new'] == d['read'] == 1 and d['renamed'] == $day - 1 and d['removed'] == d['changed'] == 0"
    is "rotated-$day-found" 0 "$day,7" "" "tamis find logs.tamis day=$day n=7"
done
# By copying and cutting, and by a move that makes another inode of it.
cp logs/app.csv logs/app.csv.9 && printf 'day,n\n6,1\n' >logs/app.csv
cp -p logs/app.csv.4 x && rm logs/app.csv.4 && mv x logs/app.csv.8
json copied 'tamis find logs.tamis n=8 --explain --json' 'd["matches"] == 5 and d["renamed"] == 2 and d["new"] == 1 and d["unindexed_bytes_read"] == 10'
json copied-updated 'tamis index --update logs.tamis --json' 'd["renamed"] == 2 and d["bytes_read"] == 4'
is copied-found 0 5 "" 'tamis find -c logs.tamis n=8'

# What is known of a file was read in a format, whatever it is called later.
mkdir called && printf 'k\tx\n1\t2\n' >called/a.csv
tamis index -o called.tamis --attrs 1 called
mv called/a.csv called/a && printf '"3"\t4\n' >>called/a
is called-otherwise 0 $'1\t2\n"3"\t4' "" 'tamis find called.tamis 1=3 1=1'
is called-otherwise-updated 0 $'1\t2\n"3"\t4' "" 'tamis index --update called.tamis && tamis find called.tamis 1=3 1=1'
# A folder that is gone, or empty as one that is not mounted: no "none", and no update empties it.
cp logs.tamis before
told='tamis find: not searched: logs and 7 more: No such file or directory: see tamis info --inputs logs.tamis'
mv logs away
is folder-gone 2 "" "${told/ 7 / 6 }" 'tamis find logs.tamis n==nosuch'
trouble folder-gone-updated 'No such file or directory: logs: what is known of its files stays; bring it back, or give --forget$' \
    'tamis index --update logs.tamis'
holds folder-gone-changes-nothing 'cmp logs.tamis before'
mkdir logs
trouble folder-empty-updated 'no file is left in it: logs: what is known of its files stays; bring it back, or give --forget$' \
    'tamis index --update logs.tamis'
holds folder-empty-changes-nothing 'cmp logs.tamis before'
is folder-empty 2 "" "tamis find: not searched: logs and 6 more: no file is left in it: see tamis info --inputs logs.tamis" 'tamis find logs.tamis n=1'
rmdir logs && mv away logs
is folder-back 0 5 "" 'tamis find -c logs.tamis n=8'
# Nor does what was passed over in such a folder change.
mkdir seen && printf 'k\n1\n' >seen/a.csv && : >seen/empty && printf '\0\1\0' >seen/b.bin
tamis index seen && cp seen.tamis before && mv seen away
trouble passed-gone 'No such file or directory: seen: what is known of its files stays; bring it back, or give --forget$' \
    'tamis index --update seen.tamis'
holds passed-gone-changes-nothing 'cmp seen.tamis before'
mv away seen
is passed-back 0 1 "" 'tamis find seen k=1'
# A catalog that was moved from its data.
mkdir -p far/off && cp logs.tamis far/off
is moved-away 2 "" 'tamis find: not searched: far/off/logs and 6 more: No such file or directory: see tamis info --inputs far/off/logs.tamis' \
    'tamis find far/off/logs.tamis n=1'

# An input that was named and is gone stays until it is forgotten; the others are updated.
printf 'k\n1\n' >one.csv && printf 'k\n2\n' >two.csv
tamis index -o named.tamis --attrs k one.csv two.csv
rm one.csv
echo 3 >>two.csv
for i in 1 2 3; do
    trouble "named-gone-$i" 'No such file or directory: one.csv: what is known of it stays; bring it back, or give --forget$' \
        'tamis index --update named.tamis'
done
told='tamis find: not searched: one.csv: No such file or directory: bring it back, or run tamis index --update named.tamis'
is named-gone-the-rest 2 3 "$told" 'tamis find named.tamis k=3'
is named-gone-none 2 "" "$told" 'tamis find named.tamis k==nosuch'
json others-are-updated 'tamis find named.tamis k=3 --explain --json --trust' 'd["matches"] == 1 and d["records"] == 3'
trouble forget-what 'not an input that was given: --forget none.csv: ' 'tamis index --update named.tamis --forget none.csv'
is forget 0 "" "" 'tamis index --update named.tamis --forget one.csv'
is forgotten 1 "" "" 'tamis find named.tamis k=1'
is forgotten-the-rest 0 3 "" 'tamis find named.tamis k=3'
is forgotten-for-good 0 "" "" 'tamis index --update named.tamis'
trouble forget-all 'no input is left: --forget: remove the catalog instead$' 'tamis index --update named.tamis --forget two.csv'
is forget-by-another-name 0 "3" "" 'cp two.csv three.csv; cp two.csv four.csv; tamis index -o n3.tamis --attrs k two.csv ./three.csv four.csv; for f in ./two.csv $PWD/three.csv; do tamis index --update n3.tamis --forget $f; done; tamis find n3.tamis k=3'
trouble forget-where 'no catalog to forget it: ' 'tamis index -o x.tamis --attrs k two.csv --forget two.csv'

# An input that became something else is not waited for, and links do not lead out of a folder.
mkdir odd && printf 'k\n1\n' >odd/a.csv && printf 'k\n22\n' >odd/b.csv
tamis index -o odd.tamis --attrs k odd two.csv
rm two.csv odd/a.csv && mkfifo two.csv odd/a.csv
is fifo 2 22 'tamis find: not searched: odd/a.csv and 1 more: removed since it was indexed: bring it back, or run tamis index --update odd.tamis' \
    'timeout 120 tamis find odd.tamis k=22 k=3'
trouble fifo-updated 'not a regular file: two.csv: what is known of it stays$' 'timeout 120 tamis index --update odd.tamis'
is fifo-trusted 2 "" "*" 'timeout 120 tamis find --trust odd.tamis k=3'
rm two.csv odd/a.csv && printf 'k\n2\n3\n' >two.csv
printf 'k\nsecret\n' >secret.csv && ln -s ../secret.csv odd/a.csv
tamis index --update odd.tamis 2>/dev/null
is link 1 "" "" 'tamis find odd.tamis k==secret'
rm odd/b.csv && ln -s ../secret.csv odd/b.csv
is link-in-place 2 "" "*" 'tamis find odd.tamis k==secret'
is link-in-place-trusted 2 "" "*" 'tamis find odd.tamis k=22 --trust'

# What is passed over is listed with the reason; what may have records is no part of a "none".
mkdir mixed mixed/.git mixed/old
printf 'k\n1\n' >mixed/a.csv
printf 'k,l\n1,2\n3,4\n' >mixed/table.txt
printf '\0\1\2\3\0\0\0' >mixed/image.bin
printf '7z\274\257\47\34aaaaaaaa' >mixed/b.csv.7z
printf '7z\274\257\47\34bbbbbbbb' >mixed/cr.csv
printf 'k\n9\n' >mixed/old/z.csv
printf 'k\n9\n' >mixed/.git/x.csv
ln -s a.csv mixed/link.csv
told='tamis index: not read: mixed/b.csv.7z: it is a 7z archive; 2 such in all, which tamis info --inputs lists: give --exclude or --skip-unknown'
is mixed 0 "" "$told" 'tamis index -o mixed.tamis --attrs k mixed'
told='tamis find: not searched: mixed/b.csv.7z and 1 more: a 7z archive: give --exclude or --skip-unknown to tamis index --update mixed.tamis'
is mixed-found 0 $'1\n1,2' "$told" 'tamis find mixed.tamis k=1'
is mixed-none 2 "" "$told" 'tamis find mixed.tamis k==nosuch'
is mixed-updated 0 "" "" 'cp mixed.tamis before; tamis index --update mixed.tamis; cmp mixed.tamis before'
cat >wanted <<'END'
state        format        records     unfit       bad  file
same         csv                 1         0         0  mixed/a.csv
not read     -                   -         -         -  mixed/b.csv.7z: a 7z archive
not read     -                   -         -         -  mixed/cr.csv: a 7z archive
passed over  -                   -         -         -  mixed/image.bin: binary data
same         csv                 1         0         0  mixed/old/z.csv
same         csv                 2         0         0  mixed/table.txt
out of scope -                   -         -         -  mixed/.git: hidden
out of scope -                   -         -         -  mixed/link.csv: a link
END
is info-inputs 0 "$(cat wanted)" "" 'tamis info --inputs mixed.tamis'
rm mixed/old/z.csv && echo 5 >>mixed/a.csv && printf 'k\n7\n' >mixed/n.csv && mv mixed/table.txt mixed/table && printf 'k\n1\n' >mixed/cr.csv
/usr/bin/python3 - <<'END' >wanted
import json
print(json.dumps([["mixed/a.csv", "grown", True, "csv"], ["mixed/b.csv.7z", "not read", False, None],
    ["mixed/cr.csv", "new", True, None], ["mixed/image.bin", "passed over", False, None],
    ["mixed/n.csv", "new", True, None], ["mixed/table", "same", True, "csv"], ["mixed/old/z.csv", "gone", False, "csv"],
    ["mixed/.git", "out of scope", False, None], ["mixed/link.csv", "out of scope", False, None]]))
END
holds info-inputs-json 'tamis info --inputs --json mixed.tamis | /usr/bin/python3 -c "
import json, sys
print(json.dumps([[d[\"file\"], d[\"state\"], d[\"searched\"], d.get(\"format\")] for d in map(json.loads, sys.stdin)]))" | cmp - wanted'
trouble info-inputs-of-a-filter 'not a catalog: f.tamis: only catalogs have inputs$' 'tamis create f.tamis; tamis info --inputs f.tamis'
# Rules are kept in the catalog, for find and for updates; they may come later.
tamis index --update mixed.tamis
is exclude 1 "" "" 'tamis index --update mixed.tamis --exclude "*.7z" && tamis find mixed.tamis k==nosuch'
is exclude-is-kept 1 "" "" 'cp mixed/b.csv.7z mixed/c.csv.7z; tamis find mixed.tamis k==nosuch'
mkdir mixed/deep && cp mixed/b.csv.7z mixed/deep/tar
is skip-unknown 1 "" "" 'tamis index --update mixed.tamis --skip-unknown && tamis find mixed.tamis k==nosuch'
is skip-unknown-is-kept 1 "" "" 'cp mixed/b.csv.7z mixed/deep/x; tamis find mixed.tamis k==nosuch'
is include 0 $'1\n5\n1\n7' "" 'tamis index -o in.tamis --attrs k --include "*.csv" --exclude "mixed/old*" mixed; mkdir -p mixed/old; printf "k\n1\n" >mixed/old/y.csv; cp mixed/old/y.csv mixed/why; tamis find in.tamis k=1 k=5 k=7'
is exclude-named-is-read 0 1 "" 'tamis index -o in.tamis --attrs k --exclude "*.csv" mixed/cr.csv; tamis find in.tamis k=1'
trouble all-excluded 'no inputs: mixed: no file in it can be read; ' 'tamis index -o no.tamis --attrs k --exclude "*" mixed'
# An input that turns into something that cannot be read had records.
mv mixed/image.bin mixed/n.csv
is turned-binary 2 "" 'tamis find: not searched: mixed/n.csv: binary data: give --exclude or --skip-unknown to tamis index --update t2.tamis' \
    'mkdir m2; printf "k\n1\n" >m2/a.csv; tamis index -o t2.tamis --attrs k m2; cp mixed/n.csv m2/a.csv; tamis find t2.tamis k=1 2>told; s=$?; sed "s,m2/a,mixed/n," told >&2; (exit $s)'
# A log that was emptied, as logrotate's copytruncate does it, has no record, and later new ones.
mkdir m3; for i in a b; do printf 'May  1 10:00:00 host app: old %s\n' $i >m3/$i.log; done
tamis index m3
cp m3/a.log m3/a.log.1 && : >m3/a.log
is emptied-after-a-copy 0 'm3/a.log.1:May  1 10:00:00 host app: old a' "" 'tamis find m3 -H "old a"'
is emptied 1 "" "" 'rm m3/a.log.1; tamis find m3 "old a"'
is emptied-updated 1 "" "" 'tamis index --update m3.tamis && tamis find m3 "old a"'
is emptied-and-written 0 'May  1 11:00:00 host app: new a' "" 'echo "May  1 11:00:00 host app: new a" >m3/a.log; tamis find m3 "new a"'
is emptied-and-all-gone 1 "" "" ': >m3/a.log; : >m3/b.log; tamis find m3 old'
finish
