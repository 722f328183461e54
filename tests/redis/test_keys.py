"""Commands on keys: replies, options, errors, in both protocols."""
import random

import pytest
import redis

GROWTHS = ["smooth", "fixed", "dynamic", "scalable", "flexible", "window"]


def refused(r, *words):
    with pytest.raises(redis.ResponseError) as caught:
        r.execute_command(*words)
    return str(caught.value)


def info(r, key):
    flat = r.execute_command("TAMIS.INFO", key)
    return {flat[i].decode(): flat[i + 1] for i in range(0, len(flat), 2)}


def reserve(r, key, rate, capacity, *options):
    assert r.execute_command("TAMIS.RESERVE", key, rate, capacity, *options) == b"OK"


def test_add_and_exists(r):
    reserve(r, "f", 0.01, 100)
    assert r.execute_command("TAMIS.ADD", "f", "x") == 1
    assert r.execute_command("TAMIS.ADD", "f", "x") == 0
    assert r.execute_command("TAMIS.EXISTS", "f", "x") == 1
    assert r.execute_command("TAMIS.EXISTS", "f", "y") == 0
    assert r.execute_command("TAMIS.MADD", "f", "x", "y", "y") == [0, 1, 0]
    assert r.execute_command("TAMIS.MEXISTS", "f", "x", "y", "z") == [1, 1, 0]
    assert r.execute_command("TAMIS.CARD", "f") == 2


def test_keys_are_bytes(r):
    odd = [b"", b"\0", b"\r\n", b"\xff" * 300, "né".encode(), b"a" * 100000]
    assert r.execute_command("TAMIS.MADD", "f", *odd) == [1] * len(odd)
    assert r.execute_command("TAMIS.MEXISTS", "f", *odd) == [1] * len(odd)
    assert all(r.execute_command("TAMIS.EXISTS", "f", k) == 1 for k in odd)


def test_missing_keys(r):
    assert r.execute_command("TAMIS.EXISTS", "no", "x") == 0
    assert r.execute_command("TAMIS.MEXISTS", "no", "x", "y") == [0, 0]
    assert r.execute_command("TAMIS.CARD", "no") == 0
    assert r.execute_command("TAMIS.DEL", "no", "x") == 0
    assert r.execute_command("TAMIS.MDEL", "no", "x", "y") == [0, 0]
    for command in (["TAMIS.INFO", "no"], ["TAMIS.CLEAR", "no"], ["TAMIS.FORGET", "no"],
                    ["TAMIS.INSERT", "no", "NOCREATE", "ITEMS", "x"], ["TAMIS.FOLD", "no"],
                    ["TAMIS.MERGE", "to", 1, "no"], ["TAMIS.INTERSECT", "to", "no", "no"],
                    ["TAMIS.DUMP", "no", 0], ["TAMIS.SCANDUMP", "no", 0],
                    ["TAMIS.LOAD", "no", 64, "abc"]):
        assert refused(r, *command) == "not found", command
    assert r.exists("no", "to") == 0


def test_wrong_type(r):
    r.set("s", "text")
    r.execute_command("TAMIS.ADD", "f", "x")
    for command in (["ADD", "s", "x"], ["MADD", "s", "x"], ["EXISTS", "s", "x"],
                    ["MEXISTS", "s", "x"], ["INSERT", "s", "ITEMS", "x"], ["DEL", "s", "x"],
                    ["MDEL", "s", "x"], ["CARD", "s"], ["INFO", "s"], ["CLEAR", "s"],
                    ["FORGET", "s"], ["RESERVE", "s", 0.01, 10], ["MERGE", "s", 1, "f"],
                    ["MERGE", "f", 1, "s"], ["INTERSECT", "s", "f", "f"],
                    ["INTERSECT", "n", "f", "s"], ["FOLD", "s"], ["DUMP", "s", 0],
                    ["LOAD", "s", 0, b"TAMIS"], ["SCANDUMP", "s", 0], ["LOADCHUNK", "s", 1, "x"],
                    ["RESERVE", "n", "LIKE", "s"], ["RESERVE", "n", 0.1, 10, "LIKE", "s"]):
        assert refused(r, "TAMIS." + command[0], *command[1:]).startswith("WRONGTYPE"), command
    assert r.get("s") == b"text" and r.exists("n") == 0


