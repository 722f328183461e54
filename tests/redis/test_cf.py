"""The CF commands, for clients of cuckoo filters: their syntax, replies and words, on deletable sets."""
import collections
import random

import pytest

from conftest import wait
from test_keys import refused


def test_the_client_of_redis_py(r):
    cf = r.cf()
    assert cf.create("c", 1000) and cf.create("e", 1000, expansion=1)
    assert cf.create("b", 1000, bucket_size=4) and cf.create("i", 1000, max_iterations=10)
    assert cf.add("c", "x") and cf.add("c", "x")
    assert cf.addnx("c", "x") == 0 and cf.addnx("c", "y") == 1
    assert cf.insert("new", ["a"], capacity=1000) == [1]
    assert cf.insertnx("new", ["a", "b"]) == [0, 1]
    assert cf.exists("c", "x") and not cf.exists("c", "nobody")
    assert cf.count("c", "x") == 2 and cf.count("c", "y") == 1 and cf.count("c", "nobody") == 0
    assert cf.delete("c", "x") == 1 and cf.count("c", "x") == 1
    assert cf.delete("c", "x") == 1 and cf.delete("c", "x") == 0
    info = cf.info("b")
    assert info.insertedNum == 0 and info.bucketSize == 4 and info.maxIteration == 20
    info = cf.info("c")
    assert info.insertedNum == 1 and info.deletedNum == 0 and info.filterNum == 1
    assert info.expansionRate == 1 and info.bucketSize == 2
    cf.insert("c", range(1000))
    assert cf.info("c").bucketNum in (512, 1024)  # as a cuckoo filter of so many items has


def test_words_of_errors(server, r):
    """Byte for byte, as RedisBloom 8 says them."""
    r.set("s", "x")
    r.execute_command("BF.RESERVE", "plain", 0.01, 100)
    r.execute_command("CF.RESERVE", "c", 100)
    wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value"
    arity = "ERR wrong number of arguments for 'cf.%s' command"
    cases = {
        "CF.RESERVE c 100": "ERR item exists",
        "CF.RESERVE s 100": wrong_type, "CF.RESERVE plain 100": wrong_type,
        "CF.RESERVE q abc": "Bad capacity",
        "CF.RESERVE q 3": "Capacity must be in the range [2 * BUCKETSIZE, 1073741824]",
        "CF.RESERVE q 7 BUCKETSIZE 4": "Capacity must be in the range [2 * BUCKETSIZE, 1073741824]",
        "CF.RESERVE q 100 BUCKETSIZE x": "Couldn't parse BUCKETSIZE",
        "CF.RESERVE q 100 BUCKETSIZE 256": "BUCKETSIZE: value must be in the range [1, 255]",
        "CF.RESERVE q 100 MAXITERATIONS x": "Couldn't parse MAXITERATIONS",
        "CF.RESERVE q 100 MAXITERATIONS 0": "MAXITERATIONS: value must be in the range [1, 65535]",
        "CF.RESERVE q 100 EXPANSION x": "Couldn't parse EXPANSION",
        "CF.RESERVE q 100 EXPANSION 32769": "EXPANSION: value must be in the range [0, 32768]",
        "CF.RESERVE q 100 BUCKETSIZE": arity % "reserve",
        "CF.RESERVE q 100 BOGUS 1": "ERR unknown option 'BOGUS'",
        "CF.ADD s x": wrong_type, "CF.ADDNX s x": wrong_type, "CF.INSERT s ITEMS x": wrong_type,
        "CF.ADD plain x": wrong_type, "CF.INFO plain": wrong_type,
        "CF.ADD c": arity % "add", "CF.INSERT c ITEMS": arity % "insert",
        "CF.INSERT c CAPACITY 100": arity % "insert",
        "CF.INSERT q CAPACITY x ITEMS a": "Bad capacity",
        "CF.INSERT q CAPACITY 3 ITEMS a":
            "Capacity must be in the range [cf-bucket-size * 2, 1073741824]",
        "CF.INSERT q BOGUS ITEMS a": "Unknown argument received",
        "CF.INSERT gone NOCREATE ITEMS a": "ERR not found",
        "CF.DEL gone x": "Not found", "CF.DEL s x": "Not found", "CF.DEL plain x": "Not found",
        "CF.INFO gone": "ERR not found", "CF.INFO s": wrong_type,
        "CF.COMPACT gone": "Cuckoo filter was not found",
        "CF.SCANDUMP gone 0": "ERR not found", "CF.SCANDUMP c x": "Invalid position",
        "CF.SCANDUMP c -1": "Invalid position",
        "CF.LOADCHUNK q 0 x": "Invalid position", "CF.LOADCHUNK q x x": "Invalid position",
        "CF.LOADCHUNK q 1 x": "Invalid header", "CF.LOADCHUNK q 77 x": "ERR not found",
        "CF.LOADCHUNK c 1 x": "ERR item exists", "CF.LOADCHUNK c 77 x": "Couldn't load chunk!",
        "CF.LOADCHUNK s 1 x": wrong_type,
    }
    for command, text in cases.items():
        for resp in (2, 3):
            assert server.raw(*command.split(), resp=resp) == b"-%s\r\n" % text.encode(), command
    assert sorted(r.keys()) == [b"c", b"plain", b"s"]


