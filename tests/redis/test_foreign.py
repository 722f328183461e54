"""Filters of RedisBloom: its files and chunks are loaded, asked as they are, added to, and converted.

data/redisbloom.rdb and .json are of a real one (make_foreign.py): each filter with what it answers to a
thousand items, false positives included.
"""
import base64
import glob
import os
import random
import re
import socket
import struct
import threading

import pytest
import redis

import foreign
from conftest import encode, free_port, wait
from foreign import ITEMS, chunks_of, damaged, load, rewritten, scandump
from test_hostile import TYPE, sealed
from test_keys import info, refused

SAID = foreign.said("redisbloom")


def answers(r, key, items=ITEMS):
    return "".join(map(str, map(int, r.execute_command("BF.MEXISTS", key, *items))))


@pytest.fixture
def moved(servers):
    return lambda **options: foreign.moved(servers, "redisbloom", **options)


def check(r, names=SAID):
    for name in names:
        assert answers(r, name) == SAID[name]["answers"], name


def test_a_file_of_redisbloom(moved):
    server = moved()
    r, do = server.r, server.client().execute_command
    assert sorted(r.keys()) == sorted(name.encode() for name in SAID)
    check(r)
    for name, said in SAID.items():
        for item in ITEMS[:20]:
            assert do("BF.EXISTS", name, item) == int(said["answers"][ITEMS.index(item)])
        assert do("BF.CARD", name) == said["items"]
        assert do("BF.INFO", name, "CAPACITY") == [said["capacity"]]
        assert do("BF.INFO", name, "FILTERS") == [said["filters"]]
        assert do("BF.INFO", name, "EXPANSION") == [said["expansion"]]
        assert do("BF.INFO", name, "SIZE") == [do("BF.INFO", name)[3]]
        assert info(r, name)["kind"] == b"redisbloom"
        assert r.type(name) == b"MBbloom--"
    section = r.info("tamis")
    assert section["tamis_foreign"] == len(SAID) == section["tamis_values"]
    assert section["tamis_bytes"] > 0
    assert r.pttl("exact") > 0 and r.pttl("some") == -1
    r.execute_command("FLUSHALL", "SYNC")
    assert r.info("tamis")["tamis_foreign"] == 0 == r.info("tamis")["tamis_bytes"]


def test_what_nobody_added_to_is_saved_as_it_came(moved):
    """So RedisBloom can have it back."""
    server = moved()
    was = {name: server.r.dump(name) for name in SAID}
    for name in SAID:  # one that is there already changes nothing
        if SAID[name]["items"]:
            assert server.r.execute_command("BF.ADD", name, "item:0") == 0
    server.r.save()
    server.restart()
    assert {name: server.r.dump(name) for name in SAID} == was
    check(server.r)
    for name in SAID:
        assert scandump(server, "BF.SCANDUMP", name) == SAID[name]["chunks"]


@pytest.mark.parametrize("name", SAID)
def test_chunks_of_redisbloom(server, r, name):
    for i, (cursor, data) in enumerate(chunks_of(SAID[name])):
        if i:  # not all is there yet, and "no" would be no proof
            assert "still being loaded" in refused(r, "BF.EXISTS", "f", "x")
            assert refused(r, "BF.LOADCHUNK", "f", cursor + 1, data) == "received bad data"
        assert server.client().execute_command("BF.LOADCHUNK", "f", cursor, data) == b"OK"
    assert answers(r, "f") == SAID[name]["answers"]
    assert refused(r, "BF.LOADCHUNK", "f", cursor, data) == "received bad data"


def test_half_a_load_is_saved(servers):
    server = servers(appendonly="yes", **{"aof-use-rdb-preamble": "no"})
    chunks = chunks_of(SAID["grown"])
    for cursor, data in chunks[:2]:
        server.r.execute_command("BF.LOADCHUNK", "f", cursor, data)
    server.r.bgrewriteaof()
    rewritten(server.r)
    server.r.execute_command("DEBUG", "LOADAOF")
    server.r.restore("g", 0, server.r.dump("f"))
    for key in "fg":
        for cursor, data in chunks[2:]:
            server.r.execute_command("BF.LOADCHUNK", key, cursor, data)
        assert answers(server.r, key) == SAID["grown"]["answers"]