def test_arity(r):
    for command in ("RESERVE k", "RESERVE k 0.1", "ADD k", "ADD k a b", "MADD k", "INSERT k",
                    "INSERT k ITEMS", "EXISTS k", "EXISTS k a b", "MEXISTS k", "DEL k", "MDEL k",
                    "CARD", "CARD a b", "INFO", "INFO a b", "CLEAR", "CLEAR k AT", "FORGET",
                    "MERGE a 1", "INTERSECT a b", "FOLD", "FOLD a b c", "DUMP k", "LOAD k 0",
                    "LOAD k 0 a MAXMEM", "SCANDUMP k", "LOADCHUNK k 1"):
        words = command.split()
        assert refused(r, "TAMIS." + words[0], *words[1:]).startswith("wrong number of arguments")
    assert refused(r, "TAMIS.INSERT", "k", "CAPACITY", "5").startswith("wrong number")


def test_reserve_refuses(r):
    reserve(r, "f", 0.01, 10)
    cases = {
        ("k", "abc", 10): "bad error rate",
        ("k", 0, 10): "error rate must be in the range (0.000000, 1.000000)",
        ("k", 1, 10): "error rate must be in the range (0.000000, 1.000000)",
        ("k", "nan", 10): None,
        ("k", 0.1, "x"): "bad capacity",
        ("k", 0.1, 0): "capacity must be in the range [1, 1099511627776]",
        ("k", 0.1, -5): "capacity must be in the range [1, 1099511627776]",
        ("k", 0.1, 2**62): "capacity must be in the range [1, 1099511627776]",
        ("k", 0.1, 10, "BOGUS"): "unknown option 'BOGUS'",
        ("k", 0.1, 10, "ITEMS"): "unknown option 'ITEMS'",
        ("k", 0.1, 10, "EXPANSION"): "no expansion",
        ("k", 0.1, 10, "EXPANSION", "x"): "bad expansion",
        ("k", 0.1, 10, "EXPANSION", -1): "expansion must be in the range [0, 32768]",
        ("k", 0.1, 10, "EXPANSION", 2, "NONSCALING"): "Nonscaling filters cannot expand",
        ("k", 0.1, 10, "NONSCALING", "EXPANSION", 2): "Nonscaling filters cannot expand",
        ("k", 0.1, 10, "GROWTH"): "GROWTH needs a value",
        ("k", 0.1, 10, "GROWTH", "wild"):
            "GROWTH is smooth, fixed, dynamic, scalable, flexible or window",
        ("k", 0.1, 10, "GROWTH", "dynamic", "NONSCALING"):
            "NONSCALING and EXPANSION 0 mean GROWTH fixed",
        ("k", 0.1, 10, "GROWTH", "dynamic", "EXPANSION", 2):
            "EXPANSION goes with GROWTH scalable",
        ("k", 0.1, 10, "WINDOW", 5): "WINDOW goes with GROWTH window",
        ("k", 0.1, 10, "GROWTH", "window", "WINDOW", 0):
            "WINDOW is a number of seconds, from 0.001 to 1e9",
        ("k", 0.1, 10, "COMPACT", "GROWTH", "window"): "COMPACT goes with GROWTH smooth, fixed or scalable",
        ("k", 0.1, 10, "COMPACT", "GROWTH", "dynamic"): "COMPACT goes with GROWTH smooth, fixed or scalable",
        ("k", 0.1, 10, "LAYOUT", "x"): "LAYOUT is spread or blocked",
        ("k", 0.1, 10, "HASH", "x"): "HASH is sip, xxh3 or h3",
        ("k", 0.1, 10, "KEY", "12"): "KEY is 32 hexadecimal digits",
        ("k", 0.1, 10, "MAXMEM", "x"): "MAXMEM is a number of bytes",
        ("k", 0.1, 10, "MAXMEM", 1 << 50):
            "MAXMEM is above tamis.value-limit, %d bytes" % r.info("tamis")["tamis_value_limit"],
        ("k", 0.1, 10, "AT", "x"): "AT is a time in nanoseconds since 1970",
        ("k", 0.1, 10, "UNIQUE"):
            "could not create filter: unique is a promise about removals: add deletable",
        ("k", 0.1, 10, "GROWTH", "window", "DELETABLE"):
            "could not create filter: window filters expire keys by age; they cannot be deletable",
        ("k", 0.1, 10, "LIKE", "no"): "LIKE: there is no such key",
        ("k", "LIKE", "no"): "LIKE: there is no such key",
        ("k", "LIKE", "f", "DELETABLE"): "LIKE without rate and capacity takes no other options",
        ("f", 0.1, 10): "item exists",
        ("f", "LIKE", "f"): "item exists",
    }
    for words, text in cases.items():
        said = refused(r, "TAMIS.RESERVE", *words)
        assert text is None or said == text, words
    assert r.keys() == [b"f"]


