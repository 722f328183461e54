#!/bin/bash
# A minute with tamis: the logs and package lists of this machine, indexed and asked. `make demo` runs it.
set -eu
tamis=${TAMIS:-tamis}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
run() { # shows the command, and the first lines of what it prints, cut to a screen
    printf '  $ %s\n' "$*"
    { PATH=$(dirname "$tamis"):$PATH bash -c "$*" 2>&1 || true; } |
        awk -v most="${most:-8}" 'NR <= most { print "    " substr($0, 1, 150) } END { if (NR > most) print "    ... " NR - most " more" }'
}

mkdir logs
# What this machine has: logs that may be read (copies, so that they stay as they are meanwhile), and its
# packages as a table.
while IFS= read -r -d '' file; do
    mkdir -p "logs/$(dirname "$file")" && cp "/var/log/$file" "logs/$file" 2>/dev/null || true
done < <(cd /var/log 2>/dev/null && find * -maxdepth 2 -type f \( -name '*log' -o -name '*.log.*' -o -name 'syslog*' -o -name 'messages*' \) \
    -readable -size +0 -size -20M ! -name lastlog ! -name faillog -print0 2>/dev/null | head -zn 200)
if command -v journalctl >/dev/null; then
    journalctl -q -o short-iso -n 20000 >logs/journal.log 2>/dev/null || true
    [ -s logs/journal.log ] || rm -f logs/journal.log
fi
if command -v dpkg-query >/dev/null; then
    { echo package,version,section,installed_kib
      dpkg-query -W -f '${Package},${Version},${Section},${Installed-Size}\n'; } >logs/packages.csv
fi
find logs -depth -type d -empty -delete
mkdir -p logs

# A web server's log, which few machines have: made from a seed.
made=
if ! ls logs/*access* logs/*/*access* >/dev/null 2>&1; then
    made=access.log
    awk -v seed=2024 'BEGIN {
        srand(seed); split("GET GET GET POST", verb, " "); split("200 200 200 304 404 500", status, " ")
        split("/ /index.html /login /admin/users /admin/settings /img/logo.png /api/orders", path, " ")
        for (i = 0; i < 60000; i++) {
            t = 1714521600 + i * 7
            printf "10.%d.%d.%d - %s [%s +0000] \"%s %s HTTP/1.1\" %s %d \"-\" \"%s\"\n",
                rand() ^ 2 * 40, rand() * 250, rand() * 250, rand() < .3 ? "user" int(rand() ^ 3 * 900) : "-",
                strftime("%d/%b/%Y:%H:%M:%S", t, 1), verb[1 + int(rand() * 4)], path[1 + int(rand() * 7)],
                status[1 + int(rand() * 6)], rand() * 90000, rand() < .5 ? "curl/7.88" : "Mozilla/5.0 (X11; Linux)"
        }
    }' >logs/access.log
fi
# And if there is nothing at all, a system log from the same seed.
if [ "$(ls logs | grep -vc access.log)" = 0 ]; then
    made="$made auth.log"
    awk -v seed=7 'BEGIN { srand(seed); for (i = 0; i < 20000; i++)
        printf "%s host sshd[%d]: %s password for %s from 10.%d.0.%d port %d ssh2\n", strftime("%b %e %H:%M:%S", 1714521600 + 20 * i, 1),
            400 + rand() * 9000, rand() < .2 ? "Accepted" : "Failed", rand() < .5 ? "root" : "ann", rand() * 4, rand() * 250, 1024 + rand() * 60000 }' >logs/auth.log
fi

# A file that was written less than two seconds before it is indexed may change without another time: each question
# would compare its bytes.
sleep 2.1

say "The logs and packages of this machine"
printf '    %s files, %s\n' "$(find logs -type f | wc -l)" "$(du -sh logs | cut -f 1)"
[ -z "$made" ] || printf '    not found on this machine, so made from a seed: %s\n' "$made"

say "1. Index them: one command, no options. It finds out what they are, and what may be asked"
run tamis index logs
most=40 run tamis find logs

say "2. A time range, in whatever way each of them writes its times"
last=$(tail -1 logs/dpkg.log 2>/dev/null | cut -c 1-10)
run "tamis find logs --since ${last:-2024-05-05} --count"
run "tamis find logs --since 2024-05-02T10:00 --until 2024-05-02T10:04 --limit 3"

say "3. A word, or words one after the other, wherever they are"
if [ -s logs/dpkg.log ]; then run "tamis find logs -H 'status installed' --since $last --limit 3"; else run "tamis find logs 'failed password' --limit 3"; fi

say "4. A network, together with a value: read only where both may be"
run "tamis find logs host=10.1.0.0/16 status=500 --fields time,host,path --limit 4"
run "tamis find logs host=10.1.0.0/16 status=500 --count-by path"

say "5. A list: which of these does this machine have, and where"
if [ -s logs/packages.csv ]; then
    printf '%s\n' bash coreutils no-such-package libc6 tomcat9 >wanted
    run "tamis find logs package=@wanted --tag --fields package,version"
else
    printf '%s\n' 10.1.2.3 10.0.0.0/24 192.0.2.1 >wanted
    run "tamis find logs host=@wanted --tag --limit 3"
fi

say "6. What is nowhere: no is a proof, and next to nothing is read for it"
most=30 run "tamis find logs user=nobody-has-this-name --explain"

say "Next"
cat <<'END'
    tamis index YOUR-LOGS/; tamis find YOUR-LOGS            what can be asked of yours
    tamis index --update YOUR-LOGS.tamis                    from cron, or packaging/tamis-update@.timer
    tamis help find; man docs/man/tamis-find.1              every kind of question
    README.md                                               sets, dedup, Redis, C
END
