/* tamis help. The examples below are run by the tests, which compare what they print. */
#include <string.h>

#include "cli.h"
#include "out.h"

#define KEY_OPTIONS                                                               \
    "  -0, --null           keys end with NUL instead of newline, in and out\n"   \
    "      --field N        the key is column N; the whole line passes through\n" \
    "      --delimiter C    what parts columns (default: tab)\n"                  \
    "      --strict         a line without that column is an error\n"             \
    "  -j, --threads N      hash with N threads (0: all); the order stays\n"

#define SHAPE_OPTIONS(rate)                                                                     \
    "      --capacity N     fixed: keys it holds; dynamic: most keys; else keys of the first\n" \
    "                       vector; window: keys expected in a window (1024)\n"                 \
    "      --fpp P          false positive rate of the whole (" rate ")\n"                      \
    "      --growth G       fixed, dynamic, scalable (default), flexible, window:24h\n"         \
    "      --deletable      keys can be removed; --unique: none is added twice\n"               \
    "      --layout L       spread (fewest bits) or blocked (one cache miss)\n"                 \
    "      --hash H         xxh3 (fastest), sip (strangers choose the keys), h3\n"              \
    "      --expansion X    scalable: factor from vector to vector, whose\n"                    \
    "                       next is a 16th of all before it at least\n"                         \
    "      --tolerate G     dynamic: vectors meet --fpp, the whole may go to G\n"               \
    "      --vectors S      dynamic: vectors for the capacity; window: that turn by time\n"     \
    "      --lambda L,L,…   flexible: expansion speeds instead of the forecast\n"             \
    "      --overfill       go on past the capacity, with a rising rate\n"                      \
    "      --add-always     growing: a key that tests positive is added and counted too\n"      \
    "      --bits M --hashes K   vectors as published, the total not bounded; with\n"           \
    "                       --attrs and --growth fixed: of each attribute and verifier\n"       \
    "      --like FILE      join the family of FILE; without options above, alike in all\n"     \
    "      --key-file F     the family's key: 16 bytes or 32 hexadecimal digits\n"

#define RECORD_OPTIONS                                                                        \
    "For an index (create --attrs), arguments are one record: attr=value, attr= (empty),\n"   \
    "attr! (missing); standard input is CSV, TSV, JSON or a log:\n"                           \
    "      --format F       csv, jsonl, combined, syslog, …: see tamis help index (auto)\n" \
    "      --delimiter C    what parts columns of CSV\n"                                      \
    "      --no-header      no header: attributes are named by the numbers of columns\n"      \
    "      --strict         a bad record is an error; else it is told of and skipped\n"

#define OPEN_OPTIONS "      --key-file F     the key, for files saved without it\n"
#define WAIT_OPTION  "      --no-wait        fail if another process is writing to the file\n"

