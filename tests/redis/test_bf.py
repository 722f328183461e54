"""The BF commands, for clients that know no others: their syntax, replies and words."""
import pytest
import redis

from test_keys import refused


def test_the_client_of_redis_py(r):
    bf = r.bf()
    assert bf.create("bloom", 0.01, 1000) is True
    assert bf.create("bloom_e", 0.01, 1000, expansion=1) is True
    assert bf.create("bloom_ns", 0.01, 1000, noScale=True) is True
    assert bf.add("bloom", "foo") == 1 and bf.add("bloom", "foo") == 0
    assert bf.exists("bloom", "foo") == 1 and bf.exists("bloom", "noexist") == 0
    assert bf.madd("bloom", "foo", "bar", "baz") == [0, 1, 1]
    assert bf.mexists("bloom", "foo", "noexist") == [1, 0]
    assert bf.insert("captest", ["foo"], capacity=1000) == [1]
    assert bf.insert("errtest", ["foo"], error=0.01) == [1]
    assert bf.insert("exptest", ["foo"], expansion=4) == [1]
    assert bf.insert("captest", ["foo"], noCreate=True, noScale=False) == [0]
    i = bf.info("bloom")
    assert i.insertedNum == 3 and i.capacity == 1000 and i.filterNum == 1
    assert i.expansionRate == 2 and i.size > 1000
    assert bf.info("bloom_e").expansionRate == 1
    assert bf.info("exptest").expansionRate == 4
    assert bf.info("bloom_ns").expansionRate is None
    assert r.execute_command("BF.CARD", "bloom") == 3


def test_dump_and_load_by_the_client(r):
    bf = r.bf()
    bf.create("from", 0.0001, 1000)
    for i in range(3000):
        bf.add("from", "item-%d" % i)
    chunks, cursor = [], 0
    while True:
        cursor, data = bf.scandump("from", cursor)
        if cursor == 0:
            assert data == b""
            break
        chunks.append((cursor, data))
    for cursor, data in chunks:
        assert bf.loadchunk("to", cursor, data) == b"OK"
    assert bf.info("to").insertedNum == bf.info("from").insertedNum
    assert all(bf.mexists("to", *["item-%d" % i for i in range(3000)]))
    assert r.execute_command("DEBUG", "DIGEST-VALUE", "to") == \
        r.execute_command("DEBUG", "DIGEST-VALUE", "from")
    assert refused(r, "BF.LOADCHUNK", "to", chunks[0][0], chunks[0][1]) == "received bad data"


def test_words_of_errors(server, r):
    """Byte for byte: some of them have no prefix."""
    r.set("s", "x")
    r.execute_command("BF.RESERVE", "b", 0.01, 100)
    wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value"
    cases = {
        "BF.RESERVE b 0.01 100": "ERR item exists",
        "BF.RESERVE s 0.01 100": wrong_type,
        "BF.RESERVE q abc 100": "ERR bad error rate",
        "BF.RESERVE q 1.0 100": "ERR error rate must be in the range (0.000000, 1.000000)",
        "BF.RESERVE q 0 100": "ERR error rate must be in the range (0.000000, 1.000000)",
        "BF.RESERVE q 0.01 abc": "ERR bad capacity",
        "BF.RESERVE q 0.01 0": "ERR capacity must be in the range [1, 1073741824]",
        "BF.RESERVE q 0.01 1073741825": "ERR capacity must be in the range [1, 1073741824]",
        "BF.RESERVE q 0.01 100 EXPANSION": "ERR no expansion",
        "BF.RESERVE q 0.01 100 EXPANSION abc": "ERR bad expansion",
        "BF.RESERVE q 0.01 100 EXPANSION 32769": "ERR expansion must be in the range [0, 32768]",
        "BF.RESERVE q 0.01 100 EXPANSION 2 NONSCALING": "Nonscaling filters cannot expand",
        "BF.RESERVE q 0.01 100 NONSCALING EXPANSION 2": "Nonscaling filters cannot expand",
        "BF.RESERVE q 0.01": "ERR wrong number of arguments for 'bf.reserve' command",
        "BF.RESERVE q 0.01 100 EXPANSION 2 NONSCALING x":
            "ERR wrong number of arguments for 'bf.reserve' command",
        "BF.RESERVE q 0.01 100 DELETABLE": "ERR unknown option 'DELETABLE'",
        "BF.ADD s x": wrong_type, "BF.MADD s x": wrong_type, "BF.CARD s": wrong_type, "BF.INFO s": wrong_type,
        "BF.SCANDUMP s 0": wrong_type, "BF.LOADCHUNK s 1 x": wrong_type,
        "BF.INSERT s ITEMS x": wrong_type,
        "BF.INFO gone": "ERR not found",
        "BF.INFO b BOGUS": "Invalid information value",
        "BF.INSERT gone NOCREATE ITEMS a": "ERR not found",
        "BF.INSERT q CAPACITY 0 ITEMS a": "Bad capacity",
        "BF.INSERT q CAPACITY x ITEMS a": "Bad capacity",
        "BF.INSERT q ERROR 2 ITEMS a": "Bad error rate",
        "BF.INSERT q ERROR x ITEMS a": "Bad error rate",
        "BF.INSERT q EXPANSION x ITEMS a": "Bad expansion",
        "BF.INSERT q BOGUS ITEMS a": "Unknown argument received",
        "BF.INSERT q DELETABLE ITEMS a": "Unknown argument received",
        "BF.INSERT q CAPACITY 5": "ERR wrong number of arguments for 'bf.insert' command",
        "BF.INSERT q ITEMS": "ERR wrong number of arguments for 'bf.insert' command",
        "BF.SCANDUMP b abc": "Second argument must be numeric",
        "BF.SCANDUMP none abc": "ERR not found",
        "BF.SCANDUMP gone 0": "ERR not found",
        "BF.LOADCHUNK lc abc x": "ERR Second argument must be numeric",
        "BF.LOADCHUNK lc 1 not-a-filter": "ERR received bad data",
        "BF.LOADCHUNK lc 0 not-a-filter": "ERR not found",
        "BF.LOADCHUNK b 1 x": "ERR received bad data",
    }
    for command, text in cases.items():
        for resp in (2, 3):
            assert server.raw(*command.split(), resp=resp) == b"-%s\r\n" % text.encode(), command
    assert sorted(r.keys()) == [b"b", b"s"]


