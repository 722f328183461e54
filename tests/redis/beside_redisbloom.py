#!/usr/bin/python3
"""One random list of BF.* and CF.* commands on RedisBloom and on this module: where do replies differ?

    tests/redis/beside_redisbloom.py REDISBLOOM.so [COMMANDS [SEED]]     default 20000, 1

Two private servers (REDIS_SERVER, or redis-server), the same commands, each in protocol 2 or 3, right ones
and wrong ones; replies are compared byte for byte. What is known to differ, and said so in docs/redis.md,
is counted under its name in KNOWN; anything else is printed, and ends it with status 1.
"""
import os
import random
import socket
import sys

import conftest
from conftest import Server, encode

KEYS = ["k%d" % i for i in range(8)] + ["text", "list"]
RATES = ["0.000001", "1e-7", "0.0000005", "0", "1", "1.5", "-1", "abc", "nan"]
NUMBERS = ["1", "2", "10", "100", "1000", "0", "-1", "abc", "1073741824", "1073741825", "1.5", ""]
SMALL = ["10", "100", "1000", "500"]


def words_of_insert(rng, cuckoo):
    words = []
    if rng.random() < 0.3:
        words += ["CAPACITY", rng.choice(NUMBERS + SMALL * 4)]
    if not cuckoo and rng.random() < 0.5:
        words += ["ERROR", rng.choice(RATES[:3] * 4 + RATES)]
    if not cuckoo and rng.random() < 0.2:
        words += ["EXPANSION", rng.choice(["0", "1", "2", "4", "x", "-1", "32769"])]
    if not cuckoo and rng.random() < 0.1:
        words += ["NONSCALING"]
    if rng.random() < 0.2:
        words += ["NOCREATE"]
    if rng.random() < 0.03:
        words += ["BOGUS"]
    return words


def command(rng):
    """A command; most of them right."""
    key = rng.choice(KEYS)
    item = ["item%d" % rng.randrange(60) for _ in range(rng.choice([0, 1, 1, 2, 3]))] or ["", "é\0"]
    kind = rng.choice(["BF", "CF"])
    small = "%s.%s" % (kind, rng.choice(["ADD", "EXISTS"] + ["ADDNX", "COUNT", "DEL"] * (kind == "CF")))
    many = "%s.MEXISTS" % kind if kind == "CF" else rng.choice(["BF.MADD", "BF.MEXISTS"])
    insert = rng.choice(["CF.INSERT", "CF.INSERTNX"]) if kind == "CF" else "BF.INSERT"
    reserve = ["BF.RESERVE", key, rng.choice(RATES[:3] * 5 + RATES), rng.choice(SMALL * 4 + NUMBERS)]
    if kind == "CF":
        reserve = ["CF.RESERVE", key, rng.choice(SMALL * 4 + NUMBERS)]
        for word, values in (("BUCKETSIZE", ["1", "1", "0", "256", "x"]),
                             ("MAXITERATIONS", ["20", "0", "65536", "y"]),
                             ("EXPANSION", ["1", "2", "-1", "32769", "z"])):
            if rng.random() < 0.3:
                reserve += [word, rng.choice(values)]
    elif rng.random() < 0.3:
        reserve += rng.choice([["NONSCALING"], ["EXPANSION", rng.choice(["1", "2", "0", "x", "-1"])],
                               ["EXPANSION"], ["EXPANSION", "2", "NONSCALING"]])
    info = [kind + ".INFO", key]
    if kind == "BF" and rng.random() < 0.6:
        info += [rng.choice(["CAPACITY", "ITEMS", "EXPANSION", "filters", "BOGUS"])]
    choices = [[small, key, item[0]], [small, key, item[0]], [many, key] + item, reserve, info,
               [insert, key] + words_of_insert(rng, kind == "CF") + ["ITEMS"] + item,
               ["BF.CARD", key], ["DEL", key], [kind + ".SCANDUMP", key, rng.choice(["x", "-1"])],
               [kind + ".LOADCHUNK", key, rng.choice(["1", "0", "x", "77"]), "bad"],
               ["CF.COMPACT", key], [small, key], [insert, key], [many]]
    weights = [8, 8, 6, 2, 3, 5, 2, 1.5, 0.4, 0.4, 0.4, 0.1, 0.1, 0.1]
    return rng.choices(choices, weights)[0]


def items_of(words):
    return words[words.index("ITEMS") + 1:] if "ITEMS" in words else words[2:]


