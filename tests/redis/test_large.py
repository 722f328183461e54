"""Values far above tamis.work-limit, with the settings that a server has by default: dumped and loaded
in pieces, and nobody waits for it."""
import re

import pytest
import redis

from conftest import ASAN, wait
from test_bytes import pull
from test_keys import info, refused, reserve
from test_replica import pair, synced
from test_time import Counted

CAPACITY = 15000000 if ASAN else 70000000  # 18 MB, 82 MB
OVER = "this dump is over: start again with cursor 0"
CHANGED = "the value changed during its dump: start again with cursor 0"
COUNTED = ["DELETABLE", "GROWTH", "scalable"]


def large(r, key, *options, capacity=CAPACITY, keys=100000):
    reserve(r, key, 0.01, capacity, *(options or ("GROWTH", "fixed")))
    for i in range(0, keys, 5000):
        r.execute_command("TAMIS.MADD", key, *range(i, i + 5000))
    assert r.memory_usage(key) > 12 << 20


def scandump(r, key):
    cursor, chunks = 0, []
    while True:
        cursor, data = r.bf().scandump(key, cursor)
        if cursor == 0:
            return chunks
        chunks.append((cursor, data))


def loadchunks(r, key, chunks):
    for cursor, data in chunks:
        assert r.bf().loadchunk(key, cursor, data) in (True, b"OK")


def test_scandump_and_loadchunk_keep_no_one_waiting(servers):
    """Whole, a value of this size takes more than 100 ms of the processor; a call takes 1 to 5."""
    master, replica = pair(servers)
    r, times = master.r, []
    large(r, "f")
    synced(master, replica)
    for _ in range(3):
        r.delete("g", "h")
        counted = Counted(unix_socket_path=master.socket)
        loadchunks(counted, "g", scandump(counted, "f"))
        times.append(counted.longest)
        if times[-1] < (300 if ASAN else 30):
            break
    else:
        pytest.fail("milliseconds of a call: %s" % times)
    digest = master.digest("f")
    assert master.digest("g") == digest
    synced(master, replica)
    assert replica.digest("g") == digest
    # A replica can be dumped too, and its bytes make the same value.
    loadchunks(r, "h", scandump(replica.r, "g"))
    assert master.digest("h") == digest
    keys = list(range(200000))
    for i in range(0, len(keys), 20000):
        want = r.execute_command("TAMIS.MEXISTS", "f", *keys[i:i + 20000])
        assert r.execute_command("TAMIS.MEXISTS", "h", *keys[i:i + 20000]) == want
        assert replica.r.execute_command("TAMIS.MEXISTS", "g", *keys[i:i + 20000]) == want


@pytest.mark.parametrize("options", [["GROWTH", "fixed"], [], ["LAYOUT", "spread"],
                                     ["GROWTH", "flexible"]])
def test_a_large_dump_is_of_one_moment(server, r, options):
    """Keys that are added meanwhile, past the capacity too, are not in it; nor is any denied here."""
    large(r, "f", *options, capacity=12000000)
    for dump, load in (("TAMIS.DUMP", "TAMIS.LOAD"), ("BF.SCANDUMP", "BF.LOADCHUNK")):
        r.delete("g")
        before, cursor, offset, n = server.digest("f"), 0, 0, 0
        while True:
            cursor, data = r.execute_command(dump, "f", cursor)
            if cursor or dump == "TAMIS.DUMP":
                r.execute_command(load, "g", cursor if load == "BF.LOADCHUNK" else offset, data)
            offset += len(data)
            r.execute_command("TAMIS.MADD", "f", *["%s-%d-%d" % (dump, n, i) for i in range(100)])
            n += 1
            if cursor == 0:
                break
        assert n > 10
        assert server.digest("g") == before != server.digest("f")
        for i in range(n):
            assert all(r.execute_command("TAMIS.MEXISTS", "f", *["%s-%d-%d" % (dump, i, j)
                                                                 for j in range(100)]))
    # What was remembered for the dump is gone with it.
    assert info(r, "f")["items"] > 100000
    assert r.info("memory")["used_memory"] < 2 * r.memory_usage("f") + r.memory_usage("g") + (20 << 20)


