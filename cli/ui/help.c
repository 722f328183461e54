/* tamis help. The examples below are run by the tests, which compare what they print. */
#include <string.h>

#include "cli.h"
#include "out.h"

#define KEY_OPTIONS                                                               \
    "  -0, --null           keys end with NUL instead of newline, in and out\n"   \
    "      --field N        the key is column N; the whole line passes through\n" \
    "      --delimiter C    separator of columns (default: tab)\n"                \
    "      --strict         a line without that column is an error\n"             \
    "  -j, --threads N      hash with N threads (0: all); keeps the order\n"

#define SHAPE_OPTIONS(rate)                                                                      \
    "      --capacity N     keys that fit at the stated rate: in all (fixed, dynamic), before\n" \
    "                       it grows (scalable, flexible), in one window (window) (1024);\n"     \
    "                       smooth: at half the memory, more follow in lines (none)\n"           \
    "      --fpp P          total false positive rate (" rate ")\n"                              \
    "      --growth G       smooth (default), fixed, dynamic, scalable (default for rates\n"     \
    "                       below 0.0001), flexible, window:24h\n"                               \
    "      --deletable      keys can be removed; --unique: no key is added twice\n"              \
    "      --layout L       spread (fewest bits) or blocked (one cache miss)\n"                  \
    "      --hash H         xxh3 (fastest), sip (keys chosen by others), h3\n"                   \
    "      --expansion X    scalable: size ratio of successive vectors; each is at\n"            \
    "                       least 1/16 of all earlier ones\n"                                    \
    "      --tolerate G     dynamic: one vector holds the capacity at --fpp; grow until\n"       \
    "                       the total rate is G\n"                                               \
    "      --vectors S      dynamic, window: number of vectors that share the capacity\n"        \
    "      --lambda L,L,…   flexible: expansion speeds instead of the forecast\n"              \
    "      --overfill       fixed, dynamic, window: accept keys past the\n"                      \
    "                       capacity, at a rising rate\n"                                        \
    "      --add-always     growing: a key that tests positive is added and counted too\n"       \
    "      --bits M --hashes K   vectors as published, spread unless --layout is given,\n"       \
    "                       the total rate not bounded; with --attrs: one vector\n"              \
    "                       for each attribute and verifier, which does not grow\n"              \
    "      --like FILE      join the family of FILE; without the options above, copy them\n"     \
    "      --key-file F     the family's key: 16 bytes or 32 hexadecimal digits\n"

#define RECORD_OPTIONS                                                                         \
    "For records (create --attrs), the arguments are one record: attr=value, attr= (empty),\n" \
    "attr! (missing); standard input is CSV, TSV, JSON or a log:\n"                            \
    "      --format F       csv, jsonl, combined, syslog, …: see tamis help index (auto)\n"  \
    "      --delimiter C    separator of CSV columns\n"                                        \
    "      --no-header      no header: attributes are named by column numbers\n"               \
    "      --strict         a bad record is an error; otherwise it is reported and skipped\n"

#define OPEN_OPTIONS "      --key-file F     the key, for files saved without it\n"
#define WAIT_OPTION  "      --no-wait        fail if another process is writing to the file\n"

