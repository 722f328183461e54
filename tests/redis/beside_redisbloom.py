#!/usr/bin/python3
"""One random list of BF.* and CF.* commands on RedisBloom and on this module: where do replies differ?

    tests/redis/beside_redisbloom.py REDISBLOOM.so [COMMANDS [SEED]]     default 20000, 1

Two private servers (REDIS_SERVER, or redis-server; RedisBloom 8 needs Redis 8), the same commands, each in
protocol 2 or 3, right ones and wrong ones; replies are compared byte for byte, without the sizes and numbers of parts
in INFO. What is known to differ, and said so in docs/redis.md, is counted under its name in KNOWN; anything else is
printed, and ends it with status 1.
"""
import os
import random
import re
import socket
import sys

import conftest
from conftest import Server, encode

KEYS = ["k%d" % i for i in range(8)] + ["text", "list", "", "EXPANSION"]
RATES = ["0.000001", "1e-7", "0.0000005"]
BAD_RATES = ["0", "1", "1.5", "-1", "abc", "nan", "inf", "", " 0.01", "0.01x", "-0", "1e-400", "0x1p-9"]
SMALL = ["10", "100", "1000", "500"]
NUMBERS = ["1", "2", "3", "4", "10", "0", "-1", "abc", "1073741824", "1073741825", "1.5", "", "007", "+5", " 5", "5 ",
           "1e3", "0x10", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
           "18446744073709551617"]
FACTORS = ["0", "1", "2", "4", "x", "-1", "32768", "32769", "", "9223372036854775808"]
BAD_CURSORS = {"SCANDUMP": ["x", "-1", "", "9223372036854775808"], "LOADCHUNK": ["1", "0", "x", "77", ""]}
BAD_CHUNKS = ["bad", "", "\0" * 38, "\0" * 73]
WORDS = {"BF": ["RESERVE", "ADD", "MADD", "INSERT", "EXISTS", "MEXISTS", "CARD", "INFO", "SCANDUMP", "LOADCHUNK"],
         "CF": ["RESERVE", "ADD", "ADDNX", "INSERT", "INSERTNX", "EXISTS", "MEXISTS", "DEL", "COUNT", "INFO", "COMPACT",
                "SCANDUMP", "LOADCHUNK"]}


def number(rng, usual, all_numbers):
    return rng.choice(usual if rng.random() < 0.8 else all_numbers)


def options_of_insert(rng, cuckoo):
    words = []
    for chance, word, usual, others in (
            (0.3, "CAPACITY", SMALL, NUMBERS), (0.5, "ERROR", RATES, BAD_RATES), (0.2, "EXPANSION", "124", FACTORS)):
        if rng.random() < chance and (word == "CAPACITY" or not cuckoo):
            words += [word, number(rng, usual, others)] * (2 if rng.random() < 0.05 else 1)
    if not cuckoo and rng.random() < 0.1:
        words += ["NONSCALING"]
    if rng.random() < 0.2:
        words += ["NOCREATE"]
    if rng.random() < 0.03:
        words += [rng.choice(["BOGUS", "", "zzz", "7"])]
    return words


def items(rng):
    """Of which some may be there already; many of them make small filters grow."""
    n = rng.choice([1, 1, 2, 3, 3, 40])
    some = ["item%d" % rng.randrange(60 if n < 40 else 400) for _ in range(n)]
    return some + rng.choice([[]] * 9 + [["", "\u00e9\0", "\r\n", "x" * 5000]])


