#!/bin/bash
# What keys and lines may be: NUL, binary, long, empty; where results go, and when that fails.
. "$(dirname "$0")/common.sh"

tamis create a.tamis --fpp 1e-9
# NUL between keys; newlines inside them.
is nul-add 0 '{"keys": 2, "added": 2, "already": 0}' "" 'printf "a\nb\0c\0" | tamis add -0 a.tamis --json'
is nul-check 0 $'a\nb@c@' "" 'printf "a\nb\0x\0c" | tamis check --null a.tamis | tr "\0" "@"; echo'
is newline-mode-differs 1 "" "" 'printf "a\nb\n" | tamis check a.tamis'
is nul-arguments 0 'c@' "" 'tamis check -0 a.tamis c | tr "\0" "@"; echo'
# Any byte in a key, NUL too when lines end with newlines.
/usr/bin/python3 - <<'END'
import random
random.seed(1)
keys = [bytes([i]) for i in range(256) if i != 10]
keys += [bytes(random.choice(range(11, 256)) for _ in range(n)) for n in range(1, 200)]
keys += ["käse".encode(), "名前".encode(), b"\xff\xfe\x00 broken", b" spaces ", b"\ttab", b"cr\r"]
with open("keys", "wb") as f:
    f.write(b"\n".join(keys) + b"\n")
with open("none", "wb") as f:
    f.write(b"\n".join(b"other" + k for k in keys) + b"\n")
END
is binary-add 0 "" "" 'tamis add a.tamis <keys'
is binary-check 0 "" "" 'tamis check a.tamis <keys | cmp - keys'
is binary-others 0 "" "" 'tamis check -v a.tamis <none | cmp - none'
is utf8-argument 0 $'käse\n名前' "" 'tamis check a.tamis käse 名前 kase'
is cr-is-part-of-a-key 0 'cr.' "" 'printf "cr\ncr\r\n" | tamis check a.tamis | tr "\r" .'
is spaces-are-part-of-a-key 0 ' spaces ' "" 'printf "spaces\n spaces \n" | tamis check a.tamis'

# Lines of any length.
size=$((100 * 1024 * 1024))
[ "${TAMIS_VARIANT:-release}" = release ] || size=$((10 * 1024 * 1024))
long() { head -c "$size" /dev/zero | tr '\0' "$1"; }
is long-add 0 '{"keys": 3, "added": 3, "already": 0}' "" \
    '(echo short; long x; echo; long y) | tamis add a.tamis --json'
is long-check 0 "$((2 * size + 8)) short" "" \
    '(long x; echo; echo short; long y; echo) | tamis check a.tamis >found;
     echo "$(wc -c <found) $(head -c $((size + 6)) found | tail -c 5)"'
is long-differs-at-the-end 1 "" "" '(long x; echo y) | tamis check a.tamis'
is long-threads 0 3 "" '(long x; echo; echo short; long y; echo) | tamis check -c -j 3 a.tamis'
is long-dedup 0 "$((size + 1))" "*" '(long x; echo; long x; echo) | tamis dedup | wc -c'
is all-sizes-of-lines 0 "" "" '/usr/bin/python3 -c "
for n in list(range(0, 300)) + [4095, 4096, 65535, 65536, 1048575, 1048576, 1048577, 3000000]:
    print(\"q\" * n)" >lines; tamis create l.tamis --fpp 1e-9; tamis add l.tamis <lines; tamis check l.tamis <lines | cmp - lines'
is by-small-pieces 0 $'abc def ghi\njkl mno' "" '/usr/bin/python3 -u -c "
import sys
for c in \"abc def ghi\njkl mno\": sys.stdout.write(c); sys.stdout.flush()" | tamis check -v a.tamis'

# Empty inputs.
is empty-add 0 "" "" 'tamis add a.tamis </dev/null'
is only-a-newline 0 '{"keys": 1, "added": 1, "already": 0}' "" 'tamis create e.tamis; echo | tamis add e.tamis --json'
is empty-line-found 0 "" "" 'echo | tamis check e.tamis | cmp - <(echo)'

# Standard output that takes nothing.
trouble full-check 'No space left on device: standard output: results are missing' 'tamis check a.tamis c >/dev/full'
trouble full-info 'No space left on device: standard output: ' 'tamis info a.tamis >/dev/full'
trouble full-plan 'No space left on device: standard output: ' 'tamis plan fixed --items 9 --fpp 0.1 >/dev/full'
trouble full-help 'No space left on device: standard output: ' 'tamis help >/dev/full'
trouble full-count 'No space left on device: standard output: ' 'tamis check -c a.tamis c >/dev/full'
trouble full-dedup 'No space left on device: standard output: ' 'seq 100000 | tamis dedup >/dev/full'
trouble full-diff 'No space left on device: standard output: ' 'tamis diff a.tamis a.tamis >/dev/full'
is closed-pipe 0 c "" 'yes c | tamis check a.tamis | head -1; [ ${PIPESTATUS[1]} = 2 ]'
is closed-pipe-dedup 0 1 "" 'seq 10000000 | tamis dedup | head -1; [ ${PIPESTATUS[1]} = 2 ]'
# Standard files that are closed: nothing else gets their numbers, no lock file and no filter.
printf 'ip,user\n1,ann\n' >few.csv
cp a.tamis before
trouble closed-input 'Bad file descriptor: standard input: ' 'tamis add a.tamis <&-'
trouble closed-output 'Bad file descriptor: standard output: .* run again with one that can be written$' \
    'tamis check a.tamis c >&-'
trouble closed-output-dedup 'Bad file descriptor: standard output: ' 'seq 100 | tamis dedup lines.tamis >&-'
holds closed-output-not-seen '[ ! -e lines.tamis ] && cmp a.tamis before'
holds closed-error 'tamis index -o few.tamis --attrs ip,nosuch few.csv 2>&-; tamis verify few.tamis'
holds all-closed 'tamis index -o few.tamis --attrs ip,user few.csv <&- >&- 2>&-; tamis find few.tamis ip=1'
# A limit on the size of files is an error like a full disk, not the end of the process.
trouble file-limit 'File too large: a.tamis: raise the limit on the size of files; nothing was changed$' \
    '(ulimit -f 50; seq 1000000 | tamis add a.tamis)'
trouble file-limit-output 'File too large: standard output: results are missing; raise the limit on the size of files$' \
    '(ulimit -f 50; seq 1000000 | tamis dedup >numbers)'
holds file-limit-unchanged 'cmp a.tamis before && [ ! -e a.tamis.lock ]'
# Core dumps have no memory in them: keys are there.
if [ -w /proc/self/coredump_filter ]; then
    mkfifo waits
    tamis dedup <waits >/dev/null &
    pid=$!
    exec 9>waits
    holds no-memory-in-core-dumps 'await "[ \$(cat /proc/$pid/coredump_filter) = 00000000 ]"'
    exec 9>&-
    wait "$pid"
fi
is results-on-stdout-only 0 "" "" 'tamis check -q a.tamis c'
finish
