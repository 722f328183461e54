"""DUMP and LOAD: files of the command line become keys and back; whole filters; limits."""
import random
import subprocess

import pytest

from conftest import ASAN, TAMIS, wait
from sets import DELETABLE, KINDS, Load
from test_keys import info, refused, reserve


def pull(r, key, *words, command="TAMIS.DUMP"):
    cursor, pieces = 0, []
    while True:
        cursor, data = r.execute_command(command, key, cursor, *words)
        pieces.append(data)
        if cursor == 0:
            return b"".join(pieces)


def tamis(*words, text=""):
    done = subprocess.run([TAMIS] + [str(w) for w in words], input=text, capture_output=True,
                          text=True)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def test_a_key_becomes_a_file(server, r, tmp_path):
    load = Load(r)
    load.create()
    load.run(400)
    for name in KINDS:
        path = tmp_path / (name + ".tamis")
        path.write_bytes(pull(r, "{v}" + name, "WITHKEY"))
        tamis("verify", path)
        keys = load.there[name][-2000:] + ["none%d" % i for i in range(2000)]
        said = set(tamis("check", path, text="\n".join(keys) + "\n").split())
        there = r.execute_command("TAMIS.MEXISTS", "{v}" + name, *keys)
        assert said == {k for k, yes in zip(keys, there) if yes}, name
        if name in DELETABLE:
            assert set(load.there[name]) & set(keys) <= said


def test_a_file_becomes_a_key(server, r, tmp_path):
    path = tmp_path / "f.tamis"
    tamis("create", path, "--capacity", 5000, "--fpp", 0.001, "--deletable")
    tamis("add", path, text="".join("line %d\n" % i for i in range(20000)))
    data = path.read_bytes()
    assert r.execute_command("TAMIS.LOAD", "whole", 0, data) == 0
    for i in range(0, len(data), 30000):
        left = r.execute_command("TAMIS.LOAD", "pieces", i, data[i:i + 30000])
        assert left == max(0, len(data) - i - 30000)
    assert server.digest("whole") == server.digest("pieces")
    assert all(r.execute_command("TAMIS.MEXISTS", "whole", *["line %d" % i for i in range(20000)]))
    assert 0 not in r.execute_command("TAMIS.MDEL", "whole", *["line %d" % i for i in range(20000)])
    assert r.execute_command("TAMIS.CARD", "whole") == 0
    assert info(r, "whole")["memory_limit"] == r.info("tamis")["tamis_value_limit"]
    assert r.execute_command("TAMIS.LOAD", "small", 0, data, "MAXMEM", 400000) == 0
    assert info(r, "small")["memory_limit"] == 400000


def test_a_file_without_its_key(servers, r, tmp_path):
    path, key = tmp_path / "f.tamis", tmp_path / "key"
    key.write_bytes(bytes(range(16)))
    tamis("create", path, "--key-file", key, "--hash", "sip", "--no-key")
    tamis("add", path, "--key-file", key, "a", "b")
    data = path.read_bytes()
    assert "key" in refused(r, "TAMIS.LOAD", "f", 0, data)
    ours = servers(**{"tamis.family-key": bytes(range(16)).hex()}).r
    assert ours.execute_command("TAMIS.LOAD", "f", 0, data) == 0
    assert ours.execute_command("TAMIS.MEXISTS", "f", "a", "b", "c") == [1, 1, 0]