def test_a_key_named_like_an_option(r):
    for name in ("nonscaling", "EXPANSION", "items", "like"):
        reserve(r, name, 0.01, 10)
        assert info(r, name)["growth"] == b"smooth"
        assert r.execute_command("TAMIS.INSERT", name, "ITEMS", "ITEMS", "nocreate") == [1, 1]


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("deletable", [False, True])
@pytest.mark.parametrize("layout", ["", "spread"])
def test_every_growth(r, growth, deletable, layout):
    if (growth == "window" and deletable) or (growth == "smooth" and layout):
        return
    options = ["GROWTH", growth] + ["DELETABLE"] * deletable + ["LAYOUT", layout] * bool(layout)
    capacity = 5000 if growth in ("fixed", "dynamic", "window") else 200
    reserve(r, "f", 0.01, capacity, *options)
    keys = ["%s-%d" % (growth, i) for i in range(5000)]
    for i in range(0, 5000, 500):
        r.execute_command("TAMIS.MADD", "f", *keys[i:i + 500])
    assert all(r.execute_command("TAMIS.MEXISTS", "f", *keys))
    asked = ["other-%d" % i for i in range(20000)]
    wrong = sum(sum(r.execute_command("TAMIS.MEXISTS", "f", *asked[i:i + 1000]))
                for i in range(0, 20000, 1000))
    assert wrong <= 200 + 6 * 200 ** 0.5
    i = info(r, "f")
    assert i["growth"].decode() == growth and i["deletable"] == deletable
    assert 4900 <= i["items"] <= 5000 and float(i["fpp"]) == 0.01
    assert float(i["fpp_now"]) <= 0.0125 and 0 < float(i["fill"]) < 1
    assert i["hash"] == b"sip" and i["pending"] == 0 and i["memory_limit"] == r.info("tamis")["tamis_value_limit"]
    if deletable:
        gone = set(random.Random(5).sample(range(5000), 2500))
        said = r.execute_command("TAMIS.MDEL", "f", *[keys[j] for j in gone])
        assert 0 not in said and len(said) == 2500
        assert all(r.execute_command("TAMIS.MEXISTS", "f",
                                     *[k for j, k in enumerate(keys) if j not in gone]))
        assert r.execute_command("TAMIS.CARD", "f") == i["items"] - 2500
    assert r.execute_command("TAMIS.CLEAR", "f") == b"OK"
    assert not any(r.execute_command("TAMIS.MEXISTS", "f", *keys))
    assert r.execute_command("TAMIS.CARD", "f") == 0


def test_full_filters_say_so(r):
    reserve(r, "f", 0.01, 4, "NONSCALING")
    said = r.execute_command("TAMIS.MADD", "f", *"abcdefgh")
    assert said[:4] == [1] * 4 and str(said[4]) == "non scaling filter is full" and len(said) == 5
    assert refused(r, "TAMIS.ADD", "f", "z") == "non scaling filter is full"
    assert r.execute_command("TAMIS.ADD", "f", "a") == 0
    assert r.execute_command("TAMIS.CARD", "f") == 4
    reserve(r, "d", 0.01, 4, "GROWTH", "dynamic")
    said = r.execute_command("TAMIS.MADD", "d", *"abcdefgh")
    assert "the filter is full: it holds the 4 keys it was made for" in str(said[-1])


RECORDS = ["ATTRIBUTES", 2, "a", "b"]
MEMORY = "the value may not grow past its limit of %d bytes"