def test_added_to(moved):
    """New items are on top; the old ones stay, the rate holds for both together."""
    server = moved()
    r, more = server.r, ["more:%d" % i for i in range(3000)]
    for name in ("some", "grown", "exact", "empty"):
        stated = float(info(r, name)["fpp"])
        before, card = answers(r, name), SAID[name]["items"]
        fresh = r.execute_command("BF.MADD", name, *more)
        assert r.execute_command("BF.MADD", name, *more) == [0] * 3000
        assert r.execute_command("BF.CARD", name) == card + sum(fresh)
        assert info(r, name)["on_top"] == sum(fresh)
        assert all(r.execute_command("BF.MEXISTS", name, *more))
        after = answers(r, name)
        assert all(b == "1" for a, b in zip(before, after) if a == "1")
        strangers = ["stranger:%d" % i for i in range(20000)]
        wrong = answers(r, name, strangers).count("1")
        rate = float(info(r, name)["fpp"])
        assert rate <= stated * 1.25 and wrong <= 20000 * rate + 6 * (20000 * rate) ** 0.5 + 1
    digests = server.digest("some", "grown", "exact", "empty")
    r.save()
    server.restart()
    assert server.digest("some", "grown", "exact", "empty") == digests
    assert all(server.r.execute_command("BF.MEXISTS", "grown", *more))


def test_one_that_may_not_grow(moved):
    r = moved().r
    said = SAID["fixed"]
    room = said["capacity"] - said["items"]
    fresh = r.execute_command("BF.MADD", "fixed", *["m%d" % i for i in range(1000)])
    assert str(fresh[-1]) == "non scaling filter is full"
    assert sum(x == 1 for x in fresh[:-1]) == room
    assert r.execute_command("BF.CARD", "fixed") == said["capacity"]
    assert r.execute_command("BF.ADD", "fixed", "item:1") == 0
    assert refused(r, "BF.ADD", "tight", "surely not there, 17") == "non scaling filter is full"
    assert r.execute_command("BF.ADD", "tight", "item:1") == 0


def test_adds_that_redisbloom_accepted(servers):
    """In an append-only file, or from a master: where RedisBloom saw a false positive and did not count the
    item, the set on top counts one. None of its items is refused for that."""
    server = servers(appendonly="yes", appendfsync="always")  # written before the reply
    for name in ("fixed", "tight"):
        load(server.r, "BF.LOADCHUNK", name, SAID[name])
    room = SAID["fixed"]["capacity"] - SAID["fixed"]["items"]
    items = {"fixed": ["m%d" % i for i in range(room + 9)], "tight": ["m%d" % i for i in range(9)]}
    [path] = glob.glob(os.path.join(server.folder, "appendonlydir", "*.incr.aof"))
    with open(path, "ab") as aof:
        for name in items:
            for item in items[name]:
                aof.write(encode("BF.ADD", name, item))
    server.r.execute_command("DEBUG", "LOADAOF")
    for name in items:
        assert all(server.r.execute_command("BF.MEXISTS", name, *items[name])), name
        fresh = next(item for item in map(str, range(1000)) if not server.r.execute_command("BF.EXISTS", name, item))
        assert refused(server.r, "BF.ADD", name, fresh) == "non scaling filter is full"


def test_the_limit_of_the_server_holds_on_top(servers):
    """Bytes that a client sends as the set on top may state a larger limit, or none."""
    master = servers(port=free_port(), **{"tamis.work-limit": "64mb"})
    replica = servers(port=free_port(), replicaof="127.0.0.1 %d" % master.port)
    wait(lambda: replica.r.info("replication")["master_link_status"] == "up")
    do = master.r.execute_command
    do("TAMIS.RESERVE", "f", 0.01, 1000, "GROWTH", "scalable")
    [_, data] = do("TAMIS.DUMP", "f", 0, "WITHKEY")
    master.r.config_set("tamis.value-limit", "64kb")
    forms = {"bytes": [data], "limit": [data, "MAXMEM", 10**9], "empty": ["RESERVE", 0.01, 1000, "GROWTH", "smooth"]}
    for key, form in forms.items():
        load(master.r, "BF.LOADCHUNK", key, SAID["some"])
        assert do("TAMIS.ONTOP", key, *form) == b"OK"
        said = do("BF.MADD", key, *range(100000))
        assert "may not grow past its limit of 65536 bytes" in str(said[-1]), key
    load(master.r, "BF.LOADCHUNK", "over", SAID["some"])
    assert "above tamis.value-limit" in refused(master.r, "TAMIS.ONTOP", "over", "RESERVE", 0.01, 0, "MAXMEM", 10**9)
    for bad in ([b"x"], [data, "MAXMEM"], [data, "MAXMEM", 0], ["RESERVE", 2, 1], ["RESERVE", 0.1, -1],
                ["RESERVE", 0.1, 1, "DELETABLE"], ["RESERVE", 0.1, 1, "GROWTH", "window"]):
        refused(master.r, "TAMIS.ONTOP", "over", *bad)
    master.r.config_set("tamis.work-limit", "64kb")
    assert "65537 bytes at once would block the server" in refused(master.r, "TAMIS.ONTOP", "over", bytes(65537))
    assert info(master.r, "over")["on_top"] == 0
    assert master.r.execute_command("WAIT", 1, 20000) == 1
    assert replica.digest(*forms) == master.digest(*forms)


