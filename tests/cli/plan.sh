#!/bin/bash
# tamis plan: every form, the figures that the papers and their corrections give, plots, mistakes.
. "$(dirname "$0")/common.sh"
near() { echo "abs($1 - ($2)) <= ${3:-5e-5} * abs($2)"; }

# fixed
json fixed-sizes 'tamis plan fixed --items 1M --fpp 0.01 --json' \
    'd["form"] == "fixed" and 9585000 < d["published"]["bits_best"] < 9586000 and
     d["published"]["bits_whole"] < d["spread"]["bits"] < d["blocked"]["bits"] < 1.1e7 and
     d["spread"]["rate"] <= 0.01 >= d["blocked"]["rate"]'
json fixed-rate 'tamis plan fixed --bits 1280 --hashes 7 --items 133 --json' \
    "$(near 'd["rate_exp"]' 0.009847) and $(near 'd["rate_discrete"]' 0.009866) and
     $(near 'd["rate_exact"]' 0.009914)"
json fixed-capacity 'tamis plan fixed --bits 1280 --hashes 7 --fpp 0.0098 --json' \
    "$(near 'd["capacity_best"]' 132.96) and d['capacity_whole'] == 132 and 132 < d['capacity_real'] < 133"
is fixed-text 0 'form                                        fixed
bits m                                      1280
hashes k                                    7
items n                                     133
rate, exp form (1-e^(-kn/m))^k              0.00984718
rate, discrete (1-(1-1/m)^(kn))^k           0.00986551
rate, exact occupancy                       0.00991396
rate, blocked layout (whole blocks of 512)  BLOCKED
bits per item                               9.62406' "" \
    'tamis plan fixed --bits 1280 --hashes 7 --items 133 | sed -E "s/(of 512\)  ).*/\1BLOCKED/"'
json full-precision 'tamis plan fixed --bits 1280 --hashes 7 --items 133 --json' \
    'd["rate_exp"] == (1 - math.exp(-7 * 133 / 1280)) ** 7 or abs(d["rate_exp"] / (1 - math.exp(-7 * 133 / 1280)) ** 7 - 1) < 1e-14'

# smooth: as the library grows, from one part to 16 and 256
for n in 2000 30000 200000; do
    tamis create "$n.tamis" --growth smooth && seq "$n" | tamis add "$n.tamis" && tamis info --json "$n.tamis" >"$n.json"
    json "smooth-$n" "tamis plan smooth --items $n --fpp 0.01 --json" \
        "0.93 < (json.load(open('$n.json'))['bytes'] - 700) * 8 / $n / d['bits_per_item'] < 1.09 and
         0.85 < json.load(open('$n.json'))['fpp_now'] / d['rate'] < 1.15 and d['rate'] <= 0.01"
done
json smooth 'tamis plan smooth --items 10M --fpp 0.01 --json' \
    'd["parts"] == 512 and d["width"] == 16 and 21 < d["bits_per_item"] < 24 and 0.005 < d["rate"] <= 0.01'
json smooth-large 'tamis plan smooth --items 100M --fpp 0.01 --json' \
    'd["width"] == 16 and 21 < d["bits_per_item"] < 24 and 0.005 < d["rate"] <= 0.01'
json smooth-strict 'tamis plan smooth --items 3M --fpp 0.0001 --json' '33 < d["bits_per_item"] < 40 and d["rate"] <= 1e-4'
trouble smooth-rate 'out of range: --items, --fpp: give ' 'tamis plan smooth --items 1M --fpp 0.00001'

# dynamic
dynamic='tamis plan dynamic --bits 1280 --hashes 7 --capacity 133 --items 1330'
json dynamic-rates "$dynamic --json" \
    "d['rows'] == 10 and $(near 'd["rate_3"]' 0.09422) and d['rate_3'] == d['bound_12'] and
     $(near 'd["size_ratio_13"]' 0.5817 1e-3) and $(near 'd["size_ratio_13_best"]' 0.5135 1e-3) and
     $(near 'd["present_expected"]' 59.44 1e-3) and $(near 'd["multi_bound"]' 113.33 1e-3) and
     $(near 'd["rate_14"]' 0.00984718) and $(near 'd["f2_10"]' 0.0852128) and
     $(near 'd["insert_ratio"]' 0.852128) and 'union' not in d"
json dynamic-union "$dynamic --union-items 500 --json" \
    'd["rate_3"] < d["union"]["rate_4"] < d["union"]["rate_or"] and d["union"]["gain_6"] > 0'