def test_loading_refuses(r):
    reserve(r, "f", 0.01, 50000)
    r.execute_command("TAMIS.MADD", "f", *range(1000))
    data = pull(r, "f")
    assert refused(r, "TAMIS.LOAD", "f", 0, data) == "item exists"
    assert refused(r, "TAMIS.LOAD", "g", 64, data[64:]) == "not found"
    assert refused(r, "TAMIS.LOAD", "g", 0, data[:127]) == "received bad data"
    assert refused(r, "TAMIS.LOAD", "g", 0, data + b"x") == "received bad data"
    assert refused(r, "TAMIS.LOAD", "g", 0, b"x" * 1000) == "received bad data"
    assert refused(r, "TAMIS.LOAD", "g", -1, data).startswith("the offset is")
    assert refused(r, "TAMIS.LOAD", "g", 0, data, "MAXMEM", 0).startswith("after the data")
    assert refused(r, "TAMIS.LOAD", "g", 0, data, "MAXMEM", 1 << 50).startswith("MAXMEM is above")
    huge = bytearray(data[:128])
    huge[16:24] = (1 << 40).to_bytes(8, "little")
    assert "more than tamis.value-limit" in refused(r, "TAMIS.LOAD", "g", 0, bytes(huge))
    assert r.exists("g") == 0
    huge[16:24] = (100 << 20).to_bytes(8, "little")  # more than there is
    assert r.execute_command("TAMIS.LOAD", "g", 0, bytes(huge)) == (100 << 20) - 128
    assert refused(r, "TAMIS.LOAD", "g", 128, data[128:1000]).startswith(
        "received bad data: the checksum of the header")
    huge[24:32] = (100 << 10).to_bytes(8, "little")  # no header has lengths like these
    assert refused(r, "TAMIS.LOAD", "g", 0, bytes(huge)).startswith("received bad data: the lengths")
    assert r.exists("g") == 0
    r.config_set("tamis.work-limit", 1 << 16)
    try:
        advice = refused(r, "TAMIS.LOAD", "g", 0, data[:(1 << 16) + 1])
        assert "would block the server" in advice and advice.endswith("Send it in smaller pieces.")
        assert r.execute_command("TAMIS.LOAD", "g", 0, data[:1 << 16]) == len(data) - (1 << 16)
        r.delete("g")
    finally:
        r.config_set("tamis.work-limit", 8 << 20)
    r.execute_command("TAMIS.LOAD", "g", 0, data[:1000])
    assert refused(r, "TAMIS.LOAD", "g", 500, data[500:]) == "received bad data: the next byte is 1000"
    assert refused(r, "TAMIS.LOAD", "g", 1000, data[1000:] + b"x") == "received bad data"
    assert r.execute_command("TAMIS.LOAD", "g", 1000, b"") == len(data) - 1000  # nothing more
    assert r.execute_command("TAMIS.LOAD", "g", 0, data[:2000]) == len(data) - 2000  # from the start
    spoiled = bytearray(data)
    spoiled[40000] ^= 1
    assert refused(r, "TAMIS.LOAD", "g", 2000, bytes(spoiled[2000:])).startswith("received bad data:")
    assert r.exists("g") == 0  # all or nothing
    assert refused(r, "TAMIS.LOAD", "g", 0, bytes(spoiled)).startswith("received bad data:")
    assert r.exists("g") == 0


def test_a_dump_is_of_one_moment(server, r):
    """Pieces fetched while the filter changes make a value that can be loaded, of the beginning."""
    reserve(r, "f", 0.0001, 1000000)
    r.execute_command("TAMIS.MADD", "f", *range(1000))
    before = server.digest("f")
    for dump, load in (("TAMIS.DUMP", None), ("TAMIS.SCANDUMP", "TAMIS.LOADCHUNK")):
        cursor, pieces, n = 0, [], 0
        while True:
            cursor, data = r.execute_command(dump, "f", cursor)
            pieces.append((cursor, data))
            r.execute_command("TAMIS.ADD", "f", "during%d%s" % (n, dump))
            n += 1
            if cursor == 0:
                break
        assert n > 2
        offset = 0
        for cursor, data in pieces:
            if load and cursor:
                r.execute_command(load, "g", cursor, data)
            elif not load:
                r.execute_command("TAMIS.LOAD", "g", offset, data)
            offset += len(data)
        assert server.digest("g") == before
        assert server.digest("f") != before
        r.delete("g")
        before = server.digest("f")