@pytest.mark.parametrize("options", [COUNTED, ["GROWTH", "dynamic"], ["GROWTH", "window"]])
def test_a_large_dump_that_ends(server, r, options):
    """Where the moment cannot be kept, a change ends the dump and says so; undisturbed it is whole."""
    large(r, "f", *options, capacity=3000000 if options == COUNTED else 40000000)
    cursor = 0
    for _ in range(5):
        cursor, _ = r.execute_command("TAMIS.DUMP", "f", cursor)
    r.execute_command("TAMIS.ADD", "f", "one more")
    assert refused(r, "TAMIS.DUMP", "f", cursor) == CHANGED
    assert refused(r, "TAMIS.DUMP", "f", cursor) == OVER
    data = pull(r, "f")
    for i in range(0, len(data), 1 << 20):
        left = r.execute_command("TAMIS.LOAD", "g", i, data[i:i + (1 << 20)])
    assert left == 0 and server.digest("g") == server.digest("f")


def test_cursors_of_large_dumps(server, r):
    large(r, "f")
    large(r, "other")
    for command in ("TAMIS.DUMP", "TAMIS.SCANDUMP"):
        first, head = r.execute_command(command, "f", 0)
        assert head[:5] == b"TAMIS"
        assert refused(r, command, "other", first) == OVER  # of another key
        second, _ = r.execute_command(command, "f", 0)
        assert first != second  # two at a time, and both go on
        pieces = {}
        for cursor in (first, second):
            whole = [head]
            while cursor:
                cursor, data = r.execute_command(command, "f", cursor)
                whole.append(data)
            pieces[len(pieces)] = b"".join(whole)
        assert pieces[0] == pieces[1] and len(pieces[0]) > CAPACITY
        # A call whose reply was lost is asked again; a cursor that was never given is refused.
        cursor, calls = r.execute_command(command, "f", 0)[0], 0
        while cursor:
            again, data = r.execute_command(command, "f", cursor)
            if calls % 10 == 5 and again:
                assert r.execute_command(command, "f", cursor) == [again, data]
            if calls > 30:
                assert refused(r, command, "f", again + 12345).startswith("the cursor is not from")
            cursor, calls = again if calls < 40 else 0, calls + 1
    # Everything that may happen to the key in between.
    for happens, text in ((lambda: r.delete("f"), "not found"), (r.flushall, "not found"),
                          (lambda: r.rename("f", "g"), "not found"),
                          (lambda: r.execute_command("TAMIS.CLEAR", "f"), CHANGED),
                          (lambda: r.rename("other", "f"), CHANGED),
                          (lambda: r.execute_command("DEBUG", "RELOAD"), CHANGED)):
        r.flushall()
        large(r, "f", keys=5000)
        large(r, "other", keys=5000)
        cursor, _ = r.execute_command("TAMIS.DUMP", "f", 0)
        cursor, _ = r.execute_command("TAMIS.DUMP", "f", cursor)
        happens()
        assert refused(r, "TAMIS.DUMP", "f", cursor) == text
        if r.exists("g"):
            assert refused(r, "TAMIS.DUMP", "g", cursor) == OVER


def test_two_dumps_while_keys_are_added(server, r):
    """Only one moment can be kept: a dump of a later one is told to wait, and need not wait for ever."""
    large(r, "f")
    digest = server.digest("f")
    first, data = r.execute_command("TAMIS.DUMP", "f", 0)
    r.execute_command("TAMIS.ADD", "f", "later")
    assert "another dump of this value is under way" in refused(r, "TAMIS.DUMP", "f", 0)
    pieces = [data]
    while first:
        first, data = r.execute_command("TAMIS.DUMP", "f", first)
        pieces.append(data)
    whole, at = b"".join(pieces), 0
    while at < len(whole):
        r.execute_command("TAMIS.LOAD", "g", at, whole[at:at + (4 << 20)])
        at += 4 << 20
    assert server.digest("g") == digest
    first, _ = r.execute_command("TAMIS.DUMP", "f", 0)
    r.execute_command("TAMIS.ADD", "f", "and later")
    wait(lambda: r.execute_command("TAMIS.DUMP", "f", 0)[0], 20)  # the first is idle
    assert refused(r, "TAMIS.DUMP", "f", first) in (OVER, CHANGED)


