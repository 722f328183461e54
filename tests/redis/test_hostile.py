"""Bytes and commands by someone who means harm: the server never dies, hangs or grows without bound.

A payload of RESTORE begins with the type and the module's id and ends with a version and a checksum of
all before; all four are made right here, so that the mutations reach the module. (With another type
they reach the server's own loaders, which try to allocate what a length says.)
"""
import os
import random
import struct
import sys

import pytest
import redis

from conftest import ASAN, LONG, ROOT, wait
from sets import KINDS, Load
from test_keys import info

sys.path.insert(0, os.path.join(ROOT, "tools"))
from decode import xxh3  # noqa: E402

SEED = int(os.environ.get("TAMIS_SEED", "1"))
PAYLOADS = 100000 if LONG else 3000 if ASAN else 6000
COMMANDS = 100000 if LONG else 3000 if ASAN else 6000


def crc64_table():
    table = []
    for i in range(256):
        crc = i
        for _ in range(8):
            crc = crc >> 1 ^ (0x95ac9329ac4bc9b5 if crc & 1 else 0)
        table.append(crc)
    return table


TABLE = crc64_table()
TYPE = 10  # bytes of the type and the id at the start of a payload


def crc64(data):
    """CRC-64 of Jones, as the server computes it."""
    crc = 0
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc


def sealed(body, version):
    """The body of a payload, with its version and the right checksum."""
    whole = body + version
    return whole + struct.pack("<Q", crc64(whole))


def mutated(payload, rng):
    """The payload with a few bytes changed or its end cut off, and the right checksum."""
    body = bytearray(payload[:-10])
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.randrange(10, len(body)) if rng.random() < 0.5 else rng.randrange(10, 60)
        if 5 not in payload[at - 9:at]:  # lengths of strings: the server takes memory for them
            body[at] = rng.randrange(256)
    if rng.random() < 0.1:
        del body[rng.randrange(10, len(body)):]
    return sealed(bytes(body), payload[-10:-8])


def test_the_checksum_is_the_servers(r):
    r.execute_command("TAMIS.ADD", "f", "x")
    payload = r.dump("f")
    assert sealed(payload[:-10], payload[-10:-8]) == payload


def test_the_log_names_what_cannot_be_loaded(server, r):
    r.execute_command("TAMIS.ADD", "f", "x")
    payload = r.dump("f")
    with pytest.raises(redis.ResponseError, match="Bad data format"):
        r.restore("its name", 0, sealed(payload[:len(payload) // 2], payload[-10:-8]))
    assert "'its name', a value of tamis, cannot be loaded: cut short" in server.log_tail()


def mutate(rng, data, others):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5])):
        kind, at = rng.randrange(7), rng.randrange(len(data)) if data else 0
        if not data:
            break
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at] = rng.choice([0, 1, 127, 128, 255])
        elif kind == 2:
            del data[at:at + rng.randrange(1, 40)]
        elif kind == 3:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 20)))
        elif kind == 4:
            del data[at:]
        elif kind == 5:
            other = rng.choice(others)
            start = rng.randrange(len(other))
            data[at:at + 30] = other[start:start + 30]
        else:  # a field of 8 bytes, as the lengths are
            value = rng.choice([0, 1, 2**31, 2**32, 2**40, 2**63, 2**64 - 1, len(data)])
            data[at:at + 8] = struct.pack("<Q", value)
    return bytes(data)


def small_values(r):
    """Values of every sort, small, so that a payload is quick to spoil."""
    for name, options in KINDS.items():
        few = [options[0], "40"] + options[2:]
        r.execute_command("TAMIS.RESERVE", "{v}" + name, *few)
        r.execute_command("TAMIS.MADD", "{v}" + name, *range(30))
        if "DELETABLE" in options:
            r.execute_command("TAMIS.MDEL", "{v}" + name, *range(10))
    for name, options in {"records": [], "table": ["VERIFIER", "table", "DELETABLE"]}.items():
        r.execute_command("TAMIS.XRESERVE", "{v}" + name, 0.01, 20, "ATTRIBUTES", 2, "a", "b:int",
                          *options)
        for i in range(40):
            r.execute_command("TAMIS.XADD", "{v}" + name, "a=%d" % i, "b=%d" % (i % 7))
    for name, capacity, items in (("pages", 20, 90), ("behind", 200, 260)):  # past the capacity
        r.execute_command("BF.RESERVE", "{v}" + name, 0.01, capacity)
        r.execute_command("BF.MADD", "{v}" + name, *range(items))
    r.execute_command("TAMIS.PUBLISH", "{v}deletable", "{v}stream", "owner")
    dump = r.execute_command("TAMIS.DUMP", "{v}fixed", 0)[1]
    r.execute_command("TAMIS.LOAD", "{v}partial", 0, dump[:300])


