#!/bin/bash
# A minute with tamis: records of this machine's own files, indexed and found. `make demo` runs it.
set -eu
tamis=${TAMIS:-tamis}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
run() {
    printf '  $ %s\n' "${*//$tamis/tamis}"
    bash -c "$*" 2>&1 | sed 's/^/    /'
}

# One line of JSON for each file; names with quotes, backslashes or control characters are left out.
records() {
    find "$@" -xdev -type f ! -name '*[\"\\[:cntrl:]]*' -printf \
        '{"name":"%f","owner":"%u","size":%s,"day":"%TY-%Tm-%Td","device":%D,"folder":"%h"}\n' 2>/dev/null |
        awk -F'"size":' '{
            split($2, rest, ","); size = rest[1] + 0
            class = size < 1024 ? "tiny" : size < 65536 ? "small" : size < 1048576 ? "medium" : "large"
            sub(/"size":[0-9]+/, "\"size\":" size ",\"class\":\"" class "\""); print
        }' | grep -v '"folder":"[^"]*\\' | head -200000 || true
}

say "The files of this machine: name, owner, size class, day, device; as compressed JSONL"
mkdir files
records /usr /etc /var/lib /opt >all
split -l 2000 --additional-suffix=.jsonl all files/part-
if command -v zstd >/dev/null; then zstd -q --rm files/*.jsonl; else gzip files/*.jsonl; fi
printf '    %s records in %s files, %s compressed\n' "$(wc -l <all)" "$(ls files | wc -l)" "$(du -sh files | cut -f 1)"
head -1 all | sed 's/^/    /'

say "1. Index them: what may be asked for, and which attributes together"
run "$tamis index -v -o files.tamis --attrs name,owner,class,day,device --combo name+day --segment 200Ki files"

# For the questions: a name and a day that are in many segments, but never together.
read -r name day < <(awk -F'"' '
    { n[$4]++; d[$0 ~ /"day"/ ? substr($0, index($0, "\"day\":") + 7, 10) : ""]++ }
    { pair[$4 " " substr($0, index($0, "\"day\":") + 7, 10)] = 1 }
    END {
        best = 0
        for (x in n) if (n[x] > 20 && x !~ / /) for (y in d) if (d[y] > 200 && !((x " " y) in pair)) {
            low = n[x] < d[y] ? n[x] : d[y]
            if (low > best) { best = low; name = x; day = y }
        }
        print name, day
    }' all)
other=$(grep -F "\"name\":\"$name\"" all | head -1 | sed -E 's/.*"day":"([^"]*)".*/\1/')

say "2. A value that is in many segments: these are read, the others are not"
run "$tamis find files.tamis 'name=$name' --explain"

say "3. Together with a day: only segments that have both in one record"
run "$tamis find files.tamis 'name=$name' day=$other --limit 2"
run "$tamis find files.tamis 'name=$name' day=$other --explain"

say "4. A day that is in many segments too, but never with this name: no is a proof"
run "$tamis find files.tamis 'name=$name' day=$day --explain"

say "Next"
cat <<'END'
    tamis index -o logs.tamis --attrs ip,user --combo ip+user YOUR-LOGS/   CSV, TSV, JSONL; .gz, .zst
    tamis find logs.tamis ip=10.1.2.3 user=ann                             --count, --json, --explain
    tamis index --update logs.tamis                                        new, grown, changed, removed
    tamis help; man docs/man/tamis-index.1; docs/guide.md                  filters, dedup, plan: README.md
END