def test_edge_cases(server, r):
    do = server.client().execute_command  # without the replies that bf() makes objects of
    r.set("s", "x")  # a key of another type has nothing, but TAMIS.EXISTS says what is wrong
    assert do("BF.EXISTS", "s", "x") == 0 and do("BF.MEXISTS", "s", "x", "y") == [0, 0]
    assert refused(r, "TAMIS.EXISTS", "s", "x").startswith("WRONGTYPE")
    assert do("BF.EXISTS", "gone", "x") == 0 and do("BF.MEXISTS", "gone", "x", "y") == [0, 0]
    assert do("BF.CARD", "gone") == 0
    assert do("BF.RESERVE", "e0", 0.01, 3, "EXPANSION", 0)
    assert do("BF.INFO", "e0", "EXPANSION") == [None]
    said = do("BF.MADD", "e0", *"abcdef")
    assert said[:3] == [1, 1, 1] and len(said) == 4
    assert isinstance(said[3], redis.ResponseError)
    assert str(said[3]) == "non scaling filter is full"
    with pytest.raises(redis.ResponseError, match="^non scaling filter is full$"):
        do("BF.ADD", "e0", "q")
    assert do("BF.INSERT", "ns", "NONSCALING", "EXPANSION", 2, "ITEMS", "x") == [1]
    assert do("BF.INFO", "ns", "EXPANSION") == [None]
    assert do("BF.INSERT", "auto", "ITEMS", "x") == [1]
    assert do("BF.INFO", "auto", "capacity") == [100]
    assert do("BF.INFO", "auto", "items") == [1] and do("BF.INFO", "auto", "Filters") == [1]
    assert do("BF.INFO", "auto", "SIZE") == [do("BF.INFO", "auto")[3]]
    for name in ("nonscaling", "EXPANSION", "items"):
        assert do("BF.RESERVE", name, 0.01, 10)
        assert do("BF.INFO", name, "expansion") == [2]


