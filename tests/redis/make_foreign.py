#!/usr/bin/python3
"""Writes tests/redis/data/redisbloom.rdb and .json: filters of a real RedisBloom, and what it answers.

    tests/redis/make_foreign.py REDISBLOOM.so

The rates are high and the filters small, so that every filter has false positives among the items asked
for: who answers alike has the same hash and layout.
"""
import base64
import json
import os
import shutil
import sys

import conftest

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
ASKED = 1000


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    conftest.MODULE = os.path.abspath(sys.argv[1])
    server = conftest.Server(rdbcompression="no")
    do = server.client().execute_command
    said = {}
    for name, (reserve, n) in FILTERS.items():
        do("BF.RESERVE", name, *reserve)
        if n:
            do("BF.MADD", name, *["item:%d" % i for i in range(n)])
        answers = do("BF.MEXISTS", name, *["item:%d" % i for i in range(ASKED)])
        cursor, chunks = do("BF.SCANDUMP", name, 0)[0], [do("BF.SCANDUMP", name, 0)]
        while cursor:
            cursor, data = do("BF.SCANDUMP", name, cursor)
            if cursor:
                chunks.append([cursor, data])
        info = do("BF.INFO", name)
        said[name] = {"answers": "".join(map(str, answers)), "items": do("BF.CARD", name),
                      "capacity": info[1], "filters": info[5], "expansion": info[9],
                      "chunks": [[c, base64.b64encode(data).decode()] for c, data in chunks]}
    do("PEXPIREAT", "exact", 4102444800000)
    do("SAVE")
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
    shutil.copy(os.path.join(server.folder, "dump.rdb"), os.path.join(folder, "redisbloom.rdb"))
    with open(os.path.join(folder, "redisbloom.json"), "w") as out:
        json.dump(said, out, indent=1)
        out.write("\n")
    server.drop()


if __name__ == "__main__":
    main()