static const struct {
    const char *verb, *text;
} texts[] = {
    {"create",
     "tamis create FILE [OPTION]...\n"
     "Makes an empty filter or, with --attrs, an index of records.\n\n" SHAPE_OPTIONS(
         "0.01") "      --attrs a,b,c    attributes of records; a:int, a:dec, a:time: 7 is 07;\n"
                 "                       a:ip: ::ffff:1.2.3.4 is 1.2.3.4; a:fold: ANN is ann\n"
                 "      --combo a+b      verify these together (again for more; none: only whole\n"
                 "                       records; default for three attributes: every pair)\n"
                 "      --verifier V     filter (default), table (exact), none\n"
                 "      --value V        what it keeps: mixed (default), basic, attenuated\n"
                 "      --distinct a=N   attribute a has only N values or so\n"
                 "      --no-key         do not store the key: --key-file is needed to ask\n"
                 "  -f, --force          replace FILE if it exists\n"
                 "      --json           print its figures as info does\n\n"
                 "Examples:\n"
                 "  $ tamis create users.tamis --capacity 1M --fpp 0.001\n"
                 "  $ tamis create seen.tamis --growth window:24h\n"
                 "  $ tamis create cart.tamis --deletable --capacity 10k\n"
                 "  $ tamis create log.tamis --attrs ip,user,status:int --distinct status=60\n"},
    {"add", "tamis add FILE [KEY]... [OPTION]...\n"
            "Adds keys: the arguments, else the lines of standard input. FILE is locked, loaded,\n"
            "and saved once at the end; if anything fails it stays as it was.\n\n" KEY_OPTIONS
            "  -v, --verbose        say on standard error how many were new\n"
            "      --json           print how many\n" OPEN_OPTIONS WAIT_OPTION RECORD_OPTIONS "\n"
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
     "that was never added can, at the false positive rate, make other keys \"no\". What\n"
     "could belong to several vectors is remembered and settled later (pending).\n"
     "Status: 0 if something was removed, 1 if all keys were absent.\n\n" KEY_OPTIONS
     "  -v, --verbose        say on standard error what became of them\n"
     "      --json           print it\n" OPEN_OPTIONS WAIT_OPTION RECORD_OPTIONS "\n"
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
     "printed was never added; one that is printed was not with the rate of the filter.\n"
     "Status: 0 if one was printed, 1 if none.\n\n"
     "  -v, --invert-match   print the others\n"
     "  -c, --count          print how many\n"
     "  -q, --quiet          print nothing, stop at the first\n" KEY_OPTIONS
     "      --verify         check every byte of a large file first\n"
     "      --json           print how many were found and missing\n" OPEN_OPTIONS RECORD_OPTIONS
     "      --attrs a,b      of standard input only these count (default: all there are)\n"
     "An attribute given again as an argument means any of the values.\n\n"
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
     "Prints the lines of standard input that were not seen before. A new line is lost with\n"
     "the rate --fpp (1e-9); how many are to be expected is said at the end. With FILE,\n"
     "what earlier runs saw counts too: it is made if missing and saved at the end; options\n"
     "for a new filter may be given again if they are the same.\n\n" KEY_OPTIONS SHAPE_OPTIONS(
         "1e-9") WAIT_OPTION "      --json           the report on standard error as JSON\n\n"
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
     "Prints what the filter or index is and how full.\n\n"
     "      --inputs         of a catalog: every input as it is now, and what is passed over\n"
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
               "Checks every byte. What is wrong is named with its place; the status is then 2.\n\n"
               "      --json           a line of JSON for each file\n\n"
               "Examples:\n"
               "  $ tamis create users.tamis --growth fixed --bits 8Ki --hashes 6 --capacity 800\n"
               "  $ tamis verify users.tamis\n"
               "  users.tamis: OK, 1728 bytes\n"},
    {"fold", "tamis fold FILE [OPTION]...\n"
             "Halves every vector, without the keys. A filter that is at most half full keeps its\n"
             "rate; another needs --restate, and then states the new one.\n\n"
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
     "Takes all keys or records out. Family, growth and rate stay.\n\n"
     "      --json           print its figures as info does\n" OPEN_OPTIONS WAIT_OPTION "\n"
     "Examples:\n"
     "  $ tamis create users.tamis\n"
     "  $ tamis add users.tamis ann\n"
     "  $ tamis clear users.tamis\n"
     "  $ tamis check -c users.tamis ann\n"
     "  0\n"},
    {"merge",
     "tamis merge -o OUT A B... [OPTION]...\n"
     "The union of filters, or of indexes, of one family, growth and layout. OUT may be one\n"
     "of them.\n\n"
     "      --restate        if the rate cannot be kept, state the new one\n"
     "      --concat         keep the vectors apart even where they could be united\n"
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
                  "The bits that all have: what is in every set, and false positives. For fixed\n"
                  "filters of one family and shape; the result is plain.\n\n"
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
     "      --bits-only      without counters; what it is applied to becomes read-only\n" OPEN_OPTIONS
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
     "Brings a filter to the version that tamis diff was given. A patch applies to the\n"
     "version it was made from and to no other.\n\n"
     "  -p, --patch FILE     read the patch from FILE\n"
     "      --json           print its figures as info does\n" OPEN_OPTIONS WAIT_OPTION "\n"
     "Examples: see tamis help diff\n"},
    {"bench",
     "tamis bench [OPTION]...\n"
     "Measures on this machine, in a few seconds: lookups of absent keys and inserts, in batches and\n"
     "one by one, for a filter sized in advance, one grown from 1,000 keys and a deletable one; beside\n"
     "the floor, the time to fetch one random cache line of as much memory. Keys are 8 bytes, hashing\n"
     "is included; medians of five. Quiet machines measure best.\n\n"
     "      --items N        keys in each filter (10M)\n"
     "      --fpp P          false positive rate (0.01)\n"
     "      --json           print [version items fpp], and in [fixed], [scalable], [deletable]:\n"
     "                       [lookup_many_ns lookup_ns add_many_ns add_ns rate bits_per_item vectors],\n"
     "                       times the floor [lookup_many_floors] and the fixed filter\n"
     "                       [lookup_many_fixed]; fixed also [floor_ns hash_ns threads\n"
     "                       threads_speedup]\n\n"
     "Examples:\n"
     "  $ tamis bench --items 10k --json >bench.json\n"},
    {"publish", help_publish},
    {"follow", help_follow},
    {"locate", help_locate},
    {"forget", help_forget},
};