def number_at(payload, at):
    """Of a payload: the end of the integer whose opcode is there."""
    assert payload[at] == 2
    return at + 2 + {0: 0, 1: 1, 2: 8 if payload[at + 1] & 1 else 4}[payload[at + 1] >> 6]


def with_on_top(payload, top):
    """The payload of a filter of RedisBloom, with the set of another payload on top."""
    options = number_at(payload, number_at(payload, TYPE))
    end = number_at(payload, options)
    body = payload[:options] + b"\x02\x81" + struct.pack(">Q", 1 << 40 | 4) + payload[end:-11]
    return sealed(body + top[number_at(top, TYPE):-10], payload[-10:-8])


@pytest.mark.parametrize("options, good", [([], True), (["GROWTH", "window"], False), (["GROWTH", "flexible"], False),
                                           (["DELETABLE"], False)])
def test_a_set_on_top_does_not_forget(server, r, options, good):
    """Neither from a client's bytes nor from a payload: the filter below is asked for as long as there is one."""
    r.config_set("rdbcompression", "no")
    load(r, "BF.LOADCHUNK", "f", SAID["some"])
    r.execute_command("TAMIS.RESERVE", "t", 0.01, 1000, *options)
    r.execute_command("TAMIS.ADD", "t", "x")
    forged = with_on_top(r.dump("f"), r.dump("t"))
    [_, data] = r.execute_command("TAMIS.DUMP", "t", 0, "WITHKEY")
    for words in (["RESTORE", "g", 0, forged], ["TAMIS.ONTOP", "f", data]):
        if good:
            assert r.execute_command(*words) == b"OK"
            assert info(r, words[1])["on_top"] == 1 and r.execute_command("BF.EXISTS", words[1], "x")
        else:
            assert re.match("Bad data format|ONTOP applies once", refused(r, *words))
    r.config_set("rdbcompression", "yes")


def test_a_key_that_expired_stays_so(servers):
    """Loading an append-only file, the conversion may come after the end of the key's life: it is not a new one."""
    server = servers(appendonly="yes", appendfsync="always", aof_use_rdb_preamble="no")
    r = server.r
    for key in ("f", "g"):
        load(r, "BF.LOADCHUNK", key, SAID["some"])
        r.execute_command("BF.ADD", key, "surely not there, 17")
    r.pexpireat("g", 4102444800000)
    r.pexpire("f", 600000)
    [path] = glob.glob(os.path.join(server.folder, "appendonlydir", "*.incr.aof"))
    with open(path, "ab") as aof:
        aof.write(encode("PEXPIREAT", "f", 1000000000000) + encode("TAMIS.CONVERT", "f", "FORCE"))
        aof.write(encode("TAMIS.CONVERT", "g", "FORCE"))
    r.execute_command("DEBUG", "LOADAOF")
    assert r.exists("f") == 0
    assert r.type("g") == b"tamis-set" and r.execute_command("PEXPIRETIME", "g") == 4102444800000


def test_followed_and_rewritten(moved, servers):
    """Replicas and append-only files of all forms end with the same bytes."""
    master = moved(port=free_port())
    replica = servers(port=free_port(), replicaof="127.0.0.1 %d" % master.port)
    wait(lambda: replica.r.info("replication")["master_link_status"] == "up")
    for i in range(300):
        for name in ("some", "grown", "fixed"):
            try:
                master.r.execute_command("BF.ADD", name, "new:%d" % i)
            except redis.ResponseError as error:
                assert "is full" in str(error)
    assert master.r.execute_command("WAIT", 1, 20000) == 1
    assert replica.digest(*SAID) == master.digest(*SAID)
    for preamble in ("yes", "no"):
        master.r.config_set("aof-use-rdb-preamble", preamble)
        master.r.config_set("appendonly", "yes")
        rewritten(master.r)
        was = master.digest(*SAID)
        master.r.execute_command("BF.ADD", "empty", "after " + preamble)
        master.r.execute_command("DEBUG", "LOADAOF")
        assert master.digest(*[n for n in SAID if n != "empty"]) == \
            [d for n, d in zip(SAID, was) if n != "empty"]
        assert master.r.execute_command("BF.EXISTS", "empty", "after " + preamble)
        master.r.config_set("appendonly", "no")
    master.r.execute_command("COPY", "grown", "copy")
    assert master.digest("copy") == master.digest("grown")


