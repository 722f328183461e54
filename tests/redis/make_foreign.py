#!/usr/bin/python3
"""Writes tests/redis/data/redisbloom.rdb and .json, and cuckoo.rdb and .json: filters made by a real
RedisBloom, and its answers.

    tests/redis/make_foreign.py REDISBLOOM.so

The filters are small and their rates high, so that each has false positives among the items that are
queried. An implementation that gives the same answers has the same hash and layout.
"""
import base64
import json
import os
import shutil
import sys

import conftest
import redis

FILTERS = {  # RESERVE, and how many items are added
    "empty": (["0.01", "100"], 0),
    "some": (["0.2", "200"], 90),
    "full": (["0.2", "60"], 60),
    "grown": (["0.2", "20"], 300),
    "fast": (["0.1", "10", "EXPANSION", "4"], 250),
    "fixed": (["0.2", "80", "NONSCALING"], 50),
    "tight": (["0.2", "40", "NONSCALING"], 200),
    "exact": (["0.000000001", "30"], 20),
}
CUCKOOS = {  # RESERVE, the number of items added, and n: every n-th of them is removed again
    "empty": (["100"], 0, 0),
    "some": (["500"], 300, 7),
    "wide": (["64", "BUCKETSIZE", "6", "MAXITERATIONS", "500"], 60, 0),
    "grown": (["32", "EXPANSION", "2"], 400, 50),
    "equal": (["32", "BUCKETSIZE", "1"], 200, 0),
    "fixed": (["64", "EXPANSION", "0"], 50, 5),
}
ASKED = 1000


def chunks_of(do, scandump, name):
    cursor, chunks = do(scandump, name, 0)[0], [do(scandump, name, 0)]
    while cursor:
        cursor, data = do(scandump, name, cursor)
        if cursor:
            chunks.append([cursor, data])
    return [[c, base64.b64encode(data).decode()] for c, data in chunks if c]  # none of an empty cuckoo filter


def cuckoo(do, name):
    asked = ["item:%d" % i for i in range(ASKED)]
    return {"answers": "".join(map(str, do("CF.MEXISTS", name, *asked))),
            "counts": [do("CF.COUNT", name, item) for item in asked], "info": do("CF.INFO", name)[2:][1::2],
            "chunks": chunks_of(do, "CF.SCANDUMP", name)}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    conftest.MODULE = os.path.abspath(sys.argv[1])
    blooms()
    cuckoos()


def cuckoos():
    """What each filter is when it is saved; and what it is after more items were added and a few removed."""
    server = conftest.Server(rdbcompression="no")
    do = server.client().execute_command
    said = {}
    for name, (reserve, n, every) in CUCKOOS.items():
        do("CF.RESERVE", name, *reserve)
        for i in range(n):
            do("CF.ADD", name, "item:%d" % i)
        for i in range(0, n if every else 0, every or 1):
            do("CF.DEL", name, "item:%d" % i)
        said[name] = cuckoo(do, name)
    save(server, "cuckoo")
    for name in CUCKOOS:
        taken = ""
        for i in range(ASKED, ASKED + 300):
            try:
                taken += str(do("CF.ADDNX" if i % 3 else "CF.ADD", name, "item:%d" % i))
            except redis.ResponseError:
                taken += "f"
        removed = "".join(str(do("CF.DEL", name, "item:%d" % i)) for i in range(ASKED + 1, ASKED + 300, 40))
        said[name]["after"] = dict(cuckoo(do, name), taken=taken, removed=removed)
    write("cuckoo", said)
    server.drop()


def blooms():
    server = conftest.Server(rdbcompression="no")
    do = server.client().execute_command
    said = {}
    for name, (reserve, n) in FILTERS.items():
        do("BF.RESERVE", name, *reserve)
        if n:
            do("BF.MADD", name, *["item:%d" % i for i in range(n)])
        answers = do("BF.MEXISTS", name, *["item:%d" % i for i in range(ASKED)])
        info = do("BF.INFO", name)
        said[name] = {"answers": "".join(map(str, answers)), "items": do("BF.CARD", name),
                      "capacity": info[1], "filters": info[5], "expansion": info[9],
                      "chunks": chunks_of(do, "BF.SCANDUMP", name)}
    do("PEXPIREAT", "exact", 4102444800000)
    save(server, "redisbloom")
    write("redisbloom", said)
    server.drop()


DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")


def save(server, name):
    server.r.save()
    shutil.copy(os.path.join(server.folder, "dump.rdb"), os.path.join(DATA, name + ".rdb"))


def write(name, said):
    with open(os.path.join(DATA, name + ".json"), "w") as out:
        out.write("{\n" + ",\n".join(" %s: %s" % (json.dumps(key), json.dumps(value))
                                     for key, value in said.items()) + "\n}\n")


if __name__ == "__main__":
    main()