def test_cursors(server, r):
    reserve(r, "f", 0.0001, 1000000)
    reserve(r, "other", 0.0001, 1000000)
    first, _ = r.execute_command("TAMIS.DUMP", "f", 0)
    over = "this dump has ended: start again with cursor 0"
    assert refused(r, "TAMIS.DUMP", "other", first) == over  # of another key
    r2 = server.client(db=2)
    r2.execute_command("TAMIS.ADD", "f", "x")
    assert refused(r2, "TAMIS.DUMP", "f", first) == over  # of another database
    second, _ = r.execute_command("TAMIS.DUMP", "f", 0)
    assert second != first
    r.execute_command("TAMIS.DUMP", "f", first)  # both go on
    for _ in range(14):
        r.execute_command("TAMIS.DUMP", "other", 0)
    for cursor in (first, second):
        r.execute_command("TAMIS.DUMP", "f", cursor)  # and sixteen
    for _ in range(15):
        r.execute_command("TAMIS.DUMP", "other", 0)
    assert refused(r, "TAMIS.DUMP", "f", first) == over
    r.execute_command("TAMIS.DUMP", "f", second)
    assert refused(r, "TAMIS.DUMP", "f", 12345) == over
    for wrong in ("x", -1):
        assert refused(r, "TAMIS.DUMP", "f", wrong).startswith("the cursor is 0")
    used = r.info("memory")["used_memory"]
    assert used < 100 << 20


@pytest.mark.parametrize("command", ["TAMIS.DUMP", "BF.SCANDUMP"])
def test_dumps_without_end(server, r, command):
    """A cursor is a number that JavaScript and Lua can count to, however many dumps there were; and no
    two dumps that are under way have one."""
    reserve(r, "f", 0.01, 100)
    reserve(r, "g", 0.0001, 1000000)
    whole, start = pull(r, "f"), r.execute_command(command, "g", 0)
    half = start[0], server.digest("g")
    for i in range(20000 if not ASAN else 9000):
        cursor, data = r.execute_command("BF.SCANDUMP", "f", 0)
        assert 0 < cursor < 2**53 and cursor >> 40 != half[0] >> 40
        cursor, piece = r.execute_command("BF.SCANDUMP", "f", cursor)
        assert 0 < cursor < 2**53
        if i % 1000 == 0:
            assert data + piece == whole
        assert r.execute_command("BF.SCANDUMP", "f", cursor) == [0, b""]
        if i % 5000 == 0:
            r.execute_command(command, "g", half[0])  # the same piece again: it is in use
    counting = """local cursor, n = '0', 0
                  repeat
                      local reply = redis.call(ARGV[1], KEYS[1], cursor)
                      cursor, n = string.format('%.0f', reply[1]), n + #reply[2]
                  until cursor == '0'
                  return n"""
    assert r.eval(counting, 1, "g", command) == len(pull(r, "g"))


@pytest.mark.parametrize("limit", [8 << 20, 1 << 16])
def test_twelve_dumps_at_a_time(server, r, limit):
    """Each by its own client, a piece of each in turn, while keys are added to all: each is whole, and of
    its moment. What they hold is bounded: 12 dumps of 2.4 MB, or 12 of what was added since."""
    keys = ["k%d" % i for i in range(12)]
    try:
        for i, key in enumerate(keys):
            reserve(r, key, 0.0001, 1000000)
            r.execute_command("TAMIS.MADD", key, *range(100 * i, 100 * i + 1000))
        r.config_set("tamis.work-limit", limit)
        usage = sum(r.memory_usage(key) for key in keys)
        digests, cursors, data = server.digest(*keys), [0] * 12, [[] for _ in keys]
        going = set(range(12))
        for step in range(10000):
            for i in sorted(going):
                cursors[i], piece = r.execute_command("TAMIS.DUMP", keys[i], cursors[i])
                data[i].append(piece)
                r.execute_command("TAMIS.ADD", keys[i], "during%d" % step)
                if cursors[i] == 0:
                    going.discard(i)
            assert r.info("memory")["used_memory"] < 3.2 * usage + (8 << 20)
            if not going:
                break
        r.config_set("tamis.work-limit", 8 << 20)
        assert all(len(pieces) > 2 for pieces in data)
        r.delete(*keys)
        for key, pieces in zip(keys, data):
            assert r.execute_command("TAMIS.LOAD", key, 0, b"".join(pieces)) == 0
        assert server.digest(*keys) == digests
    finally:
        r.config_set("tamis.work-limit", 8 << 20)


# ---- whole filters -------------------------------------------------------------------------------

