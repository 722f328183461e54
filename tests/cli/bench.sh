#!/bin/bash
# tamis bench: figures that are there and make sense; how fast is for quiet machines to say.
. "$(dirname "$0")/common.sh"

json figures 'tamis bench --items 20k --json' '
    d["items"] == 20000 and d["fpp"] == 0.01 and
    all(d[k][w] > 0 for k in ("fixed", "growing", "scalable", "deletable")
        for w in ("lookup_many_ns", "lookup_ns", "add_many_ns", "add_ns", "lookup_many_floors")) and
    d["fixed"]["floor_ns"] > 0 and d["fixed"]["hash_ns"] > 0 and d["fixed"]["threads_speedup"] > 0 and
    all(d[k]["lookup_many_fixed"] > 0 for k in ("growing", "scalable", "deletable")) and
    d["fixed"]["vectors"] == 1 and d["scalable"]["vectors"] == 3 and d["growing"]["vectors"] == 0 and
    0 < d["growing"]["rate"] < 0.01 and 20 < d["growing"]["bits_per_item"] < 31 and
    9.5 < d["fixed"]["bits_per_item"] < 11 and d["fixed"]["bits_per_item"] < d["scalable"]["bits_per_item"] and
    0.005 < d["fixed"]["rate"] < 0.0115 and 0 < d["scalable"]["rate"] < 0.01'
json rate 'tamis bench --items 1000 --fpp 0.1% --json' 'd["fpp"] == 0.001 and d["fixed"]["rate"] < 0.0015'
holds text 'tamis bench --items 1000 | grep -q "lookup in batches, ns  *[0-9]"'
trouble no-items "wrong value '0': --items: give 1 or more" 'tamis bench --items 0'
trouble no-words 'unexpected word: x: tamis bench takes options only' 'tamis bench x'
finish