def reserve(rng, kind, key):
    if kind == "CF":
        words = ["CF.RESERVE", key, number(rng, SMALL, NUMBERS)]
        for word, usual, others in (("BUCKETSIZE", "1", ["0", "255", "256", "x", "-1"]),
                                    ("MAXITERATIONS", ["20"], ["0", "65535", "65536", "y"]),
                                    ("EXPANSION", "12", FACTORS)):
            if rng.random() < 0.3:
                words += [word, number(rng, usual, others)]
        return words
    words = ["BF.RESERVE", key, number(rng, RATES, BAD_RATES), number(rng, SMALL, NUMBERS)]
    factor = number(rng, "124", FACTORS)
    more = [["NONSCALING"], ["EXPANSION", factor], ["EXPANSION"], ["EXPANSION", factor, "NONSCALING"],
            ["NONSCALING", "EXPANSION", factor], ["BOGUS"]]
    return words + (rng.choice(more) if rng.random() < 0.3 else [])


def command(rng):
    """A command; most of them right."""
    key, kind = rng.choice(KEYS), rng.choice(["BF", "CF"])
    word = rng.choice(WORDS[kind])
    words = [kind + "." + word, key]
    if word == "RESERVE":
        words = reserve(rng, kind, key)
    elif word in ("MADD", "MEXISTS"):
        words += items(rng)
    elif word in ("INSERT", "INSERTNX"):
        words += options_of_insert(rng, kind == "CF") + ["ITEMS"] + items(rng)
    elif word == "INFO" and kind == "BF" and rng.random() < 0.6:
        words += [rng.choice(["CAPACITY", "ITEMS", "EXPANSION", "FILTERS", "SIZE", "BOGUS", ""])]
    elif word == "SCANDUMP":
        words += [rng.choice(BAD_CURSORS[word])]
    elif word == "LOADCHUNK":
        words += [rng.choice(BAD_CURSORS[word]), rng.choice(BAD_CHUNKS)]
    elif word not in ("CARD", "INFO", "COMPACT"):
        words += items(rng)[:1]
    if rng.random() < 0.05:
        words = ["DEL", key]
    if rng.random() < 0.05:  # too few, or too many
        words = words[:rng.randrange(1, len(words) + 1)] + rng.choice([[], [], ["more"], ["ITEMS"]])
    lower = rng.random() < 0.1
    return [w.lower() if lower and w.isupper() and i != 1 else w for i, w in enumerate(words)]


def items_of(words):
    upper = [w.upper() for w in words]
    return words[upper.index("ITEMS") + 1:] if "ITEMS" in upper else words[2:]


def replies_of(said):
    lines = said.split(b"\r\n")[:-1]
    return lines[1:] if said.startswith(b"*") else lines


def false_positive(words, theirs, ours, members):
    """Do they differ first in an item that nobody added, which one of them takes for a member?"""
    if words[0].upper() not in ("BF.ADD", "BF.MADD", "BF.INSERT", "BF.EXISTS", "BF.MEXISTS"):
        return False
    there = (b":1", b"#t") if "EXISTS" in words[0].upper() else (b":0", b"#f")
    for item, one, other in zip(items_of(words), replies_of(theirs), replies_of(ours)):
        if one != other:
            return item not in members and (one in there or other in there)
    return False


def without_sizes(words, said):
    """INFO, without what is of one implementation."""
    ours = rb"Size|Capacity|Number of (?:filters|buckets|items deleted)|Max iterations"
    said = re.sub(rb"(\+(?:" + ours + rb")\r\n):\d+", rb"\1:n", said)
    if words[0].upper() == "CF.INFO":  # expands or does not
        said = re.sub(rb"(\+Expansion rate\r\n):[1-9]\d*", rb"\1:n", said)
    return re.sub(rb":\d+", b":n", said) if words[-1].upper() in ("SIZE", "CAPACITY", "FILTERS") else said


def name_of(words):
    return words[0].upper()


def bad_cursor(words):
    """One that no SCANDUMP gave."""
    word = name_of(words)[3:]
    return len(words) == {"SCANDUMP": 3, "LOADCHUNK": 4}.get(word) and words[2] in BAD_CURSORS[word]