def test_words_of_valkey_bloom(server, r):
    """What its clients send beyond RedisBloom's arguments, where the two do not contradict."""
    do = server.client().execute_command  # without the replies that bf() makes objects of
    assert do("BF.INSERT", "f", "ERROR", 0.001, "TIGHTENING", 0.6, "SEED", "s" * 32, "VALIDATESCALETO",
              100000, "ITEMS", "a") == [1]
    assert [float(x) for x in do("BF.INFO", "f", "ERROR") + do("BF.INFO", "f", "tightening")] == [0.001, 1]
    assert refused(r, "BF.INSERT", "g", "TIGHTENING", 1, "ITEMS", "a") == \
        "tightening ratio must be in the range (0, 1)"
    assert refused(r, "BF.INSERT", "g", "SEED", "short", "ITEMS", "a") == "invalid seed"
    for missing in ("CAPACITY", "ERROR", "EXPANSION", "SEED"):  # as RedisBloom replies
        assert refused(r, "BF.INSERT", "g", "NOCREATE", missing) == "wrong number of arguments for 'bf.insert' command"
    r.config_set("tamis.value-limit", "1mb")
    do("BF.INSERT", "m", "ERROR", 0.001, "ITEMS", "a")
    do("BF.RESERVE", "n", 0.001, 100, "NONSCALING")
    [most] = do("BF.INFO", "m", "MAXSCALEDCAPACITY")
    assert 10**5 < most < 10**6 and refused(r, "BF.INFO", "n", "MAXSCALEDCAPACITY") == "Invalid information value"
    do("BF.INSERT", "g", "ERROR", 0.001, "VALIDATESCALETO", most, "ITEMS", "a")
    for i in range(0, most, 1000):
        assert not any(isinstance(x, Exception) for x in do("BF.MADD", "m", *range(i, min(most, i + 1000)))), i
    assert do("DEL", "g", "m", "n") == 3
    assert refused(r, "BF.INSERT", "g", "ERROR", 0.001, "VALIDATESCALETO", most + most // 100, "ITEMS", "a") == \
        "provided VALIDATESCALETO causes bloom object to exceed memory limit"
    assert refused(r, "BF.INSERT", "g", "VALIDATESCALETO", 10**7, "ITEMS", "a") == \
        "provided VALIDATESCALETO causes bloom object to exceed memory limit"
    assert refused(r, "BF.INSERT", "g", "NONSCALING", "VALIDATESCALETO", 1000, "ITEMS", "a") == \
        "cannot use NONSCALING and VALIDATESCALETO options together"
    r.config_set("tamis.value-limit", 0)
    data = do("TAMIS.DUMP", "f", 0)[1]
    assert do("BF.LOAD", "copy", data) == b"OK" and do("BF.EXISTS", "copy", "a") == 1
    assert refused(r, "BF.LOAD", "copy", data) == "received bad data"
    assert refused(r, "BF.LOAD", "short", data[:-1]) == "received bad data"
    assert refused(r, "BF.LOAD", "theirs", b"\1\2\3") == "received bad data"
    assert sorted(r.keys()) == [b"copy", b"f"]


def test_protocol_3(server):
    raw = server.raw
    assert raw("BF.RESERVE", "f", 0.01, 10, resp=3) == b"+OK\r\n"
    assert raw("BF.ADD", "f", "a", resp=3) == b"#t\r\n"
    assert raw("BF.ADD", "f", "a", resp=3) == b"#f\r\n"
    assert raw("BF.INSERT", "f", "ITEMS", "a", "b", resp=3) == b"*2\r\n#f\r\n#t\r\n"
    assert raw("BF.MEXISTS", "f", "a", "x", resp=3) == b"*2\r\n#t\r\n#f\r\n"
    assert raw("BF.INFO", "f", resp=3).startswith(b"%5\r\n+Capacity\r\n:10\r\n+Size\r\n:")
    assert raw("BF.INFO", "f").startswith(b"*10\r\n+Capacity\r\n:10\r\n+Size\r\n:")
    assert raw("BF.INFO", "f", "ITEMS", resp=3) == b"%1\r\n+Number of items inserted\r\n:2\r\n"
    assert raw("BF.EXISTS", "none", "a", resp=3) == b"#f\r\n"


def test_ten_thousand_items_of_a_hundred(r):
    """A filter grows to 100 times its capacity and keeps its rate."""
    r.execute_command("BF.RESERVE", "f", 0.01, 100)
    for i in range(0, 10000, 500):
        r.execute_command("BF.MADD", "f", *range(i, i + 500))
    wrong = sum(sum(r.execute_command("BF.MEXISTS", "f", *["x%d" % j for j in range(i, i + 1000)]))
                for i in range(0, 100000, 1000))
    assert wrong <= 1000 + 6 * 1000 ** 0.5
    assert all(r.execute_command("BF.MEXISTS", "f", *range(10000)))


@pytest.mark.parametrize("how, there", [("", True), ("bf=auto", True), ("bf=yes", True),
                                        ("bf=no", False)])
def test_the_argument(servers, how, there):
    r = servers(how).r
    assert r.execute_command("TAMIS.ADD", "f", "x") == 1
    if there:
        assert r.execute_command("BF.EXISTS", "f", "x") == 1
    else:
        assert refused(r, "BF.EXISTS", "f", "x").startswith("unknown command")