def test_replies_of_both_protocols(server):
    raw = server.raw
    for resp, yes, no in ((2, b":1\r\n", b":0\r\n"), (3, b"#t\r\n", b"#f\r\n")):
        key = "k%d" % resp
        assert raw("CF.ADD", key, "a", resp=resp) == yes == raw("CF.ADD", key, "a", resp=resp)
        assert raw("CF.ADDNX", key, "a", resp=resp) == no
        assert raw("CF.INSERT", key, "ITEMS", "a", "b", resp=resp) == b"*2\r\n" + yes + yes
        assert raw("CF.INSERTNX", key, "ITEMS", "a", "c", resp=resp) == b"*2\r\n:0\r\n:1\r\n"
        assert raw("CF.EXISTS", key, "a", resp=resp) == yes
        assert raw("CF.MEXISTS", key, "a", "x", resp=resp) == b"*2\r\n" + yes + no
        assert raw("CF.EXISTS", "gone", "a", resp=resp) == no
        assert raw("CF.COUNT", key, "a", resp=resp) == b":3\r\n"
        assert raw("CF.COUNT", "gone", "a", resp=resp) == b":0\r\n"
        assert raw("CF.DEL", key, "a", resp=resp) == yes and raw("CF.DEL", key, "x", resp=resp) == no
        assert raw("CF.COMPACT", key, resp=resp) == b"+OK\r\n"
    assert raw("CF.INFO", "k2").startswith(b"*16\r\n+Size\r\n:")
    assert raw("CF.INFO", "k3", resp=3).startswith(b"%8\r\n+Size\r\n:")


def test_one_that_may_not_grow(server, r):
    assert r.execute_command("CF.RESERVE", "f", 4, "BUCKETSIZE", 1, "EXPANSION", 0)
    said = r.execute_command("CF.INSERT", "f", "ITEMS", *"abcdefgh")
    full = said.index(-1)
    assert said == [1] * full + [-1] * (8 - full) and full >= 4
    assert refused(r, "CF.ADD", "f", "z") == "Filter is full"
    assert server.raw("CF.INSERT", "f", "ITEMS", "z", resp=3) == b"*1\r\n#f\r\n"
    assert server.raw("CF.INSERTNX", "f", "ITEMS", "z", resp=3) == b"*1\r\n:-1\r\n"
    for item in "abcdefgh"[:full]:
        assert r.execute_command("CF.DEL", "f", item) == 1
    assert r.execute_command("CF.ADD", "f", "z") == 1
    assert r.cf().info("f").expansionRate == 0