def used(r):
    return r.info("memory")["used_memory"]


def use(r, key):
    """A value that was let in must work and must be saved and loaded."""
    for words in (["INFO", key], ["MEXISTS", key, "a", "b"], ["ADD", key, "new"],
                  ["MDEL", key, 1, 2], ["FOLD", key, "RESTATE"], ["MERGE", key, 1, key, "RESTATE"],
                  ["XINFO", key], ["XADD", key, "a=1", "b=77"], ["XQUERY", key, "a=1", "a=2", "b=3"],
                  ["XDEL", key, "a=1", "b=1"], ["FORGET", key], ["MADD", key] + list(range(50)), ["CLEAR", key]):
        try:
            r.execute_command("TAMIS." + words[0], *words[1:])
        except redis.ResponseError:
            pass
    r.restore("again", 0, r.dump(key), replace=True)


def test_mutated_payloads_of_restore(server, r):
    r.config_set("rdbcompression", "no")
    small_values(r)
    payloads = [r.dump(key) for key in r.keys("{v}*") if r.type(key) == b"tamis-set"]
    bodies = [p[TYPE:-10] for p in payloads]
    start, version, rng = payloads[0][:TYPE], payloads[0][-10:-8], random.Random(SEED)
    assert all(p.startswith(start) for p in payloads)
    base, let_in = used(r), 0
    for i in range(PAYLOADS):
        body = mutate(rng, rng.choice(bodies), bodies)
        try:
            r.restore("x", 0, sealed(start + body, version), replace=True)
            let_in += 1
            use(r, "x")
        except redis.ResponseError as error:
            assert "Bad data format" in str(error) or "Target key name" in str(error)
        if i % 500 == 0:
            assert used(r) < base + (40 << 20)
    r.config_set("rdbcompression", "yes")
    assert r.ping() and let_in < PAYLOADS


def test_mutated_bytes_of_load(server, r):
    small_values(r)
    dumps = [r.execute_command("TAMIS.DUMP", key, 0)[1] for key in r.keys("{v}*")
             if r.type(key) == b"tamis-set" and key != b"{v}partial"]
    rng = random.Random(SEED + 1)
    base = used(r)
    for i in range(PAYLOADS):
        data = mutate(rng, rng.choice(dumps), dumps)
        r.delete("x")
        try:
            if i % 3 == 0:
                r.execute_command("TAMIS.LOAD", "x", 0, data)
            else:
                at, chunk = 0, rng.choice([64, 100, 1000])
                while at < len(data):
                    piece = data[at:at + chunk]
                    if i % 3 == 1:
                        r.execute_command("TAMIS.LOAD", "x", at, piece)
                    else:
                        r.execute_command("BF.LOADCHUNK", "x", at + len(piece) + 1 if at else 1, piece)
                    at += chunk
            use(r, "x")
        except redis.ResponseError:
            pass
        if i % 500 == 0:
            assert used(r) < base + (40 << 20)
    assert r.ping()