def test_merge(server, r):
    rng = random.Random(3)
    for options in ([], ["DELETABLE"], ["GROWTH", "fixed"], ["GROWTH", "dynamic"]):
        r.flushall()
        keys = {name: ["%s%d" % (name, i) for i in range(rng.randrange(100, 400))]
                for name in "abc"}
        for name in "abc":
            reserve(r, name, 0.01, 2000, *options)
            r.execute_command("TAMIS.MADD", name, *keys[name])
        before = server.digest("a", "b", "c")
        assert r.execute_command("TAMIS.MERGE", "to", 3, "a", "b", "c") == b"OK"
        assert server.digest("a", "b", "c") == before
        everything = sum(keys.values(), [])
        assert all(r.execute_command("TAMIS.MEXISTS", "to", *everything))
        assert abs(r.execute_command("TAMIS.CARD", "to") - len(everything)) <= 20
        assert r.execute_command("TAMIS.MERGE", "a", 1, "b") == b"OK"
        assert all(r.execute_command("TAMIS.MEXISTS", "a", *(keys["a"] + keys["b"])))
        if options == ["DELETABLE"]:
            assert 0 not in r.execute_command("TAMIS.MDEL", "to", *everything)
            assert r.execute_command("TAMIS.CARD", "to") == 0


def test_merge_refuses(server, r):
    for name, options in {"p": [], "d": ["DELETABLE"], "x": ["HASH", "xxh3"],
                          "s": ["LAYOUT", "spread"]}.items():
        reserve(r, name, 0.01, 100, *options)
        r.execute_command("TAMIS.MADD", name, *range(100))
    before = server.digest("p", "d", "x", "s")
    numkeys = "numkeys is the number of sources that follow it"
    for words, text in ((["p", 1, "x"], "different families"), (["p", 1, "d"], ""),
                        (["p", 1, "s"], ""), (["p", 2, "p", "x"], "different families"),
                        (["p", 0, "s"], numkeys), (["p", 2, "s"], numkeys), (["p", "x", "s"], numkeys),
                        (["p", 1, "s", "WHAT"], "only RESTATE, CONCAT and DISJOINT may follow"),
                        (["to", 2, "p", "none"], "not found")):
        assert text in refused(r, "TAMIS.MERGE", *words), words
    assert server.digest("p", "d", "x", "s") == before and r.exists("to") == 0
    reserve(r, "f1", 0.01, 100, "NONSCALING")
    reserve(r, "f2", 0.01, 100, "NONSCALING")
    r.execute_command("TAMIS.MADD", "f1", *range(90))
    r.execute_command("TAMIS.MADD", "f2", *range(500, 590))
    assert "would break the stated rate" in refused(r, "TAMIS.MERGE", "f1", 1, "f2")
    assert r.execute_command("TAMIS.MERGE", "f1", 1, "f2", "RESTATE") == b"OK"
    assert float(info(r, "f1")["fpp"]) != 0.01
    for make, united in (("TAMIS.RESERVE", True), ("BF.RESERVE", False)):  # the latter keeps no share of the rate
        r.delete("f1", "f2")
        for name, items in (("f1", range(1000)), ("f2", range(1000, 2000))):
            r.execute_command(make, name, 0.01, 1000)
            r.execute_command("TAMIS.MADD", name, *items)
        if united:
            assert r.execute_command("TAMIS.MERGE", "f1", 1, "f2") == b"OK"
            continue
        assert "would break the stated rate" in refused(r, "TAMIS.MERGE", "f1", 1, "f2")
        assert r.execute_command("TAMIS.MERGE", "f1", 1, "f2", "RESTATE") == b"OK"
        assert 0.01 < float(info(r, "f1")["fpp"]) < 0.021