@pytest.mark.parametrize("make, add, says", [
    (["RESERVE", 0.01, 50, "GROWTH", "fixed"], "ADD", "non scaling filter is full"),
    (["RESERVE", 0.01, 50, "GROWTH", "dynamic"], "ADD", "the filter is full: it holds the 50 keys"),
    (["RESERVE", 0.01, 50, "GROWTH", "dynamic", "DELETABLE"], "ADD", "the filter is full: it holds the 50"),
    (["RESERVE", 0.01, 50000, "GROWTH", "dynamic", "MAXMEM", 30000], "ADD", MEMORY % 30000),
    (["RESERVE", 0.01, 50, "MAXMEM", 4000], "ADD", MEMORY % 4000),
    (["RESERVE", 0.01, 50, "GROWTH", "flexible", "MAXMEM", 4000], "ADD", MEMORY % 4000),
    (["RESERVE", 0.01, 5000, "GROWTH", "window", "WINDOW", 1e6, "MAXMEM", 9000], "ADD", MEMORY % 9000),
    (["XRESERVE", 0.01, 50] + RECORDS + ["GROWTH", "fixed"], "XADD",
     "the set of records is full: it holds the 50 records it was made for"),
    (["XRESERVE", 0.01, 50] + RECORDS + ["GROWTH", "dynamic"], "XADD",
     "the set of records is full: it holds the 50 records it was made for"),
    (["XRESERVE", 0.01, 50] + RECORDS + ["GROWTH", "dynamic", "DELETABLE"], "XADD",
     "the set of records is full: it holds the 50 records it was made for"),
    (["XRESERVE", 0.01, 50000] + RECORDS + ["GROWTH", "dynamic", "MAXMEM", 90000], "XADD", MEMORY % 90000),
    (["XRESERVE", 0.01, 50] + RECORDS + ["MAXMEM", 20000], "XADD", MEMORY % 20000),
    (["XRESERVE", 0.01, 5000] + RECORDS + ["GROWTH", "fixed", "VERIFIER", "table", "MAXMEM", 40000],
     "XADD", MEMORY % 40000),
], ids=lambda x: " ".join(map(str, x)) if isinstance(x, list) else None)
def test_what_it_is_full_of(r, make, add, says):
    """A refusal says whether it is the capacity or the memory, for filters and records."""
    r.execute_command("TAMIS." + make[0], "v", *make[1:])
    error = None
    for i in range(20000):
        try:
            r.execute_command("TAMIS." + add, "v", *(["a=%d" % i, "b=%d" % i] if add == "XADD" else [i]))
        except redis.ResponseError as e:
            error = str(e)
            break
    assert error and error.startswith(says), (i, error)
    assert i > 20


def test_a_window_takes_its_capacity_however_it_arrives(r):
    """Ten adds a second for four seconds, of which the window remembers two, and then a burst."""
    start, step = 10**18, 10**8
    reserve(r, "w", 0.01, 100, "GROWTH", "window", "WINDOW", 2, "AT", start)
    for i in range(40):
        r.execute_command("TAMIS.INSERT", "w", "AT", start + i * step, "ITEMS", i)
    said = r.execute_command("TAMIS.INSERT", "w", "AT", start + 40 * step, "ITEMS", *range(1000, 1079))
    assert len(said) == 79 and all(isinstance(x, int) for x in said)
    assert all(r.execute_command("TAMIS.MEXISTS", "w", *range(1000, 1079)))


def test_memory_limits(r):
    assert "more than 1000 bytes" in refused(r, "TAMIS.RESERVE", "f", 0.01, 10000, "MAXMEM", 1000)
    r.config_set("tamis.value-limit", "500mb")
    assert "more than 524288000 bytes" in refused(r, "TAMIS.RESERVE", "f", 0.01, 2**33)
    r.config_set("tamis.value-limit", 0)
    assert r.exists("f") == 0
    reserve(r, "f", 0.01, 1000, "MAXMEM", 20000)
    error = None
    for i in range(200):
        said = r.execute_command("TAMIS.MADD", "f", *["%d-%d" % (i, j) for j in range(100)])
        error = next((s for s in said if isinstance(s, Exception)), None)
        if error:
            break
    assert "may not grow past its limit of 20000 bytes" in str(error)
    assert r.memory_usage("f") < 21000
    held = r.execute_command("TAMIS.CARD", "f")
    assert refused(r, "TAMIS.ADD", "f", "one more").startswith("the value may not grow")
    assert r.execute_command("TAMIS.CARD", "f") == held