def reseal(data, like=None):
    """The checksums of a structure, whose sections are those of `like`, made right again: of each page of a
    section, then of the header."""
    data = bytearray(data)
    like = like or data
    header, body, n = struct.unpack_from("<QQI", like, 24)
    sections = [struct.unpack_from("<QQ", like, 128 + body + 24 * i + 8) for i in range(n)]
    at = sum(-(-length // 64) * 64 for _, length in sections) + header
    for start, length in sections:
        for i in range(start, start + length, 4096):
            struct.pack_into("<Q", data, at, xxh3(bytes(data[i:min(i + 4096, start + length)])))
            at += 8
    struct.pack_into("<Q", data, header - 8, xxh3(bytes(data[:header - 8])))
    return bytes(data)


def test_mutations_with_the_right_checksums(server, r):
    """Fields that lie, in bytes that are whole: what is let in must be harmless."""
    small_values(r)
    r.config_set("tamis.value-limit", "500mb")
    dumps = [r.execute_command("TAMIS.DUMP", key, 0)[1] for key in r.keys("{v}*")
             if r.type(key) == b"tamis-set" and key != b"{v}partial"]
    rng, base, let_in = random.Random(SEED + 3), used(r), 0
    for i in range(PAYLOADS // 2):
        whole = rng.choice(dumps)
        data = bytearray(whole)
        header, body = struct.unpack_from("<QQ", data, 24)
        for _ in range(rng.choice([1, 1, 2, 4])):
            place = rng.choice([(44, 128), (128, 128 + body), (128, 128 + body), (header, len(data))])
            at = rng.randrange(place[0], place[1])
            if rng.random() < 0.5:
                at -= at % 8
                value = rng.choice([0, 1, 2, 7, 64, 2**20, 2**31, 2**32 - 1, 2**40, 2**63, 2**64 - 1,
                                    0x7ff0000000000000, 0x3ff0000000000000, 0x3fe0000000000000])
                struct.pack_into("<Q", data, at, value)
            else:
                data[at] ^= 1 << rng.randrange(8)
        data = reseal(data, whole)
        r.delete("x")
        try:
            r.execute_command("TAMIS.LOAD", "x", 0, data)
        except redis.ResponseError:
            assert r.exists("x") == 0
            continue
        let_in += 1
        use(r, "x")
        # A capacity may be a lie, within the limit of a value; there are two, x and again.
        assert all(r.memory_usage(key) <= 500 << 20 for key in ("x", "again"))
        assert used(r) < base + 2 * (500 << 20) + (40 << 20)
    assert r.ping() and 0 < let_in < PAYLOADS // 2
    r.config_set("tamis.value-limit", 0)


def with_removals(data, n):
    """A dump with n pending removals more, each of which may belong to any of the vectors."""
    header, body, n_sections = struct.unpack_from("<QQI", data, 24)
    head = bytearray(data[:128 + body])
    vectors, = struct.unpack_from("<I", head, 332)
    ids = [struct.unpack_from("<I", head, 384 + 88 * i)[0] for i in range(vectors)]
    sections = [struct.unpack_from("<IIQQ", data, 128 + body + 24 * i) for i in range(n_sections)]
    parts = [(kind, owner, data[at:at + length]) for kind, owner, at, length in sections]
    parts[-1:-1] = [(5, 0, b"".join(struct.pack("<QQQII", i, 7, 1, 0, vectors) for i in range(n))),
                    (6, 0, n * struct.pack("<%dI" % vectors, *ids))]
    struct.pack_into("<QQQ", head, 352, n, n * vectors, n)
    begin = -(-(128 + body + 24 * len(parts) + 8) // 64) * 64
    payload, pages = b"", 0
    for kind, owner, part in parts:
        head += struct.pack("<IIQQ", kind, owner, begin + len(payload), len(part))
        payload += part + bytes(-len(part) % 64)
        pages += -(-len(part) // 4096)
    payload += bytes(-(-8 * pages // 64) * 64)
    struct.pack_into("<QQQI", head, 16, begin + len(payload), begin, body, len(parts))
    return reseal(head.ljust(begin, b"\0") + payload)


def test_removals_that_would_take_much_memory(server, r):
    """A candidate is four bytes in a file, and in memory some for each of its probes."""
    r.execute_command("TAMIS.RESERVE", "f", 1e-15, 10, "GROWTH", "dynamic", "DELETABLE")
    r.execute_command("TAMIS.ADD", "f", "x")
    while info(r, "f")["vectors"] < 256:
        r.execute_command("TAMIS.MERGE", "f", 1, "f", "CONCAT", "RESTATE")
    data = r.execute_command("TAMIS.DUMP", "f", 0)[1]
    assert r.execute_command("TAMIS.LOAD", "few", 0, with_removals(data, 10)) == 0
    assert info(r, "few")["pending"] == 10
    assert r.execute_command("TAMIS.DEL", "few", "x") == 2
    base, many = used(r), with_removals(data, 900)
    with pytest.raises(redis.ResponseError, match="128 times the memory of its bytes"):
        r.execute_command("TAMIS.LOAD", "g", 0, many)
    assert r.exists("g") == 0 and used(r) < base + (8 << 20)


def test_removals_between_two_vectors_at_a_low_rate(server, r):
    """What a set can come to by itself: each takes 54 times its bytes."""
    r.execute_command("TAMIS.RESERVE", "f", 1e-9, 1000, "GROWTH", "dynamic", "DELETABLE")
    r.execute_command("TAMIS.ADD", "f", "x")
    r.execute_command("TAMIS.MERGE", "f", 1, "f", "CONCAT", "RESTATE")
    assert info(r, "f")["vectors"] == 2
    data = r.execute_command("TAMIS.DUMP", "f", 0)[1]
    assert r.execute_command("TAMIS.LOAD", "g", 0, with_removals(data, 20000)) == 0
    assert info(r, "g")["pending"] == 20000


WORDS = ["RESERVE", "ADD", "MADD", "INSERT", "EXISTS", "MEXISTS", "DEL", "MDEL", "REMOVE", "CARD",
         "INFO", "CLEAR", "FORGET", "MERGE", "INTERSECT", "FOLD", "DUMP", "LOAD", "SCANDUMP",
         "LOADCHUNK", "XRESERVE", "XADD", "XDEL", "XQUERY", "XINFO",
         "PUBLISH", "UNPUBLISH"]
ARGUMENTS = ["k1", "k2", "k3", "k4", "str", "0.01", "0.5", "1", "0", "-1", "100", "4096", "1e9", "nan",
             "inf", "9223372036854775807", "99999999999999999999", "", "ITEMS", "NOCREATE", "CAPACITY",
             "ERROR", "EXPANSION", "NONSCALING", "GROWTH", "fixed", "dynamic", "scalable", "flexible",
             "window", "WINDOW", "DELETABLE", "UNIQUE", "LAYOUT", "spread", "blocked", "HASH", "sip",
             "xxh3", "h3", "MAXMEM", "KEY", "00112233445566778899aabbccddeeff", "LIKE", "AT",
             "1700000000000000000", "RESTATE", "CONCAT", "DISJOINT", "a", "b", "a=1", "b=2", "a!", "ATTRIBUTES",
             "COMBO", "a+b", "VERIFIER", "table", "MISS", "BEAT", "MAXAGE", "\0\xff", "x" * 300]


def reload_at_once(r):
    """What was saved is loaded, and is the same. In one transaction: some filters are published by now, and
    the server writes to their streams whenever it has the time."""
    pipe = r.pipeline()
    for word in ("DIGEST", "RELOAD", "DIGEST"):
        pipe.execute_command("DEBUG", word)
    before, done, after = pipe.execute()
    assert done == b"OK" and after == before


def test_what_is_published_is_reloaded(server, r):
    """A beat and a reload every second; left to itself the digest changes with the stream."""
    r.execute_command("TAMIS.MADD", "f", *range(100))
    r.execute_command("TAMIS.PUBLISH", "f", "s", "me", "BEAT", 1)
    first = r.execute_command("DEBUG", "DIGEST")
    for _ in range(3):
        length = r.xlen("s")
        wait(lambda: r.xlen("s") > length)
        reload_at_once(r)
    assert r.execute_command("DEBUG", "DIGEST") != first


def test_random_commands(server, r):
    """Words in any order. Whatever comes of it can be saved and loaded, and ends with the same bytes."""
    r.set("str", "text")
    rng = random.Random(SEED + 2)
    sensible = {"XRESERVE": [["k1", "0.01", "100", "ATTRIBUTES", "2", "a", "b"],
                             ["k2", "0.01", "100", "ATTRIBUTES", "2", "a", "b:int", "DELETABLE"]],
                "XADD": [["k1", "a=1"], ["k2", "a=1", "b=2"]], "XQUERY": [["k2", "a=1", "b=2"]],
                "RESERVE": [["k1", "0.01", "100"], ["k2", "0.5", "4096", "DELETABLE"],
                            ["k3", "0.01", "100", "GROWTH", "window"],
                            ["k4", "0.01", "1000", "GROWTH", "dynamic", "DELETABLE"]]}
    base = used(r)
    for i in range(COMMANDS):
        word = rng.choice(WORDS)
        words = rng.choice(sensible.get(word, [[rng.choice(ARGUMENTS[:5])]]))
        words = words + [rng.choice(ARGUMENTS) for _ in range(rng.randrange(5))]
        try:
            r.execute_command(rng.choice(["TAMIS.", "BF."]) + word, *words)
        except redis.ResponseError:
            pass
        if i % 50 == 0:
            r.delete(rng.choice(ARGUMENTS[:4]))
        if i % 500 == 0:
            assert used(r) < base + (600 << 20)
            reload_at_once(r)
    assert r.ping()


def test_cursors_and_pieces_in_disorder(server, r):
    """Dumps and loads in pieces, with cursors that lie, while values change, go and come: each piece is
    refused or right, and what was put together from right ones is the value."""
    r.config_set("tamis.work-limit", 1 << 16)  # so that these values go in pieces
    rng, base, whole = random.Random(SEED + 4), used(r), 0
    kinds = [[], ["DELETABLE"], ["GROWTH", "dynamic"], ["GROWTH", "flexible"], ["LAYOUT", "spread"]]
    keys, under_way = ["k%d" % i for i in range(len(kinds))], []
    try:
        for i in range(COMMANDS // 2):
            key = rng.choice(keys)
            try:
                step = rng.randrange(12)
                if step == 0 or not r.exists(key):
                    r.delete(key)
                    r.execute_command("TAMIS.RESERVE", key, 0.001, 80000, *kinds[keys.index(key)])
                    r.execute_command("TAMIS.MADD", key, *range(500))
                elif step < 3:
                    r.execute_command("TAMIS.MADD", key, *[rng.randrange(10**6) for _ in range(20)])
                elif step == 3:
                    rng.choice([lambda: r.execute_command("TAMIS.CLEAR", key), r.flushall,
                                lambda: r.rename(key, rng.choice(keys)),
                                lambda: r.execute_command("COPY", key, rng.choice(keys), "REPLACE")])()
                elif step < 6 and len(under_way) < 8:
                    cursor, data = r.execute_command("BF.SCANDUMP", key, 0)
                    under_way.append([key, cursor, [(cursor, data)], server.digest(key)])
                elif step == 6 and under_way:
                    dump = rng.choice(under_way)  # a lie
                    cursor = dump[1] ^ (1 << rng.randrange(62)) if rng.random() < 0.7 \
                        else rng.randrange(1 << 62)
                    r.execute_command(rng.choice(["BF.SCANDUMP", "TAMIS.DUMP"]), dump[0], cursor)
                elif step == 7 and under_way:
                    chunks = list(rng.choice(under_way)[2])
                    rng.shuffle(chunks)  # in disorder
                    for cursor, data in chunks:
                        r.execute_command("BF.LOADCHUNK", "x", cursor, data)
                elif under_way:
                    dump = rng.choice(under_way)
                    under_way.remove(dump)
                    cursor, data = r.execute_command("BF.SCANDUMP", dump[0], dump[1])
                    if cursor:
                        under_way.append([dump[0], cursor, dump[2] + [(cursor, data)], dump[3]])
                        continue
                    r.delete("x")
                    for cursor, data in dump[2]:
                        r.execute_command("BF.LOADCHUNK", "x", cursor, data)
                    assert server.digest("x") == dump[3]
                    whole += 1
            except redis.ResponseError as error:
                assert any(text in str(error) for text in (
                    "dump has ended", "changed during", "another dump", "the cursor is", "not found",
                    "received bad data", "would block", "no such key", "are the same")), error
    finally:
        r.config_set("tamis.work-limit", 8 << 20)
    assert whole > 20 and used(r) < base + (40 << 20)


def test_a_load_that_was_given_up(server, r):
    """Pieces under a key are a value like any other: they count, expire and go."""
    load = Load(r)
    load.create()
    data = r.execute_command("TAMIS.DUMP", "{v}fixed", 0)[1]
    r.execute_command("TAMIS.LOAD", "p", 0, data[:5000])
    assert 5000 < r.memory_usage("p") < r.memory_usage("{v}fixed") + 8000
    assert r.type("p") == b"tamis-set"
    r.delete("p")
    assert r.execute_command("TAMIS.ADD", "p", "x") == 1
