#!/bin/bash
# Foreign text on a terminal: controls in names, paths and records are shown, never sent. Pipes get
# records as they are.
. "$(dirname "$0")/common.sh"

# terminal COMMAND: runs it with standard output and error on a terminal; what appears there goes to
# `shown`, as its lines were printed.
terminal() { "$TAMIS_ROOT/tests/support/terminal.py" bash -c "$1" | sed 's/\r$//' >shown; }

# shows NAME TEXT LINES COMMAND: on a terminal it prints TEXT among LINES lines, and no control.
cat >harmless.py <<'END'
import sys
seen, wanted, lines = open("shown", "rb").read(), sys.argv[1].encode(), int(sys.argv[2])
text = seen.decode("utf-8", "surrogateescape")
sent = [hex(ord(c)) for c in text
        if c not in "\n\t" and (c < " " or "\x7f" <= c < "\xa0" or "\udc80" <= c <= "\udcff"
                                or "\u202a" <= c <= "\u202e")]
if sent or wanted not in seen or seen.count(b"\n") != lines:
    sys.exit("sent %s, %d lines: %r" % (sent, seen.count(b"\n"), seen))
END
shows() {
    terminal "$4"
    holds "$1" "/usr/bin/python3 harmless.py '$2' $3"
}

# A name with a title for the window (ESC ] ... BEL), a C1 control as a character and as a byte, DEL,
# a line end, a tab, and a mark that turns the line around.
evil=$'e\e]0;t\a\u009b31m\x9b2J\x7f\n\t\u202ex'
told='e\u001b]0;t\u0007\u009b31m\x9b2J\u007f\n\t\u202ex'
export evil

shows missing-file "No such file or directory: $told.tamis: " 1 'tamis info "$evil.tamis"'
shows wrong-argument "$told" 1 'tamis create "--$evil"'
is file-in-a-log 2 "" "tamis info: No such file or directory: $told.tamis: check the name, or make it with tamis create" \
    'tamis info "$evil.tamis"'
tamis create a.tamis --attrs "$evil,b" && cp a.tamis "$evil.tamis"
shows verified "$told.tamis: OK, " 1 'tamis verify "$evil.tamis"'
shows info "  $told  " "$(tamis info a.tamis | wc -l)" 'tamis info a.tamis'
holds info-in-a-pipe 'tamis info a.tamis | grep -qF "  $told  "'
shows info-json '\u001b]0;t\u0007\u009b31m\ufffd2J\u007f\n\t\u202ex' 1 'tamis info --json a.tamis'
shows unknown-attribute "$told" 1 'tamis check a.tamis "no$evil=1"'

mkdir "$evil"
printf '%s,id\n\e[2Jgone,1\n\u009b2J,2\n\x9b2J,3\nplain\xc3\xa9\tx,4\n' "${evil//[$'\n']/}" >"$evil/a.csv"
shows index-complains "$told/a.csv" 2 'tamis index -o c.tamis --attrs id,nosuch "$evil"'
tamis index -o c.tamis --attrs id "$evil"
export NO_COLOR=1
shows record 'plainé	x,4' 2 'tamis find c.tamis id=4'
shows record-esc '\u001b[2Jgone,1' 2 'tamis find c.tamis id=1'
shows record-c1 '\u009b2J,2' 2 'tamis find c.tamis id=2'
shows record-byte '\x9b2J,3' 2 'tamis find c.tamis id=3'
printf '4\n\e[2Jgone\n' >list
title=${evil//[$'\n']/}
shows tag-of-a-list '\u001b[2Jgone	' 2 "tamis find c.tamis --tag '$title=@list' id=1"
is tag-in-a-pipe 0 $'\e[2Jgone\t\e[2Jgone,1' "" 'tamis find c.tamis --tag "$title=@list" id=1'
terminal 'NO_COLOR= TERM=xterm tamis find c.tamis id=1'
coloured=$'\\u001b[2Jgone,\e[1;31m1\e[0m'
holds coloured '[ "$(tail -1 shown)" = "$coloured" ]'
shows record-json '\u009b2J,2' 1 'tamis find --json c.tamis id=2'
shows segments "$told/a.csv	" 1 'tamis find --segments c.tamis id=2'
is record-in-a-pipe 0 $'\e[2Jgone,1' "" 'tamis find c.tamis id=1'
is segments-in-a-pipe 0 "$evil/a.csv" "" 'tamis find --segments c.tamis id=2 | sed "s/\t[0-9]*\t[0-9]*$//"'
shows catalog-info "records" "$(tamis info c.tamis | wc -l)" 'tamis info c.tamis'

# Line ends of a file stay what they are; a bare CR would write over the line.
printf 'id,v\r\n1,a\rb\r\n' >crlf.csv
tamis index -o r.tamis --attrs id crlf.csv
terminal 'tamis find r.tamis id=1'
holds line-ends '[ "$(tail -1 shown)" = "1,a\\rb"$'"'\\r'"' ]'

# Names of owners come with messages from strangers.
own=${evil//[$'\n\t']/}
is owner-published 0 "" "" 'tamis create o.tamis; echo +x | tamis publish o.tamis --to file:folder --as "$own"'
terminal 'tamis follow file:folder -o here --once --for 20s'
sed -i 's/^\r//; s/\x1b\[K$//' shown # what the line itself sends
holds owner-followed '/usr/bin/python3 harmless.py "current: e\u001b]0;t@" 1'
shows owner-located "$(printf '%s' "$told" | sed 's/.n.t//')" 1 'tamis locate here x'
shows owner-listed "$(printf '%s' "$told" | sed 's/.n.t//')" 1 'tamis locate here --owners'
is owner-in-a-pipe 0 $'x\t'"$own" "" 'tamis locate here x'

tamis create k.tamis
printf 'x\n\e[2Jy\n' | tamis add k.tamis
shows key '\u001b[2Jy' 2 'printf "x\n\e[2Jy\n" | tamis check k.tamis'
is key-in-a-pipe 0 $'x\n\e[2Jy' "" 'printf "x\n\e[2Jy\n" | tamis check k.tamis'
finish