def test_converted(moved):
    server = moved()
    r = server.r
    news = ["new:%d" % i for i in range(20)]
    members = ITEMS[:300] + news  # all items, those added since too: some seemed to be there
    assert "0 of %d items" % SAID["grown"]["items"] in refused(r, "TAMIS.CONVERT", "grown")
    r.execute_command("BF.MADD", "grown", *news)
    assert refused(r, "TAMIS.MERGE", "x", 1, "grown").startswith("this filter is one of RedisBloom")
    assert refused(r, "TAMIS.DUMP", "grown", 0).startswith("this filter is one of RedisBloom")
    assert "items were added" in refused(r, "BF.SCANDUMP", "grown", 0)
    r.execute_command("TAMIS.CONVERT", "grown", "ITEMS", *members[:100])
    assert "of %d items were given" % SAID["grown"]["items"] in refused(r, "TAMIS.CONVERT", "grown")
    r.execute_command("TAMIS.CONVERT", "grown", "ITEMS", *members)
    r.pexpire("grown", 10**9)
    assert r.execute_command("TAMIS.CONVERT", "grown") == b"OK"
    assert r.type("grown") == b"tamis-set" and 0 < r.pttl("grown") <= 10**9
    assert all(r.execute_command("BF.MEXISTS", "grown", *members))
    assert info(r, "grown")["kind"] == b"filter" and float(info(r, "grown")["fpp"]) <= 0.2
    assert refused(r, "TAMIS.CONVERT", "grown") == "this is already a filter of tamis"
    assert refused(r, "TAMIS.CONVERT", "gone") == "not found"
    r.execute_command("TAMIS.CONVERT", "fixed", "ITEMS", *ITEMS[:50])
    assert r.execute_command("TAMIS.CONVERT", "fixed") == b"OK"
    assert info(r, "fixed")["growth"] == b"fixed" and r.info("tamis")["tamis_foreign"] == len(SAID) - 2


def large_payload(size):
    """What RESTORE takes: one part of so many bytes, all zero."""
    number = lambda n: b"\x02\x80" + struct.pack(">I", n)
    real = lambda x: b"\x04" + struct.pack("<d", x)
    name = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    ident = 0
    for c in "MBbloom--":
        ident = ident << 6 | name.index(c)
    body = b"\x07\x81" + struct.pack(">Q", ident << 10 | 4)
    body += number(0) + number(1) + number(4) + number(2)
    body += number(100) + real(0.01) + number(7) + real(9.6) + number(8 * size) + number(0)
    body += b"\x05\x80" + struct.pack(">I", size) + bytes(size) + number(0) + b"\x00"
    return sealed(body, b"\x0a\x00")


def test_the_rate_of_a_large_one_is_estimated(server, r):
    """From a part of its bits, spread over all of them."""
    some = random.Random(4).randbytes(1 << 20)
    foreign.large(r, "BF", "f", 40 * some)
    assert abs(float(info(r, "f")["fpp_now"]) - 2 ** -7) < 0.02 * 2 ** -7
    foreign.large(r, "BF", "g", bytes(20 << 20) + 20 * some)
    assert abs(float(info(r, "g")["fpp_now"]) - 4 ** -7) < 0.04 * 4 ** -7
    for key in "fg":  # the first add, and what it leaves for the set on top
        r.execute_command("BF.ADD", key, "more")
        now = float(info(r, key)["fpp_now"])
        assert now <= 0.02 and abs(float(info(r, key)["fpp"]) - 0.02) < 1e-4
    # Buckets of three slots, of which two are taken: 6 compared, and 2/3 of them can match.
    foreign.large(r, "CF", "c", 32 * (b"\1\2\0" * (1 << 20)))
    assert abs(float(info(r, "c")["fpp_now"]) - (1 - (1 - 2 / 3 / 255) ** 6)) < 1e-5


def test_the_lowest_rate(server, r):
    """An eighth of it is 0, which would give the set on top the default, and is refused by replicas."""
    chunks = chunks_of(SAID["some"])
    head = bytearray(chunks[0][1])
    struct.pack_into("<d", head, 44, 5e-324)
    for cursor, data in [(1, bytes(head))] + chunks[1:]:
        r.execute_command("BF.LOADCHUNK", "f", cursor, data)
    below = float(info(r, "f")["fpp_now"])
    assert r.execute_command("BF.ADD", "f", "surely not there, 17") == 1
    assert abs(float(info(r, "f")["fpp"]) - below) < 1e-9