static const struct {
    const char *verb, *text;
} texts[] = {
    {"create",
     "tamis create FILE [OPTION]...\n"
     "Makes an empty filter or, with --attrs, a set of records.\n\n" SHAPE_OPTIONS(
         "0.01") "      --attrs a,b,c    attributes of records; a:int, a:dec, a:time: 7 is 07;\n"
                 "                       a:ip: ::ffff:1.2.3.4 is 1.2.3.4; a:fold: ANN is ann\n"
                 "      --combo a+b      verify these together; may be repeated; none: only whole\n"
                 "                       records (default for up to three attributes: every pair)\n"
                 "      --verifier V     filter (default), table (exact), none\n"
                 "      --value V        what it keeps: mixed (default), basic, attenuated\n"
                 "      --distinct a=N   attribute a has only about N values\n"
                 "      --for-publish    vectors of one size, planned for --capacity, that followers of many\n"
                 "                       origins query together: see tamis help publish\n"
                 "      --family F       the key of the family is in F, which is created if missing\n"
                 "      --no-key         do not store the key: queries need --key-file\n"
                 "  -f, --force          replace FILE if it exists\n"
                 "      --json           print its figures as info does\n\n"
                 "Examples:\n"
                 "  $ tamis create users.tamis --capacity 1M --fpp 0.001\n"
                 "  $ tamis create seen.tamis --growth window:24h\n"
                 "  $ tamis create cart.tamis --deletable --capacity 10k\n"
                 "  $ tamis create log.tamis --attrs ip,user,status:int --distinct status=60\n"},
    {"add",
     "tamis add FILE [KEY]... [OPTION]...\n"
     "Adds keys: the arguments, or the lines of standard input. FILE is locked, loaded,\n"
     "and saved once at the end; if anything fails it stays as it was.\n\n" KEY_OPTIONS
     "  -v, --verbose        report on standard error how many were new\n"
     "      --json           report the counts as JSON\n" OPEN_OPTIONS WAIT_OPTION RECORD_OPTIONS
     "\n"
     "Examples:\n"
     "  $ tamis create users.tamis\n"
     "  $ tamis add users.tamis ann bob\n"
     "  $ printf 'cho\\nann\\n' | tamis add users.tamis --json\n"
     "  {\"keys\": 2, \"added\": 1, \"already\": 1}\n"
     "  $ tamis create log.tamis --attrs ip,user\n"
     "  $ tamis add log.tamis ip=10.1.2.3 user=ann\n"
     "  $ printf 'ip,user\\n10.1.2.4,bob\\n' | tamis add log.tamis\n"},
    {"remove",
     "tamis remove FILE [KEY]... [OPTION]...\n"
     "Removes keys from a deletable filter. Only members may be removed: removing a key\n"
     "that was never added can, at the false positive rate, turn other keys into \"no\". A\n"
     "removal that could belong to several vectors is remembered and settled later (pending).\n"
     "Status: 0 if something was removed, 1 if all keys were absent.\n\n" KEY_OPTIONS
     "  -v, --verbose        report the outcome on standard error\n"
     "      --json           report the outcome as JSON\n" OPEN_OPTIONS WAIT_OPTION RECORD_OPTIONS
     "\n"
     "Examples:\n"
     "  $ tamis create cart.tamis --deletable --fpp 1e-6\n"
     "  $ tamis add cart.tamis apple pear\n"
     "  $ tamis remove cart.tamis apple --json\n"
     "  {\"keys\": 1, \"removed\": 1, \"pending\": 0, \"absent\": 0}\n"
     "  $ tamis check cart.tamis apple pear\n"
     "  pear\n"},
    {"check",
     "tamis check FILE [KEY]... [OPTION]...\n"
     "Prints the keys that may be members, as grep does with lines. A key that is not\n"
     "printed was never added; a key that was never added is printed at the filter's\n"
     "false positive rate. Status: 0 if a key was printed, 1 if none.\n\n"
     "  -v, --invert-match   print the others\n"
     "  -c, --count          print only their number\n"
     "  -q, --quiet          print nothing, stop at the first\n" KEY_OPTIONS
     "      --verify         check every byte of a large file first\n"
     "      --json           report how many were found and missing\n" OPEN_OPTIONS RECORD_OPTIONS
     "      --attrs a,b      use only these attributes of standard input (default: all)\n"
     "An attribute given several times as an argument means any of the values.\n\n"
     "Examples:\n"
     "  $ tamis create users.tamis --fpp 1e-6\n"
     "  $ tamis add users.tamis ann bob\n"
     "  $ printf 'ann\\nzoe\\n' | tamis check users.tamis\n"
     "  ann\n"
     "  $ printf 'ann\\nzoe\\n' | tamis check -v users.tamis\n"
     "  zoe\n"
     "  $ printf '1,ann\\n2,zoe\\n' | tamis check users.tamis --field 2 --delimiter ,\n"
     "  1,ann\n"
     "  $ tamis create log.tamis --attrs ip,user --fpp 1e-6\n"
     "  $ printf 'ip,user\\n1,ann\\n2,bob\\n' | tamis add log.tamis\n"
     "  $ tamis check log.tamis ip=1 user=ann user=cho\n"
     "  ip=1 user=ann user=cho\n"
     "  $ printf '{\"ip\": 1, \"user\": \"bob\"}\\n' | tamis check -c log.tamis\n"
     "  0\n"},
    {"dedup",
     "tamis dedup [FILE] [OPTION]...\n"
     "Prints the lines of standard input that were not seen before. A new line is lost at\n"
     "the rate --fpp (1e-9); the expected number of lost lines is reported at the end. With\n"
     "FILE, lines of earlier runs count too: it is created if missing and saved at the end.\n"
     "Options for a new filter may be repeated if they are the same.\n\n" KEY_OPTIONS SHAPE_OPTIONS(
         "1e-9") WAIT_OPTION "      --json           report on standard error as JSON\n\n"
                             "Examples:\n"
                             "  $ printf 'a\\nb\\na\\nc\\n' | tamis dedup 2> report\n"
                             "  a\n"
                             "  b\n"
                             "  c\n"
                             "  $ cat report\n"
                             "  tamis dedup: 4 lines, 3 new: expected to be lost: 0\n"
                             "  $ printf 'a\\nb\\n' | tamis dedup seen.tamis 2> report\n"
                             "  a\n"
                             "  b\n"
                             "  $ printf 'b\\nc\\n' | tamis dedup seen.tamis 2> report\n"
                             "  c\n"},
    {"info",
     "tamis info FILE [OPTION]...\n"
     "Prints the kind of a file, its settings and how full it is. \"capacity\" is the number\n"
     "of keys that fit at the stated rate in the present vectors.\n\n"
     "      --inputs         of a catalog: every input as it is now, and what is skipped. FILE may be\n"
     "                       the file or folder of which the catalog was made\n"
     "  -v, --verbose        also a table of its vectors\n"
     "      --verify         check every byte of a large file first\n"
     "      --json           as JSON\n" OPEN_OPTIONS "\n"
     "Examples:\n"
     "  $ tamis create users.tamis --growth fixed --capacity 1000\n"
     "  $ tamis info users.tamis | head -3\n"
     "  kind                  filter\n"
     "  growth                fixed\n"
     "  layout                blocked\n"},
    {"verify", "tamis verify FILE... [OPTION]...\n"
               "Checks every byte. Damage is reported with its offset; the status is then 2.\n\n"
               "      --json           a line of JSON for each file\n\n"
               "Examples:\n"
               "  $ tamis create users.tamis --growth fixed --bits 8Ki --hashes 6 --capacity 800\n"
               "  $ tamis verify users.tamis\n"
               "  users.tamis: OK, 1728 bytes\n"},
    {"fold", "tamis fold FILE [OPTION]...\n"
             "Halves every vector, without the keys. A filter that is at most half full keeps its\n"
             "rate; a fuller one needs --restate and then states its new rate.\n\n"
             "      --restate        allow a higher rate\n"
             "      --json           print its figures as info does\n" OPEN_OPTIONS WAIT_OPTION "\n"
             "Examples:\n"
             "  $ tamis create big.tamis --growth fixed --bits 1Mi --hashes 6 --capacity 100k\n"
             "  $ seq 1000 | tamis add big.tamis\n"
             "  $ tamis fold big.tamis\n"
             "  $ seq 1000 | tamis check -c big.tamis\n"
             "  1000\n"},
    {"clear",
     "tamis clear FILE [OPTION]...\n"
     "Removes all keys or records. Family, growth and rate stay.\n\n"
     "      --json           print its figures as info does\n" OPEN_OPTIONS WAIT_OPTION "\n"
     "Examples:\n"
     "  $ tamis create users.tamis\n"
     "  $ tamis add users.tamis ann\n"
     "  $ tamis clear users.tamis\n"
     "  $ tamis check -c users.tamis ann\n"
     "  0\n"},
    {"merge",
     "tamis merge -o OUT A B... [OPTION]...\n"
     "The union of filters, or of sets of records, of one family, growth and layout. OUT may be one\n"
     "of them.\n\n"
     "  -o, --output OUT     where the result goes\n"
     "      --restate        if the rate cannot be kept, state the new one\n"
     "      --concat         keep the vectors separate even where they could be united\n"
     "      --disjoint       no key is in two of them (keeps the promise of --unique)\n"
     "      --no-key         do not store the key\n"
     "  -f, --force          replace OUT if it exists\n"
     "      --json           print its figures as info does\n" OPEN_OPTIONS WAIT_OPTION "\n"
     "Examples:\n"
     "  $ tamis create mon.tamis\n"
     "  $ tamis create tue.tamis --like mon.tamis\n"
     "  $ tamis add mon.tamis ann\n"
     "  $ tamis add tue.tamis bob\n"
     "  $ tamis merge -o week.tamis mon.tamis tue.tamis\n"
     "  $ tamis check week.tamis ann bob\n"
     "  ann\n"
     "  bob\n"},
    {"intersect", "tamis intersect -o OUT A B... [OPTION]...\n"
                  "The bits that all have in common: the keys in every set, and false positives.\n"
                  "For fixed filters of one family and shape; the result is plain.\n\n"
                  "  -o, --output OUT     where the result goes\n"
                  "      --no-key         do not store the key\n"
                  "  -f, --force          replace OUT if it exists\n"
                  "      --json           print its figures as info does\n" OPEN_OPTIONS WAIT_OPTION
                  "\nExamples:\n"
                  "  $ tamis create mon.tamis --growth fixed --capacity 100 --fpp 1e-6\n"
                  "  $ tamis create tue.tamis --like mon.tamis\n"
                  "  $ tamis add mon.tamis ann bob\n"
                  "  $ tamis add tue.tamis bob cho\n"
                  "  $ tamis intersect -o both.tamis mon.tamis tue.tamis\n"
                  "  $ tamis check both.tamis ann bob cho\n"
                  "  bob\n"},
    {"diff",
     "tamis diff OLD NEW [OPTION]... > PATCH\n"
     "The change from one version of a filter to a later one, coded close to its entropy.\n\n"
     "      --bits-only      without counters; the patched filter becomes read-only\n" OPEN_OPTIONS
     "\n"
     "Examples:\n"
     "  $ tamis create old.tamis\n"
     "  $ cp old.tamis new.tamis\n"
     "  $ tamis add new.tamis ann\n"
     "  $ tamis diff old.tamis new.tamis > patch\n"
     "  $ tamis apply old.tamis < patch\n"
     "  $ tamis check old.tamis ann\n"
     "  ann\n"},
    {"apply",
     "tamis apply FILE [OPTION]... < PATCH\n"
     "Brings a filter to the newer version that tamis diff was given. A patch applies only to\n"
     "the version it was made from.\n\n"
     "  -p, --patch FILE     read the patch from FILE\n"
     "      --json           print its figures as info does\n" OPEN_OPTIONS WAIT_OPTION "\n"
     "Examples: see tamis help diff\n"},
    {"bench",
     "tamis bench [OPTION]...\n"
     "Measures lookups of absent keys and inserts on this machine, in a few seconds: in batches and\n"
     "one by one, for a filter sized in advance, the default one, which grows from nothing, a scalable\n"
     "one grown from 1,000 keys and a deletable one. The floor is the time to fetch one random cache\n"
     "line from as much memory. Keys are 8 bytes, hashing is included, times are medians of five. Use\n"
     "an otherwise idle machine.\n\n"
     "      --items N        keys in each filter (10M)\n"
     "      --fpp P          false positive rate (0.01)\n"
     "      --json           print [version items fpp], and in [fixed growing scalable deletable]:\n"
     "                       [lookup_many_ns lookup_ns add_many_ns add_ns rate bits_per_item vectors],\n"
     "                       relative to the floor [lookup_many_floors] and to the fixed filter\n"
     "                       [lookup_many_fixed]; fixed also [floor_ns hash_ns threads\n"
     "                       threads_speedup]\n\n"
     "Examples:\n"
     "  $ tamis bench --items 10k --json >bench.json\n"},
    {"plan", help_plan},
    {"index", help_index},
    {"find", help_find},
    {"publish", help_publish},
    {"follow", help_follow},
    {"locate", help_locate},
    {"forget", help_forget},
    {"where", help_where},
};