@pytest.mark.parametrize("seed", range(3))
def test_a_multiset_beside_a_model(r, seed):
    """Counts are never less than what was added, and nearly always just that; nothing is left."""
    rng, model = random.Random(seed), collections.Counter()
    r.execute_command("CF.RESERVE", "m", 50)
    for _ in range(1500):
        item = "i%d" % rng.randrange(300)
        if model[item] and rng.random() < 0.45:
            assert r.execute_command("CF.DEL", "m", item) == 1
            model[item] -= 1
        elif rng.random() < 0.3:
            added = r.execute_command("CF.ADDNX", "m", item)
            assert not (model[item] and added)
            model[item] += added
        else:
            assert r.execute_command("CF.ADD", "m", item) == 1
            model[item] += 1
    counts = {item: r.execute_command("CF.COUNT", "m", item) for item in model}
    assert all(counts[item] >= n for item, n in model.items())
    assert sum(counts[item] != n for item, n in model.items()) <= 30
    assert r.cf().info("m").insertedNum == sum(model.values())
    for item, n in model.items():
        for _ in range(n):
            assert r.execute_command("CF.DEL", "m", item) == 1
    assert r.cf().info("m").insertedNum == 0
    assert not any(r.execute_command("CF.COUNT", "m", item) for item in model)


def test_small_ones_are_small(r):
    """Room for 1,024 items is not taken before they come."""
    r.execute_command("CF.ADD", "f", "x")
    assert r.memory_usage("f") < 1200
    r.execute_command("CF.RESERVE", "empty", 10**6)
    assert r.memory_usage("empty") < 1200
    assert r.execute_command("CF.COUNT", "empty", "x") == 0 == r.execute_command("CF.EXISTS", "empty", "x")
    assert r.execute_command("CF.DEL", "empty", "x") == 0


def test_dump_and_load_by_the_client(r):
    cf = r.cf()
    cf.create("from", 500)
    assert r.execute_command("CF.SCANDUMP", "from", 0)[0] > 0
    cf.insert("from", ["item%d" % i for i in range(2000)])
    cursor, chunks = 0, []
    while True:
        cursor, data = r.execute_command("CF.SCANDUMP", "from", cursor)
        if cursor == 0:
            assert data is None
            break
        chunks.append((cursor, data))
    for cursor, data in chunks:
        assert r.execute_command("CF.LOADCHUNK", "to", cursor, data) == b"OK"
    assert all(r.execute_command("CF.MEXISTS", "to", *["item%d" % i for i in range(2000)]))
    assert r.execute_command("DEBUG", "DIGEST-VALUE", "to") == \
        r.execute_command("DEBUG", "DIGEST-VALUE", "from")


def test_files_and_copies_have_the_same(servers):
    master, other = servers(appendonly="yes"), servers()
    r = master.r
    rng = random.Random(5)
    r.execute_command("CF.RESERVE", "full", 20, "EXPANSION", 0)
    for i in range(400):
        item = "i%d" % rng.randrange(120)
        for words in (["CF.ADD", "a", item], ["CF.ADDNX", "nx", item], ["CF.DEL", "a", item],
                      ["CF.INSERT", "a", "ITEMS", item, "j%d" % i],
                      ["CF.INSERTNX", "nx", "ITEMS", item, "j%d" % i, item],
                      ["CF.INSERT", "full", "ITEMS", item, "j%d" % i]):
            r.execute_command(*words)
    was = master.digest("a", "nx", "full")
    r.execute_command("DEBUG", "LOADAOF")
    assert master.digest("a", "nx", "full") == was
    r.bgrewriteaof()
    wait(lambda: r.info("persistence")["aof_rewrite_in_progress"] == 0 and
         r.info("persistence")["aof_rewrite_scheduled"] == 0)
    r.execute_command("DEBUG", "LOADAOF")
    assert master.digest("a", "nx", "full") == was
    for key in ("a", "nx", "full"):
        other.r.restore(key, 0, r.dump(key))
    assert other.digest("a", "nx", "full") == was


def test_the_rate_is_that_of_the_bucket_size(r):
    """Buckets of 2 slots: 1.6 %, of all together, also of one that has grown."""
    for i in range(0, 20000, 1000):
        r.execute_command("CF.INSERT", "f", "ITEMS", *range(i, i + 1000))
    wrong = sum(sum(r.execute_command("CF.MEXISTS", "f", *["x%d" % j for j in range(i, i + 1000)]))
                for i in range(0, 60000, 1000))
    expected = 60000 * (1 - (1 - 1 / 255) ** 4)
    assert wrong <= expected + 6 * expected ** 0.5
    assert r.execute_command("TAMIS.INFO", "f")[1] == b"filter"