def test_removal(r):
    reserve(r, "p", 0.01, 100)
    r.execute_command("TAMIS.ADD", "p", "x")
    for command in (["TAMIS.DEL", "p", "x"], ["TAMIS.MDEL", "p", "x"]):
        assert refused(r, *command) == "the filter is not deletable: make it with DELETABLE"
    reserve(r, "d", 0.001, 100, "DELETABLE")
    r.execute_command("TAMIS.MADD", "d", "a", "b", "a")
    assert r.execute_command("TAMIS.CARD", "d") == 3
    assert r.execute_command("TAMIS.MDEL", "d", "a", "zzz", "a", "a") == [1, 0, 1, 0]
    assert r.execute_command("TAMIS.MEXISTS", "d", "a", "b") == [0, 1]
    assert r.execute_command("TAMIS.DEL", "d", "b") == 1
    assert r.execute_command("TAMIS.CARD", "d") == 0
    r.execute_command("TAMIS.MADD", "d", "AT", "ITEMS")
    assert r.execute_command("TAMIS.REMOVE", "d", "ITEMS", "AT", "none") == [1, 0]
    assert r.execute_command("TAMIS.REMOVE", "d", "AT", 5, "ITEMS", "ITEMS") == [1]
    assert refused(r, "TAMIS.REMOVE", "d", "AT", "x", "ITEMS", "a").startswith("AT is a time")
    assert refused(r, "TAMIS.REMOVE", "d", "AT", "5", "a").startswith("wrong number")
    assert refused(r, "TAMIS.REMOVE", "d", "a", "b").startswith("wrong number")


def test_pending_removals(r):
    """In a stack some keys match several vectors: their removal is remembered, then settled."""
    for unique in ([], ["UNIQUE"]):
        reserve(r, "f", 0.3, 500, "DELETABLE", "EXPANSION", 1, *unique)
        keys = ["k%d" % i for i in range(6000)]
        r.execute_command("TAMIS.MADD", "f", *keys)
        said = r.execute_command("TAMIS.MDEL", "f", *keys[:3000])
        assert 2 in said and 0 not in said
        assert all(r.execute_command("TAMIS.MEXISTS", "f", *keys[3000:]))
        rest = r.execute_command("TAMIS.MDEL", "f", *keys[3000:])
        assert 0 not in rest
        i = info(r, "f")
        assert i["items"] == 0 and i["pending"] == 0
        r.delete("f")


def test_insert(r):
    assert r.execute_command("TAMIS.INSERT", "i", "CAPACITY", 500, "ERROR", 0.02, "DELETABLE",
                             "GROWTH", "fixed", "ITEMS", "a", "b") == [1, 1]
    i = info(r, "i")
    assert (i["capacity"], float(i["fpp"]), i["growth"], i["deletable"]) == \
        (500, 0.02, b"fixed", 1)
    assert r.execute_command("TAMIS.INSERT", "i", "NOCREATE", "ITEMS", "a") == [0]
    assert refused(r, "TAMIS.INSERT", "j", "WHAT", "ITEMS", "a") == "unknown option 'WHAT'"
    assert refused(r, "TAMIS.INSERT", "j", "CAPACITY", "0", "ITEMS", "a").startswith("capacity must")
    assert refused(r, "TAMIS.INSERT", "j", "LIKE", "i", "ITEMS", "a") == "unknown option 'LIKE'"
    assert r.exists("j") == 0


def test_like(r):
    reserve(r, "a", 0.02, 300, "DELETABLE", "HASH", "xxh3", "KEY", "00112233445566778899aabbccddeeff")
    r.execute_command("TAMIS.MADD", "a", "x", "y")
    assert r.execute_command("TAMIS.RESERVE", "b", "LIKE", "a") == b"OK"
    assert r.execute_command("TAMIS.CARD", "b") == 0
    same = {k: v for k, v in info(r, "a").items()
            if k not in ("items", "fill", "fpp_now", "distinct", "bytes")}
    assert {k: v for k, v in info(r, "b").items() if k in same} == same
    reserve(r, "c", 0.02, 300, "DELETABLE", "LIKE", "a")
    r.execute_command("TAMIS.ADD", "c", "z")
    assert r.execute_command("TAMIS.MERGE", "b", 2, "a", "c") == b"OK"
    assert r.execute_command("TAMIS.MEXISTS", "b", "x", "y", "z") == [1, 1, 1]
    reserve(r, "other", 0.02, 300, "DELETABLE", "HASH", "xxh3")
    assert "different families" in refused(r, "TAMIS.MERGE", "b", 1, "other")