static const char overview[] =
    "tamis: could this be here? Filters that answer \"no\" for sure or \"maybe\" at a stated rate.\n\n"
    "  tamis index INPUT...         make a catalog of logs and tables: files, folders\n"
    "  tamis find CATALOG a=VALUE...   print matching records, reading only what may have one\n"
    "  tamis create FILE            make a filter; with --attrs, a set of records\n"
    "  tamis add FILE [KEY]...      put keys in; without KEY, the lines of standard input\n"
    "  tamis remove FILE [KEY]...   take keys out (create --deletable)\n"
    "  tamis check FILE [KEY]...    print the keys that may be members, like grep; -v the others\n"
    "  tamis dedup [FILE]           print the lines not seen before\n"
    "  tamis info FILE              what it is and how full\n"
    "  tamis verify FILE...         check every byte\n"
    "  tamis fold FILE              halve its vectors\n"
    "  tamis clear FILE             remove all keys\n"
    "  tamis merge -o OUT A B...    unite sets\n"
    "  tamis intersect -o OUT A B...   intersect filters\n"
    "  tamis diff OLD NEW > PATCH   write the change between two versions\n"
    "  tamis apply FILE < PATCH     apply such a change\n"
    "  tamis publish FILE --to ADDRESS --as OWNER   send a filter and its changes to followers\n"
    "  tamis follow ADDRESS -o DIRECTORY   keep copies of what is published\n"
    "  tamis locate DIRECTORY [KEY]...     print the owners that may have a key\n"
    "  tamis forget ADDRESS|DIRECTORY OWNER...   remove an owner that will not return\n"
    "  tamis where ADDRESS a=VALUE...      print the hosts of a fleet that may have a record\n"
    "  tamis plan FORM              sizes, rates, thresholds\n"
    "  tamis bench                  measure the speed of filters on this machine\n"
    "  tamis help [VERB]            help on one command\n"
    "  tamis version\n\n"
    "Status: 0 found or done, 1 none found, 2 error. --json prints reports for programs.\n";