def test_intersect_and_fold(server, r):
    for name, keys in {"a": range(0, 600), "b": range(400, 1000)}.items():
        reserve(r, name, 0.001, 1000, "GROWTH", "fixed")
        r.execute_command("TAMIS.MADD", name, *keys)
    assert r.execute_command("TAMIS.INTERSECT", "both", "a", "b") == b"OK"
    assert all(r.execute_command("TAMIS.MEXISTS", "both", *range(400, 600)))
    assert sum(r.execute_command("TAMIS.MEXISTS", "both", *range(0, 400))) < 40
    assert refused(r, "TAMIS.INTERSECT", "both", "a", "b") == "item exists"
    reserve(r, "c", 0.001, 5000, "GROWTH", "fixed")
    assert "the vectors have different shapes" in refused(r, "TAMIS.INTERSECT", "new", "a", "c")
    assert r.exists("new") == 0
    r.execute_command("TAMIS.MADD", "c", *range(1000))
    bits = info(r, "c")["bits"]
    assert r.execute_command("TAMIS.FOLD", "c") == b"OK"
    assert info(r, "c")["bits"] == bits // 2
    assert all(r.execute_command("TAMIS.MEXISTS", "c", *range(1000)))
    r.execute_command("TAMIS.MADD", "c", *range(2000))
    assert "would break the stated rate" in refused(r, "TAMIS.FOLD", "c")
    assert r.execute_command("TAMIS.FOLD", "c", "RESTATE") == b"OK"
    assert refused(r, "TAMIS.FOLD", "c", "WHAT") == "only RESTATE may follow the key"
    said = set()
    for capacity in range(100, 130):
        reserve(r, "odd%d" % capacity, 0.01, capacity, "GROWTH", "fixed", "LAYOUT", "spread")
        if info(r, "odd%d" % capacity)["bits"] % 16:
            said.add(refused(r, "TAMIS.FOLD", "odd%d" % capacity))
        else:
            assert r.execute_command("TAMIS.FOLD", "odd%d" % capacity) == b"OK"
    assert said and all(s.startswith("its size cannot be halved: ") and
                        s.endswith(" bits are not a multiple of 16") for s in said)


def test_large_values_do_not_block(servers):
    """What would take long on a large value is refused, with advice; what is freed is freed beside the server."""
    server = servers()
    r = server.r
    reserve(r, "a", 0.01, 150000000)
    reserve(r, "b", 0.01, 150000000)
    r.execute_command("TAMIS.MADD", "a", *range(1000))
    for command in (["MERGE", "a", 1, "b"], ["MERGE", "to", 1, "a"], ["INTERSECT", "to", "a", "b"],
                    ["FOLD", "a"], ["RESERVE", "to", "LIKE", "a"]):
        assert "would block the server" in refused(r, "TAMIS." + command[0], *command[1:]), command
        assert not r.exists("to")
    i = info(r, "a")
    assert i["bytes"] > 150 << 20 and i["fpp_now"] is None and i["items"] == 1000
    freed = r.info("memory")["lazyfreed_objects"]
    r.execute_command("UNLINK", "a", "b")  # by another thread of the server
    wait(lambda: r.info("memory")["lazyfreed_objects"] == freed + 2)
    assert r.info("memory")["used_memory"] < 50 << 20
    r.config_set("tamis.work-limit", 1 << 30)
    reserve(r, "c", 0.01, 40000000)
    assert r.execute_command("TAMIS.MERGE", "to", 1, "c") == b"OK"


def test_values_that_restore_could_not_carry(servers):
    """Past the limit of a value the server refuses; below it a payload fits into one bulk."""
    server = servers(proto_max_bulk_len="8mb", **{"tamis.value-limit": "7mb", "tamis.work-limit": "100mb"})
    r = server.r
    assert "the limit of a value" in refused(r, "TAMIS.RESERVE", "f", 0.01, 10000000)
    for growth in ("smooth", "scalable"):
        r.flushall()
        reserve(r, "f", 0.01, 1000000, "GROWTH", growth)
        said, i = [], 0
        while not any(isinstance(s, Exception) for s in said):
            said = r.execute_command("TAMIS.MADD", "f", *range(i, i + 20000))
            i += 20000
        assert "tamis.value-limit bounds it" in str(said[-1])
        payload = r.dump("f")
        assert len(payload) < 8 << 20
        assert r.restore("g", 0, payload)
        assert server.digest("f") == server.digest("g")
        reserve(r, "h", 0.01, 1000000, "GROWTH", growth)
        r.execute_command("TAMIS.MADD", "h", *range(100))
        why = refused(r, "TAMIS.MERGE", "f", 4, *"gggh", "CONCAT", "RESTATE")
        assert "may not grow past its limit" in why
