"""Cuckoo filters of RedisBloom: they are loaded, and stay what they are.

data/cuckoo.rdb and .json are of a real one (make_foreign.py): each filter with what it answers and counts, and
what it is after more items were added and some removed.
"""
import glob
import os
import random
import struct

import pytest
import redis

import foreign
from conftest import encode, free_port, wait
from foreign import ITEMS, chunks_of, damaged, load, rewritten, scandump
from test_keys import info, refused

BLOOMS, SAID = foreign.said("redisbloom"), foreign.said("cuckoo")
MORE = ["item:%d" % i for i in range(1000, 1300)]
RATES = {1: 2, 2: 4, 6: 12}  # slots that a query compares in each part


@pytest.fixture
def moved(servers):
    return lambda **options: foreign.moved(servers, "cuckoo", **options)


def check(server, name, said):
    do = server.client().execute_command
    assert "".join(map(str, do("CF.MEXISTS", name, *ITEMS))) == said["answers"], name
    assert [do("CF.COUNT", name, item) for item in ITEMS] == said["counts"], name
    figures = do("CF.INFO", name)
    assert figures[2:][1::2] == said["info"] and figures[0] == b"Size" and figures[1] > 0
    if said["info"][2]:
        assert scandump(server, "CF.SCANDUMP", name) == said["chunks"], name


def go_on(server, name):
    """What make_foreign.py did to it after it was saved."""
    do, taken = server.client().execute_command, ""
    for i, item in enumerate(MORE, 1000):
        try:
            taken += str(do("CF.ADDNX" if i % 3 else "CF.ADD", name, item))
        except redis.ResponseError as error:
            assert str(error) == "Filter is full"
            taken += "f"
    removed = "".join(str(do("CF.DEL", name, item)) for item in MORE[1::40])
    after = SAID[name]["after"]
    assert taken == after["taken"] and removed == after["removed"]
    check(server, name, after)


def test_a_file_of_redisbloom(moved):
    server = moved()
    r = server.r
    assert sorted(r.keys()) == sorted(name.encode() for name in SAID)
    for name, said in SAID.items():
        check(server, name, said)
        assert r.type(name) == b"MBbloomCF"
        facts, parts = info(r, name), said["info"][1]
        assert facts["kind"] == b"redisbloom cuckoo" and facts["items"] == said["info"][2]
        rate = 1 - (1 - 1 / 255) ** RATES[said["info"][4]]
        assert abs(float(facts["fpp"]) - min(0.5, parts * rate)) < 1e-9
        strangers = ["stranger:%d" % i for i in range(4000)]
        wrong = sum(r.execute_command("CF.MEXISTS", name, *strangers))
        now = 4000 * float(facts["fpp_now"])
        assert abs(wrong - now) <= 6 * now ** 0.5 + 1
    section = r.info("tamis")
    assert section["tamis_foreign"] == len(SAID) == section["tamis_values"]
    for words in (["TAMIS.CONVERT", "some"], ["TAMIS.MERGE", "some", 1, "some"], ["TAMIS.CLEAR", "some"],
                  ["CF.RESERVE", "some", 100], ["TAMIS.ONTOP", "some", "x"]):
        assert refused(r, *words)
    check(server, "some", SAID["some"])
    r.execute_command("FLUSHALL", "SYNC")
    assert r.info("tamis")["tamis_foreign"] == 0 == r.info("tamis")["tamis_bytes"]


def test_they_go_on_as_in_redisbloom(moved, servers):
    """Slot by slot; on replicas and in append-only files too, and RedisBloom could have them back."""
    master = moved(port=free_port())
    untouched = {name: master.r.dump(name) for name in SAID}
    master.r.save()
    master.restart()
    assert {name: master.r.dump(name) for name in SAID} == untouched
    replica = servers(port=free_port(), replicaof="127.0.0.1 %d" % master.port)
    wait(lambda: replica.r.info("replication")["master_link_status"] == "up")
    master.r.config_set("appendonly", "yes")
    rewritten(master.r)
    for name in SAID:
        go_on(master, name)
    names = list(SAID)
    assert master.r.set("last", "WAIT is for what its own client wrote")
    assert master.r.execute_command("WAIT", 1, 20000) == 1
    was = master.digest(*names)
    assert replica.digest(*names) == was
    master.r.execute_command("DEBUG", "LOADAOF")
    assert master.digest(*names) == was
    for preamble in ("no", "yes"):
        master.r.config_set("aof-use-rdb-preamble", preamble)
        master.r.bgrewriteaof()
        rewritten(master.r)
        master.r.execute_command("DEBUG", "LOADAOF")
        assert master.digest(*names) == was
    assert master.r.execute_command("COPY", "grown", "copy") == 1
    master.r.execute_command("CF.ADD", "copy", "only there")
    assert master.digest("grown") == was[names.index("grown"):][:1] != master.digest("copy")
    check(master, "grown", SAID["grown"]["after"])


def test_many_at_once(moved):
    r = moved().r
    have = r.execute_command("CF.INSERT", "some", "NOCREATE", "ITEMS", *MORE)
    assert have == [1] * len(MORE)
    assert r.execute_command("CF.INSERTNX", "some", "ITEMS", *MORE) == [0] * len(MORE)
    assert r.execute_command("TAMIS.MDEL", "some", *MORE) == [1] * len(MORE)
    assert r.execute_command("CF.INFO", "some")[7] == SAID["some"]["info"][2]
    full = r.execute_command("CF.INSERT", "fixed", "ITEMS", *MORE)
    assert full[0] == 1 and full[-1] == -1
    assert r.execute_command("CF.COMPACT", "grown") == b"OK"