const char help_first[] =
    "tamis: could this be here? \"No\" is a proof; \"maybe\" is wrong at a rate you choose.\n\n"
    "Find the few records you want in folders of logs and tables, without reading everything:\n"
    "  tamis index logs/                                  detects formats; run it again to update\n"
    "  tamis find logs ip=10.1.2.3 user=ann               the matching records, byte for byte\n"
    "  tamis find logs 'connection refused' --since 2h    words and times; tamis find logs: attributes\n\n"
    "Find which of 100,000 suspects occur:\n"
    "  tamis find logs ip=@suspects.txt --tag\n\n"
    "Print the lines not seen before, in this run or an earlier one:\n"
    "  tamis dedup seen.tamis <lines\n\n"
    "Keep a set of keys in a few bits each, growing and shrinking:\n"
    "  tamis create set.tamis; tamis add set.tamis <keys; tamis check set.tamis KEY\n\n"
    "Unite, compare and move sets:\n"
    "  tamis merge -o week.tamis mon.tamis tue.tamis; tamis diff old.tamis new.tamis >patch\n\n"
    "Know which host may have a key:\n"
    "  tamis publish set.tamis --to redis://HOST/sets --as ME; tamis locate COPIES KEY\n\n"
    "tamis help: all commands; tamis help find: one of them.\n";

bool help_print(const char *verb)
{
    if (!verb) {
        put_text(overview);
        return true;
    }
    for (size_t i = 0; i < COUNT(texts); i++)
        if (strcmp(verb, texts[i].verb) == 0) {
            put_text(texts[i].text);
            return true;
        }
    return false;
}