def number_in(reply):
    """How often, of a reply to one item; None: an error, or no number."""
    if reply in (b"#t", b"#f"):
        return int(reply == b"#t")
    return int(reply[1:]) if re.fullmatch(rb":\d+", reply) else None


ADDS = ("CF.ADD", "CF.ADDNX", "CF.INSERT", "CF.INSERTNX")


def cuckoo_counts(words, said, counts):
    """Updates how often each item is in the filter, from the reply to a command."""
    word = name_of(words)
    for item, reply in zip(items_of(words), replies_of(said)):
        done = number_in(reply) == 1
        counts[item] = counts.get(item, 0) + (done if word in ADDS else -done if word == "CF.DEL" else 0)


def cuckoo_false_positive(words, theirs, ours, counts):
    """Do they differ first in an item that is there less often than one of them says, and no less often than
    either? Then it is one of the others."""
    word, counts = name_of(words), dict(counts)
    if word not in ("CF.ADDNX", "CF.INSERTNX", "CF.EXISTS", "CF.MEXISTS", "CF.COUNT", "CF.DEL"):
        return False
    for item, one, other in zip(items_of(words), replies_of(theirs), replies_of(ours)):
        there, said = counts.get(item, 0), (number_in(one), number_in(other))
        if one == other:
            counts[item] = there + (word in ADDS and said[0] == 1)
        elif None in said:
            return False
        elif word == "CF.COUNT":
            return min(said) >= there
        else:  # of a member both say the same; ADDNX says 0 of what is there
            return there == 0
    return False


WRONG_NUMBER = b"wrong number of arguments"
KNOWN = [
    ("an unknown option of RESERVE is an error, and a key may be called like an option",
     lambda w, t, o: ("RESERVE" in name_of(w) and b"unknown option" in o) or (
         name_of(w).endswith(("RESERVE", "INFO")) and w[1:2] == ["EXPANSION"])),
    ("NaN is refused as a rate", lambda w, t, o: "nan" in w),
    ("SCANDUMP and LOADCHUNK refuse cursors and chunks that are not theirs",
     lambda w, t, o: bad_cursor(w) and o[:1] == b"-"),
    ("of several wrong options the first is named",
     lambda w, t, o: "RESERVE" in name_of(w) and t[:1] == o[:1] == b"-" and len(w) > 5),
    ("there is a limit on the memory of a value",
     lambda w, t, o: b"would take more than" in o and (t[:1] != b"-" or b"nsufficient memory" in t)),
]


class Line:
    """One connection in one protocol."""

    def __init__(self, server, resp):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(server.socket)
        self.ask("HELLO", str(resp))

    def send(self, *words):
        self.socket.sendall(encode(*words) + encode("ECHO", "The-end."))

    def reply(self):
        end = b"$8\r\nThe-end.\r\n"
        return conftest.read_until(self.socket, end)[:-len(end)]

    def ask(self, *words):
        self.send(*words)
        return self.reply()