def replies_of(said):
    lines = said.split(b"\r\n")[:-1]
    return lines[1:] if said.startswith(b"*") else lines


def false_positive(words, theirs, ours, members):
    """Do they differ first in an item that nobody added, which one of them takes for a member?"""
    if words[0] not in ("BF.ADD", "BF.MADD", "BF.INSERT", "BF.EXISTS", "BF.MEXISTS"):
        return False
    there = (b":1", b"#t") if "EXISTS" in words[0] else (b":0", b"#f")
    for item, one, other in zip(items_of(words), replies_of(theirs), replies_of(ours)):
        if one != other:
            return item not in members and (one in there or other in there)
    return False


def asks_of_cuckoo(words):
    return words[0] in ("CF.ADDNX", "CF.INSERTNX", "CF.EXISTS", "CF.MEXISTS", "CF.COUNT", "CF.DEL")


KNOWN = [
    ("INFO: sizes and parts are those of this implementation",
     lambda w, t, o: w[0].endswith(".INFO") and t[:1] == o[:1] != b"-"),
    ("an unknown option of RESERVE is an error", lambda w, t, o: b"unknown option" in o),
    ("NaN is refused as a rate", lambda w, t, o: "nan" in w),
    ("SCANDUMP and LOADCHUNK refuse cursors and chunks that are not theirs",
     lambda w, t, o: w[0].endswith(("SCANDUMP", "LOADCHUNK")) and o[:1] == b"-"),
    ("with several wrong options the first one is named",
     lambda w, t, o: w[0] == "CF.RESERVE" and t[:1] == o[:1] == b"-" and len(w) > 5),
    ("there is a limit on the memory of a value",
     lambda w, t, o: "1073741824" in w and b"would take more than" in o),
    ("false positives of one of the two: a cuckoo filter has 1.6 %",
     lambda w, t, o: asks_of_cuckoo(w) and t[:1] == o[:1] != b"-"),
]


class Line:
    """One connection in one protocol."""

    def __init__(self, server, resp):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(server.socket)
        self.ask("HELLO", str(resp))

    def ask(self, *words):
        end = b"$8\r\nThe-end.\r\n"
        self.socket.sendall(encode(*words) + encode("ECHO", "The-end."))
        return conftest.read_until(self.socket, end)[:-len(end)]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 20000
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    servers, counts, family, members, unknown = [Server()], {}, {}, {}, 0
    ours = servers[0]
    conftest.MODULE = os.path.abspath(sys.argv[1])
    try:
        servers.append(Server())
        theirs = servers[1]
        lines = [(Line(theirs, resp), Line(ours, resp)) for resp in (2, 3)]
        for a, b in lines:
            for line in (a, b):
                line.ask("SET", "text", "x"), line.ask("DEL", "list"), line.ask("RPUSH", "list", "x")
        for _ in range(n):
            words = command(rng)
            if words[0] == "DEL" and words[1] in ("text", "list"):
                continue
            key, made = words[1] if len(words) > 1 else "", words[0][:2]
            if family.get(key, made) != made and words[0] != "DEL":
                continue  # of the other family: RedisBloom has two types, here all are filters
            a, b = rng.choice(lines)
            said = a.ask(*words), b.ask(*words)
            exists = a.ask("TYPE", key) in (b"+MBbloom--\r\n", b"+MBbloomCF\r\n")
            if exists:
                family.setdefault(key, made)
            else:
                family.pop(key, None), members.pop(key, None)
            if said[0] == said[1]:
                if words[0] in ("BF.ADD", "BF.MADD", "BF.INSERT"):
                    members.setdefault(key, set()).update(items_of(words))
                continue
            name = next((name for name, known in KNOWN if known(words, *said)), None)
            if name is None and false_positive(words, *said, members.get(key, ())):
                name = "false positives of one of the two: a filter has 1 % if no rate was stated"
            counts[name] = counts.get(name, 0) + 1
            if name is None:
                unknown += 1
                if unknown <= 40:
                    print("%r\n  theirs %r\n  ours   %r" % (" ".join(words), said[0][:150], said[1][:150]))
            if key not in ("text", "list") and (name is None or not name.startswith("INFO")):
                a.ask("DEL", key), b.ask("DEL", key), family.pop(key, None), members.pop(key, None)
    finally:
        for server in servers:
            server.drop()
    for name, count in sorted(counts.items(), key=str):
        print("%6d  %s" % (count, name or "UNKNOWN"))
    print("%d commands" % n)
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
