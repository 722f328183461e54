#!/bin/bash
# tamis help, tamis version, and words that are no verbs.
. "$(dirname "$0")/common.sh"

version=$(sed -nE 's/^#define TAMIS_VERSION +"([0-9.]+)".*/\1/p' "$TAMIS_ROOT/include/tamis.h")
is version 0 "tamis $version" "" 'tamis version'
is version-option 0 "tamis $version" "" 'tamis --version'
holds help-lists-verbs 'tamis help | grep -q "tamis check FILE"'
holds help-option 'cmp <(tamis --help) <(tamis help)'
for verb in index find create add remove check dedup info verify fold clear merge intersect diff apply plan bench publish follow locate where; do
    holds "help-$verb" "tamis help $verb | head -1 | grep -q '^tamis $verb '"
    holds "option-help-$verb" "cmp <(tamis $verb --help) <(tamis help $verb)"
    holds "letter-help-$verb" "cmp <(tamis $verb -h) <(tamis help $verb)"
    holds "listed-$verb" "tamis help | grep -q '  tamis $verb '"
    holds "narrow-$verb" "! tamis help $verb | grep -qE '.{101}'"
done
holds default-rates 'tamis help create | grep -q "rate (0.01)" && tamis help dedup | grep -q "rate (1e-9)"'
trouble unknown-help 'unknown command: frob: see tamis help$' 'tamis help frob'
trouble unknown-verb 'unknown command: frob: see tamis help$' 'tamis frob'
holds alone-one-screen '[ "$(tamis | wc -l)" -le 24 ] && ! tamis | grep -qE ".{101}"'
holds alone-six-things '[ "$(tamis | grep -c "^[A-Z].*:$")" = 6 ]'
trouble option-for-verb 'unknown command: --frob: see tamis help$' 'tamis --frob'
# What the help lists as an option, the manual page explains (dedup: with the page of create).
for verb in index find create add remove check dedup info verify fold clear merge intersect diff apply plan bench publish follow locate where; do
    page=$TAMIS_ROOT/docs/man/tamis-$verb.1
    grep -q '^\.so ' "$page" && page=$TAMIS_ROOT/docs/$(sed 's/^\.so man1/man/' "$page")
    cat "$page" >page
    [ "$verb" = dedup ] && cat "$TAMIS_ROOT"/docs/man/tamis-{create,add}.1 >>page
    holds "manual-$verb" "tamis help $verb | sed -nE 's/^ +(-., )?--([a-z-]+).*/\\2/p' | while read -r option; do
        sed 's/[\\]-/-/g' page | grep -q -- \"--\$option\" || echo \$option; done >.lacks; cat .lacks; [ ! -s .lacks ]"
done
# The page of tamis names every verb, and refers to every page.
for verb in $(tamis help | sed -nE 's/^  tamis ([a-z]+) .*/\1/p'); do
    holds "overview-$verb" "sed -n '/^\.SH DESCRIPTION/,/^\.SH CONV/p' '$TAMIS_ROOT/docs/man/tamis.1' | grep -E '^\.BR ' | grep -qw '$verb'"
done
for page in $(cd "$TAMIS_ROOT/docs/man" && grep -L '^\.so ' tamis-*.1); do
    holds "see-also-$page" "sed -n '/^\.SH .SEE ALSO/,\$p' '$TAMIS_ROOT/docs/man/tamis.1' | sed 's/[\\]-/-/g' |
        grep -q '^\.BR ${page%.1} (1)'"
done
# The manual page of plan has a section for each form, and no others.
holds manual-forms 'cmp <(tamis help plan | sed -nE "s/^plan ([a-z]+) .*/\1/p" | sort -u) \
    <(sed -nE "s/^\.SS ([a-z]+)$/\1/p" "$TAMIS_ROOT/docs/man/tamis-plan.1" | sort)'
# What a manual page lists as an option, the help of one of its verbs explains.
for page in "$TAMIS_ROOT"/docs/man/tamis-*.1; do
    grep -q '^\.so ' "$page" && continue
    name=$(basename "$page" .1)
    sed -nE '/^\.SH NAME/{n;s/ \\- .*//;s/\\//g;s/tamis-//g;s/,//g;p;}' "$page" >verbs
    for verb in $(cat verbs); do tamis help "$verb"; done >helps
    holds "explained-$name" "sed -nE '/^\.TP/{n;p;}' \"$page\" | sed 's/[\]-/-/g' | grep -oE -e '--[a-z]+(-[a-z]+)*' |
        while read -r option; do grep -q -e \"\$option\" helps || echo \$option; done >.lacks; cat .lacks; [ ! -s .lacks ]"
done
# In a manual page a line that begins with a dot is a command; one that is none loses its text.
holds manual-commands '! grep -nE "^[.'"'"']" "$TAMIS_ROOT"/docs/man/*.1 |
    grep -vE ":[0-9]+:\.(TH|SH|SS|PP|TP|IP|B|I|BI|BR|IB|IR|RB|RI|EX|EE|br|so)( |$)"'
finish