class Run:
    def __init__(self, theirs, ours):
        self.lines = [(Line(theirs, resp), Line(ours, resp)) for resp in (2, 3)]
        self.family, self.members = {}, {}  # of a key: BF or CF, and what was added
        self.counted, self.fixed = {}, set()  # of CF: how often each item; keys that may not grow
        self.counts, self.unknown = {}, 0
        for a, b in self.lines:
            for line in (a, b):
                line.ask("SET", "text", "x"), line.ask("DEL", "list"), line.ask("RPUSH", "list", "x")

    def forget(self, key):
        self.family.pop(key, None), self.members.pop(key, None), self.counted.pop(key, None), self.fixed.discard(key)

    def step(self, rng):
        words = command(rng)
        key = words[1] if len(words) > 1 else None
        kind = words[0][:2].upper()
        if words[0].upper() == "DEL" and key in ("text", "list"):
            return
        other = self.family.get(key, kind) != kind and words[0].upper() != "DEL"
        if other and rng.random() < 0.9:
            return
        a, b = rng.choice(self.lines)
        for line in (a, b):
            line.send(*words)
        theirs, ours = a.reply(), b.reply()
        if words[0].upper().endswith(".INFO"):
            theirs, ours = without_sizes(words, theirs), without_sizes(words, ours)
        if key is not None and a.ask("TYPE", key) in (b"+MBbloom--\r\n", b"+MBbloomCF\r\n"):
            self.family.setdefault(key, kind)
        elif key is not None:
            self.forget(key)
        if theirs == ours and name_of(words) == "CF.RESERVE" and theirs == b"+OK\r\n" and "0" in words[3:]:
            self.fixed.add(key)
        if theirs == ours:
            if name_of(words).startswith("CF.") and key is not None:
                cuckoo_counts(words, theirs, self.counted.setdefault(key, {}))
            if words[0].upper() in ("BF.ADD", "BF.MADD", "BF.INSERT"):
                self.members.setdefault(key, set()).update(
                    item for item, reply in zip(items_of(words), replies_of(theirs)) if number_in(reply) is not None)
        else:
            self.differs(words, theirs, ours, other)
            if key is not None and key not in ("text", "list"):
                a.ask("DEL", key), b.ask("DEL", key), self.forget(key)

    def differs(self, words, theirs, ours, other):
        name = next((name for name, known in KNOWN if known(words, theirs, ours)), None)
        if other and (b"WRONGTYPE" in theirs or "EXISTS" in name_of(words) or name_of(words) == "CF.COUNT"):
            name = "RedisBloom has two types, of BF and CF; here all are filters"
        if name is None and cuckoo_false_positive(words, theirs, ours, self.counted.get(words[1], {})):
            name = "false positives of one of the two: a cuckoo filter has 1.6 %"
        if name is None and name_of(words) in ADDS and words[1] in self.fixed and (
                b"Filter is full" in theirs + ours or b":-1" in theirs + ours):
            name = "a cuckoo filter that does not grow refuses by chance, and a full one of ours by number"
        if name is None and false_positive(words, theirs, ours, self.members.get(words[1], ())):
            name = "false positives of one of the two: a filter has 1 % if no rate was stated"
        self.counts[name] = self.counts.get(name, 0) + 1
        if name is None:
            self.unknown += 1
            if self.unknown <= 40:
                print("%r\n  theirs %r\n  ours   %r" % (" ".join(words)[:150], theirs[:150], ours[:150]))

    def copy_over(self):
        """Every filter, as a client copies it: SCANDUMP and LOADCHUNK; both sides go on with the copies."""
        for key, kind in self.family.items():
            for line in self.lines[0]:
                copied(line, kind, key)


def copied(line, kind, key):
    cursor = b"0"
    line.ask("DEL", "copy")
    while True:
        said = line.ask(kind + ".SCANDUMP", key, cursor)
        match = re.match(rb"\*2\r\n:(\d+)\r\n\$(-?\d+)\r\n", said)
        cursor, data = match[1], said[match.end():-2]
        if cursor == b"0":
            break
        assert line.ask(kind + ".LOADCHUNK", "copy", cursor, data) == b"+OK\r\n", (kind, key)
    if line.ask("EXISTS", "copy") == b":1\r\n":  # RedisBloom dumps nothing of an empty cuckoo filter
        line.ask("RENAME", "copy", key)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 20000
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    servers = [Server()]
    conftest.MODULE = os.path.abspath(sys.argv[1])
    try:
        servers.append(Server())
        run = Run(servers[1], servers[0])
        for i in range(n):
            run.step(rng)
            if i % 1000 == 999:
                run.copy_over()
    finally:
        for server in servers:
            server.drop()
    for name, count in sorted(run.counts.items(), key=str):
        print("%6d  %s" % (count, name or "UNKNOWN"))
    print("%d commands" % n)
    return 1 if run.unknown else 0


if __name__ == "__main__":
    sys.exit(main())