sizes='tamis plan dynamic --max-items 1330 --fpp 0.0098'
json dynamic-sizes-uniform "$sizes --sizes uniform --json" \
    '1 < d["vectors"] < 20 and 0.7 < d["ratio"] < 0.9 and d["capacity"] == -(-1330 // d["vectors"])'
for sizes_of in normal:665,100 zipf-min:0.9 zipf-max:0.9 zipf-random:0.9 zipf-random:0.9,7; do
    json "dynamic-sizes-$sizes_of" "$sizes --sizes $sizes_of --json" '0 < d["ratio"] <= 1'
done
seq 1330 >sizes.txt
json dynamic-sizes-file "$sizes --sizes sizes.txt --json" 'd["vectors"] > 1'
holds file-is-uniform "diff <($sizes --sizes sizes.txt | grep -v ^sizes) <($sizes --sizes uniform | grep -v ^sizes)"
printf '100 5\n1330 1\n' >weights.txt
json dynamic-sizes-weights "$sizes --sizes weights.txt --json" 'd["ratio"] < 0.5'
json dynamic-thresholds 'tamis plan dynamic --hashes 7 --items 133 --fpp 0.0098 --tolerate 0.02 --json' \
    "d['one_whole'] == 155 and d['rows'] == 2 and d['dynamic_whole'] == 341 and
     $(near 'd["dynamic_real"]' 341.554)"

# scalable, flexible
json scalable 'tamis plan scalable --bits 50000 --hashes 7 --fpp 0.01 --items 100k --json' \
    'd["report"]["n_layers"] == 5 == len(d["report"]["layers"]) and d["report"]["bits"] == 31 * 50000 and
     d["expansions"] == 4 and d["report"]["rate"] > 0.039 and
     all(d[x]["rate"] <= 0.01 for x in ("ours_spread", "ours_blocked", "ours_doubling")) and
     d["report"]["layers"][0]["capacity"] == 5213 and d["report_floor"]["layers"][0]["capacity"] == 5212'
json flexible 'tamis plan flexible --bits 1280 --capacity 133 --hashes 7 --items 10k --lambda 1,2,3 --json' \
    'd["bits_5"] == 101120 and d["vectors"] == 21 and d["load_min_6"] <= d["load"] <= d["load_tight"] <= d["load_max_6"]'
is flexible-rate 0 '{"form": "flexible", "rate_predicted": 900, "rate_base": 100, "lambda": 5, "factor": 16}' "" \
    'tamis plan flexible --rate 900 --base-rate 100 --json'
json flexible-rate-sized 'tamis plan flexible --rate 900 --base-rate 100 --bits 1280 --capacity 133 --hashes 7 --items 10k --json' \
    'd["lambda"] == 5 and d["vectors"] > 1'

# records, replica
json records 'tamis plan records --attributes 3 --hashes 6 --cells 1000 --items 500 --json' \
    "$(near 'd["attribute"]' '(1 - math.exp(-0.5)) ** 6' 1e-12) and
     $(near 'd["fresh"]["pbf"]' '(1 - math.exp(-0.5)) ** 18' 1e-12) and d['recombined']['pbf'] == 1 and
     d['verify']['mixed'] < 1e-15 and d['verify']['attenuated'] < d['verify']['basic'] and d['stored'] == 0"
json records-range 'tamis plan records --attributes 3 --hashes 6 --cells 1000 --items 500 --range 2000 --json' \
    "$(near 'd["stored"]' '1 - (1 - 1 / 2000) ** 500' 1e-9)"
replica='tamis plan replica --bits 1200 --hashes 6 --items 150 --delta1 0.05 --delta0 0.02'
json replica "$replica --hosts 5 --weights 1,0.5 --json" \
    'd["overall_13"] == d["positive_12"] + d["disagree_10"] and d["host_16"] < d["host_exclusive"] and
     abs(d["weighted_17"] - d["positive_12"] - d["disagree_10"] / 2) < 1e-15 and
     d["member_miss"] > d["disagree_10"] and d["update_bits"] > 0'
json replica-nothing-deleted 'tamis plan replica --bits 1200 --hashes 6 --items 150 --delta1 0.05 --delta0 0 --json' \
    "$(near 'd["overall_13"]' 'd["own"]' 1e-12)"

# plots
if command -v gnuplot >/dev/null; then
    while read -r name options; do
        holds "plot-$name" "tamis plan $options --plot '$name it.svg' && grep -q '<svg' '$name it.svg' &&
            [ \$(grep -c '<path' '$name it.svg') -gt 3 ]"
    done <<'END'