def test_windows_forget(r):
    second = 10**9
    reserve(r, "w", 0.01, 1000, "GROWTH", "window", "WINDOW", 10, "AT", 1000 * second)

    def insert(at, *keys):
        return r.execute_command("TAMIS.INSERT", "w", "AT", at * second, "ITEMS", *keys)
    assert insert(1000, "a", "b") == [1, 1]
    assert insert(1005, "a", "c") == [0, 1]
    assert float(info(r, "w")["window"]) == 10.0
    assert r.execute_command("TAMIS.MEXISTS", "w", "a", "b", "c") == [1, 1, 1]
    assert insert(1012, "d") == [1]
    assert insert(1014, "e") == [1]
    assert r.execute_command("TAMIS.MEXISTS", "w", "a", "b", "c", "d") == [1, 0, 1, 1]
    assert r.execute_command("TAMIS.FORGET", "w", "AT", 1023 * second) == b"OK"
    assert r.execute_command("TAMIS.MEXISTS", "w", "a", "b", "c", "d", "e") == [0, 0, 0, 0, 1]
    assert r.execute_command("TAMIS.EXISTS", "w", "e") == 1  # reads change nothing
    assert refused(r, "TAMIS.FORGET", "w", "AT", "x").startswith("only AT and nanoseconds")
    r.execute_command("TAMIS.ADD", "s", "x")
    assert "not supported by this kind" in refused(r, "TAMIS.FORGET", "s")


def test_the_stated_rate_is_the_total(r):
    """100 times its capacity, and the rate still holds."""
    reserve(r, "f", 0.01, 1000)
    for i in range(0, 100000, 1000):
        r.execute_command("TAMIS.MADD", "f", *["in-%d" % j for j in range(i, i + 1000)])
    n, wrong = 200000, 0
    for i in range(0, n, 2000):
        wrong += sum(r.execute_command("TAMIS.MEXISTS", "f",
                                       *["out-%d" % j for j in range(i, i + 2000)]))
    assert wrong <= 0.01 * n + 6 * (0.01 * n) ** 0.5
    assert float(info(r, "f")["fpp_now"]) <= 0.0101


def test_replies_in_both_protocols(server, r):
    reserve(r, "f", 0.01, 100, "DELETABLE")
    raw = server.raw
    assert raw("TAMIS.ADD", "f", "a") == b":1\r\n"
    assert raw("TAMIS.ADD", "f", "b", resp=3) == b"#t\r\n"
    assert raw("TAMIS.MADD", "f", "c") == b"*1\r\n:1\r\n"
    assert raw("TAMIS.MADD", "f", "d", resp=3) == b"*1\r\n#t\r\n"
    assert raw("TAMIS.EXISTS", "f", "none") == b":0\r\n"
    assert raw("TAMIS.EXISTS", "f", "none", resp=3) == b"#f\r\n"
    assert raw("TAMIS.MEXISTS", "f", "a", "none") == b"*2\r\n:1\r\n:0\r\n"
    assert raw("TAMIS.MEXISTS", "f", "a", "none", resp=3) == b"*2\r\n#t\r\n#f\r\n"
    for resp in (2, 3):
        assert raw("TAMIS.CARD", "f", resp=resp) == b":4\r\n"
        assert raw("TAMIS.DEL", "f", "none", resp=resp) == b":0\r\n"
        assert raw("TAMIS.MDEL", "f", "none", resp=resp) == b"*1\r\n:0\r\n"
        assert raw("TAMIS.EXISTS", "none", resp=resp) == \
            b"-ERR wrong number of arguments for 'tamis.exists' command\r\n"
    assert raw("TAMIS.INFO", "f").startswith(b"*44\r\n+kind\r\n+filter\r\n+growth\r\n+smooth\r\n")
    three = raw("TAMIS.INFO", "f", resp=3)
    assert three.startswith(b"%22\r\n") and b"+deletable\r\n#t\r\n" in three
    assert b"+window\r\n_\r\n" in three and b"+fpp\r\n,0.01\r\n" in three
