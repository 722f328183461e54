#!/bin/bash
# tamis fold: half the bits, the same keys.
. "$(dirname "$0")/common.sh"

tamis create a.tamis --growth fixed --bits 1Mi --hashes 6 --capacity 100k
seq 20000 | tamis add a.tamis
bits=$(tamis info --json a.tamis | sed 's/.*"bits": \([0-9]*\).*/\1/')
is quiet 0 "" "" 'tamis fold a.tamis'
json halves 'tamis info --json a.tamis' "d['bits'] * 2 == $bits and d['fpp_now'] <= d['fpp'] < 0.01"
is keeps-keys 0 20000 "" 'seq 20000 | tamis check -c a.tamis'
json json 'tamis fold --json a.tamis' "d['bits'] * 4 == $bits"
cp a.tamis before
trouble too-full 'more than half full: a.tamis: allow a new rate with --restate$' 'tamis fold a.tamis'
holds too-full-changes-nothing 'cmp a.tamis before'
json restate 'tamis fold --restate --json a.tamis' "d['bits'] * 8 == $bits and d['fpp'] > 0.008"
is restated-keeps-keys 0 20000 "" 'seq 20000 | tamis check -c a.tamis'
tamis create d.tamis --deletable --growth fixed --bits 16Ki --hashes 6 --capacity 1000
seq 100 | tamis add d.tamis
is deletable 0 "" "" 'tamis fold d.tamis && seq 100 | tamis remove d.tamis'
json deletable-empties 'tamis info --json d.tamis' 'd["items"] == 0 and d["fill"] == 0'
tamis create odd.tamis --growth fixed --layout spread --bits 1000 --hashes 6 --capacity 50
trouble odd-size 'its size cannot be halved: 1000 bits are not a multiple of 16: odd.tamis: make one of 2\^n bits with create --bits$' 'tamis fold odd.tamis'
for layout in spread blocked; do # sizes that tamis chooses can be halved three times
	for capacity in 10007 123457 4000037; do
		rm -f own.tamis
		tamis create own.tamis --growth fixed --layout $layout --capacity $capacity
		is own-size-$layout-$capacity 0 "" "" \
			'echo x | tamis add own.tamis && tamis fold own.tamis && tamis fold own.tamis && tamis fold own.tamis'
	done
done
trouble no-file 'a file is missing: tamis fold FILE: ' 'tamis fold'
trouble missing 'No such file or directory: nosuch: ' 'tamis fold nosuch'
finish