fixed-sizes fixed --items 1M --fpp 0.01
fixed-rate fixed --bits 1280 --hashes 7 --items 133
fixed-capacity fixed --bits 1280 --hashes 7 --fpp 0.0098
dynamic dynamic --bits 1280 --hashes 7 --capacity 133 --items 1330
sizes dynamic --max-items 1330 --fpp 0.0098 --sizes uniform
thresholds dynamic --hashes 7 --items 133 --fpp 0.0098 --tolerate 0.02
smooth smooth --items 1M --fpp 0.01
scalable scalable --bits 50000 --hashes 7 --fpp 0.01 --items 100k
flexible flexible --bits 1280 --capacity 133 --hashes 7 --items 10k --lambda 1,2,3
index records --attributes 3 --hashes 6 --cells 1000 --items 500
replica replica --bits 1200 --hashes 6 --items 150 --delta1 0.05 --delta0 0.02
END
    holds plots-leave-nothing-else '[ -z "$(ls -A | grep tmp)" ]'
else
    echo "skip plots: gnuplot is not installed"
fi
mkdir bin
ln -s "$(command -v tamis)" bin/tamis
is without-gnuplot 2 "x" "tamis plan: gnuplot is not installed: --plot: install it (gnuplot-nox), or use --json" \
    'PATH=$PWD/bin tamis plan fixed --items 10 --fpp 0.1 --plot g.svg >/dev/null; s=$?; echo x; (exit $s)'
holds without-gnuplot-no-file '[ ! -e g.svg ]'
json rate-next-to-1 'tamis plan fixed --items 1e12 --fpp 0.9999999999999999 --json' 'd["published"]["rate_whole"] <= 0.9999999999999999'
if command -v gnuplot >/dev/null; then
    is plot-cut-short 2 "x" "tamis plan: the plot is incomplete: cut.svg: make room and run again" \
        '(ulimit -f 4; tamis plan fixed --items 10 --fpp 0.1 --plot cut.svg >/dev/null; s=$?; echo x; exit $s)'
    holds plot-cut-short-leaves-nothing '[ ! -e cut.svg ] && [ -z "$(ls -A | grep tmp)" ]'
fi
# A plot takes the place of files alone: not of a pipe, a folder or, run by root, a device.
mkfifo pipe.svg
mkdir folder.svg
for place in pipe.svg folder.svg . ''; do
    trouble "plot-for-no-file-$place" "no(t a regular file: $place| name: --plot): give the name of a file\$" \
        "tamis plan fixed --items 10 --fpp 0.1 --plot '$place'"
done
holds plot-leaves-those-alone '[ -p pipe.svg ] && [ -d folder.svg ]'
is plot-nowhere 2 "x" "tamis plan: No such file or directory: no/g.svg: give the name of a writable file" \
    'tamis plan fixed --items 10 --fpp 0.1 --plot no/g.svg >/dev/null; s=$?; echo x; (exit $s)'

# mistakes
trouble no-form 'no form: tamis plan FORM: give smooth, fixed, ' 'tamis plan'
trouble unknown-form 'unknown form: square: give smooth, fixed, ' 'tamis plan square --items 3'
trouble missing-option 'missing option: --items: plan fixed needs it here; ' 'tamis plan fixed --fpp 0.1'
trouble extra-option 'option does not apply: --hosts: leave it out; ' 'tamis plan fixed --items 10 --fpp 0.1 --hosts 3'
trouble bad-hashes "wrong value '65': --hashes: give 1 to 64$" 'tamis plan fixed --bits 100 --hashes 65 --items 3'
trouble bad-tolerate 'not above --fpp: --tolerate: ' 'tamis plan dynamic --hashes 3 --items 9 --fpp 0.2 --tolerate 0.1'
trouble bad-sizes "wrong value 'normal:3': --sizes: " "$sizes --sizes normal:3"
trouble no-sizes-file 'No such file or directory: nosuch: give uniform, ' "$sizes --sizes nosuch"
printf '1\n2\n5000\n' >large.txt
trouble bad-sizes-line 'no size from 1 to 1330: large.txt, line 3: ' "$sizes --sizes large.txt"
trouble bad-lambda "wrong value '1,0': --lambda: " 'tamis plan flexible --bits 1280 --capacity 133 --hashes 7 --items 9 --lambda 1,0'
trouble bad-weights "wrong value '1': --weights: give W" "$replica --weights 1"
trouble bad-delta 'impossible shares: --delta1, --delta0: ' 'tamis plan replica --bits 1200 --hashes 6 --items 150 --delta1 5 --delta0 0'
trouble zero-items "wrong value '0': --items: " 'tamis plan fixed --items 0 --fpp 0.1'
trouble too-large 'more than 2\^40 bits: ' 'tamis plan fixed --items 1T --fpp 0.001'
finish
