"""What a real RedisBloom wrote (make_foreign.py): files, chunks and payloads, as they are and damaged."""
import base64
import json
import os
import shutil
import struct

import redis

from conftest import wait
from test_hostile import mutated

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
ITEMS = ["item:%d" % i for i in range(1000)]


def said(name):
    """Each filter of data/NAME.rdb with what it was and answered."""
    with open(os.path.join(DATA, name + ".json")) as file:
        return json.load(file)


def moved(servers, name, **options):
    """A server that finds the file data/NAME.rdb."""
    server = servers(**options)
    server.stop()
    shutil.copy(os.path.join(DATA, name + ".rdb"), os.path.join(server.folder, "dump.rdb"))
    server.start()
    return server


def chunks_of(filter_said):
    """What SCANDUMP said, as cursors and bytes."""
    return [(cursor, base64.b64decode(data)) for cursor, data in filter_said["chunks"]]


def load(r, command, key, filter_said):
    for cursor, data in chunks_of(filter_said):
        r.execute_command(command, key, cursor, data)


def scandump(server, command, name):
    """All chunks, in the form of `said`."""
    found, cursor = [], 0
    while True:
        cursor, data = server.client().execute_command(command, name, cursor)
        if cursor == 0:
            assert data in (None, b"")
            return found
        found.append([cursor, base64.b64encode(data).decode()])


def rewritten(r):
    """Waits until the append-only file is rewritten."""
    wait(lambda: r.info("persistence")["aof_rewrite_in_progress"] == 0 and
         r.info("persistence")["aof_rewrite_scheduled"] == 0)


def damaged(r, payload, rng, times, use, refusals):
    """Payloads with a byte changed and the right checksum: loaded or refused, and what is loaded can be used,
    unless one of these words says why not, and saved again. How many were loaded."""
    taken = 0
    for _ in range(times):
        try:
            r.restore("bad", 0, mutated(payload, rng), replace=True)
        except redis.ResponseError as error:
            assert "Bad data format" in str(error)
            continue
        taken += 1
        try:
            use("bad")
        except redis.ResponseError as error:
            assert any(words in str(error) for words in refusals), error
        r.execute_command("COPY", "bad", "again", "REPLACE")
        r.dump("again")
    return taken


SCALES, NONSCALING = 4, 4 + 8  # options of a Bloom filter


def large(r, kind, key, data, options=SCALES, capacity=10**7):
    """A filter of one part with these bytes in two chunks; of CF a power of 2, or three of them."""
    size = len(data)
    if kind == "BF":
        head = struct.pack("<QIIIQQQddIQB", 0, 1, options, 2, size, 8 * size, 0, 0.01, 9.6, 7, capacity, 0)
    else:
        slots = 3 if size & (size - 1) else 2
        head = struct.pack("<QQQQHHH", 0, size // slots, 0, 1, slots, 20, 1)
    r.execute_command(kind + ".LOADCHUNK", key, 1, head)
    r.execute_command(kind + ".LOADCHUNK", key, size + 1, data)