@pytest.mark.parametrize("name", [name for name in SAID if SAID[name]["info"][2]])
def test_chunks_of_redisbloom(server, r, name):
    do = server.client().execute_command
    for i, (cursor, data) in enumerate(chunks_of(SAID[name])):
        if i:
            assert "still being loaded" in refused(r, "CF.EXISTS", name, "x")
            r.execute_command("RESTORE", name, 0, r.dump(name), "REPLACE")
        assert do("CF.LOADCHUNK", name, cursor, data) == b"OK"
    check(server, name, SAID[name])
    assert refused(r, "CF.LOADCHUNK", name, cursor, data)
    go_on(server, name)


def test_each_command_takes_its_own_chunks(server, r):
    """The first chunk of a cuckoo filter is any 38 bytes: BF.LOADCHUNK would take damaged ones for that."""
    bloom, cuckoo = chunks_of(BLOOMS["grown"]), chunks_of(SAID["grown"])
    for theirs, ours, other, chunks in (("BF.LOADCHUNK", "CF.LOADCHUNK", "received bad data", cuckoo),
                                        ("CF.LOADCHUNK", "BF.LOADCHUNK", "Invalid header", bloom)):
        r.flushall()
        assert refused(r, theirs, "f", *chunks[0]) == other
        assert r.exists("f") == 0
        for i, (cursor, data) in enumerate(chunks):
            if i:
                assert refused(r, theirs, "f", cursor, data).startswith("WRONGTYPE")
            assert server.client().execute_command(ours, "f", cursor, data) == b"OK"
        assert refused(r, theirs, "f", *chunks[0]).startswith("WRONGTYPE")
        assert r.execute_command("TAMIS.CARD", "f") > 0


def test_an_append_only_file_of_redisbloom(servers):
    server = servers(appendonly="yes", appendfsync="always")
    [path] = glob.glob(os.path.join(server.folder, "appendonlydir", "*.incr.aof"))
    with open(path, "ab") as aof:
        for cursor, data in chunks_of(SAID["grown"]):
            aof.write(encode("CF.LOADCHUNK", "grown", cursor, data))
    server.r.execute_command("DEBUG", "LOADAOF")
    go_on(server, "grown")


def test_a_limit_and_growth(servers):
    server = servers()
    load(server.r, "CF.LOADCHUNK", "f", SAID["grown"])
    server.r.config_set("tamis.value-limit", "64kb")
    said = server.r.execute_command("CF.INSERT", "f", "ITEMS", *range(100000))
    held = said.index(-1)
    assert set(said[:held]) == {1} and set(said[held:]) == {-1}
    assert all(server.r.execute_command("CF.MEXISTS", "f", *range(held)))
    assert server.r.memory_usage("f") <= (1 << 16) + 1000
    assert server.r.info("tamis")["tamis_bytes"] <= (1 << 16) + 1000
    head = bytearray(chunks_of(SAID["grown"])[0][1])
    fields = {"buckets": (8, "<Q", 3), "none": (8, "<Q", 0), "many buckets": (8, "<Q", 1 << 40),
              "parts": (24, "<Q", 1 << 33), "no parts": (24, "<Q", 0), "slots": (32, "<H", 0),
              "more slots": (32, "<H", 256), "iterations": (34, "<H", 0), "expansion": (36, "<H", 3)}
    for name, (at, form, value) in fields.items():
        bad = bytearray(head)
        struct.pack_into(form, bad, at, value)
        assert refused(server.r, "CF.LOADCHUNK", "bad", 1, bytes(bad)).startswith("received bad data"), name
    large = bytearray(head)
    struct.pack_into("<Q", large, 8, 1 << 20)
    assert "tamis.value-limit" in refused(server.r, "CF.LOADCHUNK", "bad", 1, bytes(large))
    assert not server.r.exists("bad")


def test_copies_of_one_item(servers):
    """Two slots of a part may have it, so it makes the filter grow, and commands search every part: not without end,
    but what a master or an append-only file has is taken."""
    server = servers(appendonly="yes", appendfsync="always")
    r = server.r
    foreign.large(r, "CF", "f", bytes(2))
    said = r.execute_command("CF.INSERT", "f", "ITEMS", *["x"] * 3000)
    held = said.index(-1)
    assert held == 2 * 1024 == r.execute_command("BF.CARD", "f")
    assert refused(r, "CF.ADD", "f", "y") == "Filter is full"
    assert r.execute_command("CF.DEL", "f", "x") and r.execute_command("CF.ADD", "f", "y")
    [path] = glob.glob(os.path.join(server.folder, "appendonlydir", "*.incr.aof"))
    with open(path, "ab") as aof:
        aof.write(5 * encode("CF.ADD", "f", "x"))
    r.execute_command("DEBUG", "LOADAOF")
    assert r.execute_command("BF.CARD", "f") == held + 5 and info(r, "f")["vectors"] == 1027


def test_mutated_payloads(moved):
    server, rng = moved(), random.Random(4)
    r = server.r

    def use(key):
        r.execute_command("CF.INSERT", key, "ITEMS", *range(20))
        r.execute_command("TAMIS.MDEL", key, *range(30))
        r.execute_command("CF.INFO", key)
        info(r, key)
    taken = sum(damaged(r, r.dump(name), rng, 200, use, ("loaded", "WRONGTYPE"))
                for name in ("grown", "some", "fixed"))
    assert taken > 50 and server.alive()