def test_a_large_load_goes_through_restarts(servers):
    """The pieces so far are saved, copied and replicated like any value."""
    server = servers(appendonly="yes", appendfsync="no", aof_use_rdb_preamble="no")
    r = server.r
    large(r, "f", *COUNTED, capacity=3000000)
    data = pull(r, "f")
    cut = [0, 128, 1000, 3 << 20, (9 << 20) + 77, len(data)]
    for i in range(1, len(cut) - 1):
        part = data[cut[i - 1]:cut[i]]
        assert r.execute_command("TAMIS.LOAD", "g", cut[i - 1], part) == len(data) - cut[i]
        digest = server.digest("f", "g")
        assert r.execute_command("DEBUG", "RELOAD") == b"OK"
        assert server.digest("f", "g") == digest
        if i == 3:
            r.bgrewriteaof()
            wait(lambda: r.info("persistence")["aof_rewrite_in_progress"] == 0, 60)
        server.restart()
        r = server.r
        assert server.digest("f", "g") == digest
    assert "still being loaded" in refused(r, "TAMIS.EXISTS", "g", 1)
    assert r.execute_command("COPY", "g", "h") == 1
    assert r.restore("i", 0, r.dump("g"))
    for key in "ghi":
        for i in range(cut[-2], len(data), 7000001):
            left = r.execute_command("TAMIS.LOAD", key, i, data[i:i + 7000001])
        assert left == 0
        assert server.digest(key) == server.digest("f")


def test_a_large_load_refuses(servers):
    """Damage of the header is found with its piece, of the rest with the last one, which has the checksums;
    the page that has it is named, and nothing is left of the load, on a replica too."""
    master, replica = pair(servers)
    r = master.r
    large(r, "f", *COUNTED, capacity=3000000)
    data = pull(r, "f")
    step = 1 << 20
    for at in (20, 200, 3 << 20, len(data) - 1):
        spoiled = bytearray(data)
        spoiled[at] ^= 64
        error = None
        for i in range(0, len(data), step):
            try:
                r.execute_command("TAMIS.LOAD", "g", i, bytes(spoiled[i:i + step]))
            except redis.ResponseError as e:
                error = str(e)
                break
        assert error and i == (0 if at < 1000 else len(data) // step * step), (at, i, error)
        page = re.search(r"bytes (\d+) to (\d+) does not match", error)
        assert at != 3 << 20 or int(page[1]) <= at <= int(page[2]) < int(page[1]) + 4096, error
        assert r.exists("g") == 0
    r.execute_command("TAMIS.LOAD", "g", 0, data[:step])
    assert refused(r, "TAMIS.LOAD", "g", 2 * step, data[2 * step:3 * step]) == \
        "received bad data: the next byte is %d" % step
    assert refused(r, "TAMIS.LOAD", "g", step - 1, data[step - 1:2 * step]) == \
        "received bad data: the next byte is %d" % step
    assert "would block the server" in refused(r, "TAMIS.LOAD", "g", step, data[step:])
    assert r.execute_command("TAMIS.LOAD", "g", step, data[step:2 * step]) == len(data) - 2 * step
    synced(master, replica)
    assert sorted(replica.r.keys()) == [b"f", b"g"]
    assert replica.digest("f", "g") == master.digest("f", "g")


def test_transactions_and_scripts(server, r):
    """No call waits for anything, so all of them work there too."""
    large(r, "f")
    pipe = r.pipeline(transaction=True)
    pipe.execute_command("BF.SCANDUMP", "f", 0)
    pipe.execute_command("TAMIS.DUMP", "f", 0)
    (cursor, head), (_, more) = pipe.execute()
    assert more.startswith(head)
    script = """local cursor = '0'
                repeat
                    local piece = redis.call('BF.SCANDUMP', KEYS[1], cursor)
                    cursor = string.format('%d', piece[1])
                    if cursor ~= '0' then
                        redis.call('BF.LOADCHUNK', KEYS[2], cursor, piece[2])
                    end
                until cursor == '0'
                return 1"""
    assert r.eval(script, 2, "f", "g") == 1
    assert server.digest("f") == server.digest("g")


@pytest.mark.skipif(ASAN, reason="the sanitizer's allocator is not the server's")
def test_loading_takes_the_memory_of_the_value(servers):
    """A restart, RESTORE and LOAD: never twice. The allocator has its steps."""
    family = {"tamis.family-key": "0123456789abcdef" * 2}
    server = servers(**family)
    large(server.r, "f")
    usage, digest = server.r.memory_usage("f"), server.digest("f")
    server.r.save()
    server.restart()
    assert server.digest("f") == digest
    assert server.r.info("memory")["used_memory_peak"] < 1.4 * usage
    payload = server.r.dump("f")
    other = servers(**family)
    loadchunks(other.r, "f", scandump(server.r, "f"))
    assert other.digest("f") == digest
    assert other.r.info("memory")["used_memory_peak"] < 1.4 * usage
    other.r.flushall()
    other.r.restore("f", 0, payload)  # the payload is there beside it, compressed
    assert other.digest("f") == digest
    assert other.r.info("memory")["used_memory_peak"] < 1.4 * usage + 4 * len(payload)