def test_what_cannot_be_is_refused(servers):
    """Headers and payloads that say something else than RedisBloom makes; the server lives."""
    server = servers()
    r = server.r
    head = base64.b64decode(SAID["some"]["chunks"][0][1])
    fields = {"bytes": (20, "<Q", 1 << 60), "bits": (28, "<Q", 1 << 50), "rate": (44, "<d", float("nan")),
              "rate 1": (44, "<d", 1.0), "hashes": (60, "<I", 1 << 20), "no hashes": (60, "<I", 0),
              "log2": (72, "<B", 63), "parts": (8, "<I", 2), "hash of 32 bits": (12, "<I", 1),
              "no bits": (28, "<Q", 0)}
    for name, (at, form, value) in fields.items():
        bad = bytearray(head)
        struct.pack_into(form, bad, at, value)
        assert refused(r, "BF.LOADCHUNK", "f", 1, bytes(bad)).startswith("received bad data"), name
    r.config_set("tamis.value-limit", "64kb")
    big = bytearray(head)
    struct.pack_into("<QQ", big, 20, 1 << 20, 1 << 23)
    assert "tamis.value-limit" in refused(r, "BF.LOADCHUNK", "f", 1, bytes(big))
    assert r.keys() == []
    assert "Bad data format" in refused(r, "RESTORE", "f", 0, large_payload(1 << 20))
    assert "more bytes than tamis.value-limit" in server.log_tail()
    r.config_set("tamis.value-limit", "2mb")
    assert r.restore("f", 0, large_payload(1 << 20)) == b"OK" and r.delete("f")
    load(r, "BF.LOADCHUNK", "good", SAID["grown"])
    r.execute_command("BF.MADD", "good", *range(100))
    assert refused(r, "TAMIS.ONTOP", "good", "x").startswith("ONTOP applies once")


def test_mutated_payloads(server, r):
    def use(key):
        r.execute_command("BF.MADD", key, *range(20))
        answers(r, key)
    rng, refusals = random.Random(9), ("loaded", "not create", "memory")
    load(r, "BF.LOADCHUNK", "good", SAID["grown"])
    taken = damaged(r, r.dump("good"), rng, 400, use, refusals)
    r.execute_command("BF.MADD", "good", *range(100))
    taken += damaged(r, r.dump("good"), rng, 400, use, refusals)
    assert taken > 50 and server.alive()


# A count-min sketch of RedisBloom, with one item.
SKETCH = base64.b64decode("B4EIxKT5Ng8QAAIEAgECAQUQAAAAAAAAAAABAAAAAAAAAAAKALDd+LVJ62oA")


def test_other_types_are_refused_by_name(servers):
    server = servers()
    assert "Bad data format" in refused(server.r, "RESTORE", "carts", 0, SKETCH)
    assert "'carts', a sketch of RedisBloom, cannot be loaded: delete it there" in server.log_tail()
    assert server.r.ping() and not server.r.exists("carts")


def play_master(listening, file):
    """To one replica: the answers to its handshake, then this RDB file."""
    line = listening.accept()[0]
    while True:
        said = line.recv(1 << 16)
        if b"PSYNC" in said:
            line.sendall(b"+FULLRESYNC %s 0\r\n$%d\r\n%s" % (b"0" * 40, len(file), file))
        elif not said:
            return
        line.sendall(b"+PONG\r\n" * said.count(b"PING") + b"+OK\r\n" * said.count(b"REPLCONF"))


@pytest.mark.parametrize("load", ["disabled", "swapdb"])
def test_a_replica_that_gets_another_type_ends(servers, load):
    """As on any value that a server cannot load, whatever a module does; the log names the key."""
    file = b"REDIS0010\xfe\x00" + SKETCH[:1] + b"\x05carts" + SKETCH[1:-10] + b"\xff" + bytes(8)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        master = threading.Thread(target=play_master, args=(listening, file), daemon=True)
        master.start()
        server = servers(repl_diskless_load=load)
        server.r.replicaof("127.0.0.1", listening.getsockname()[1])
        wait(lambda: not server.alive(), 60, server.log_tail())
    status, server.process = server.process.returncode, None
    assert status >= 0 and "'carts', a sketch of RedisBloom, cannot be loaded: delete it there" in server.log_tail()