static const char overview[] =
    "tamis: could this be here? Filters that answer \"no\" for sure or \"maybe\" at a stated rate.\n\n"
    "  tamis index INPUT...         a catalog of logs and tables: files, folders\n"
    "  tamis find CATALOG a=VALUE...   the records that match, reading only what may have one\n"
    "  tamis create FILE            make a filter; with --attrs, an index of records\n"
    "  tamis add FILE [KEY]...      put keys in; without KEY, the lines of standard input\n"
    "  tamis remove FILE [KEY]...   take keys out (create --deletable)\n"
    "  tamis check FILE [KEY]...    print the keys that may be members, like grep; -v the others\n"
    "  tamis dedup [FILE]           print the lines not seen before\n"
    "  tamis info FILE              what it is and how full\n"
    "  tamis verify FILE...         check every byte\n"
    "  tamis fold FILE              halve it\n"
    "  tamis clear FILE             empty it\n"
    "  tamis merge -o OUT A B...    union\n"
    "  tamis intersect -o OUT A B...\n"
    "  tamis diff OLD NEW > PATCH   what changed\n"
    "  tamis apply FILE < PATCH     the same change again\n"
    "  tamis publish FILE --to ADDRESS --as OWNER   to followers, as it changes\n"
    "  tamis follow ADDRESS -o DIRECTORY   copies of what is published\n"
    "  tamis locate DIRECTORY [KEY]...     which of them may have it\n"
    "  tamis forget ADDRESS|DIRECTORY OWNER...   one that does not come again\n"
    "  tamis plan FORM              sizes, rates, thresholds\n"
    "  tamis bench                  how fast filters are on this machine\n"
    "  tamis help [VERB]            more on one of them\n"
    "  tamis version\n\n"
    "Status: 0 found or done, 1 none found, 2 error. --json prints reports for programs.\n";

const char help_first[] =
    "tamis: could this be here? \"No\" is a proof; \"maybe\" is wrong at a rate you choose.\n\n"
    "Find the few records you want in folders of logs and tables, without reading everything:\n"
    "  tamis index logs/                                  finds out what they are; again: what is new\n"
    "  tamis find logs ip=10.1.2.3 user=ann               the records, byte for byte\n"
    "  tamis find logs 'connection refused' --since 2h    words and times; tamis find logs: what else\n\n"
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
    static const struct {
        const char *verb, *text;
    } long_ones[] = {{"plan", help_plan}, {"index", help_index}, {"find", help_find}};
    for (size_t i = 0; i < COUNT(long_ones); i++)
        if (strcmp(verb, long_ones[i].verb) == 0) {
            put_text(long_ones[i].text);
            return true;
        }
    for (size_t i = 0; i < COUNT(texts); i++)
        if (strcmp(verb, texts[i].verb) == 0) {
            put_text(texts[i].text);
            return true;
        }
    return false;
}
