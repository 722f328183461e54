"""Values far above tamis.work-limit, with the settings that a server has by default: dumped and loaded
in pieces, and nobody waits for it."""
import re

import pytest

from conftest import ASAN, wait
from large import (CHANGED, MB, OVER, cut_up, goes_through_restarts, keeps_no_one_waiting, load_until_refused,
                   loadchunks, push, rest, scandump, takes_its_memory_once)
from test_bytes import pull
from test_keys import info, refused, reserve
from test_replica import pair, synced

CAPACITY = 15000000 if ASAN else 70000000  # 18 MB, 82 MB
COUNTED = ["DELETABLE", "GROWTH", "scalable"]


def large(r, key, *options, capacity=CAPACITY, keys=100000):
    reserve(r, key, 0.01, capacity, *(options or ("GROWTH", "fixed")))
    for i in range(0, keys, 5000):
        r.execute_command("TAMIS.MADD", key, *range(i, i + 5000))
    assert r.memory_usage(key) > 12 << 20


def test_scandump_and_loadchunk_keep_no_one_waiting(servers):
    """Whole, a value of this size takes more than 100 ms of the processor; a call takes 1 to 5."""
    master, replica = pair(servers)
    r = master.r
    large(r, "f")
    synced(master, replica)

    def move(counted):
        r.delete("g")
        loadchunks(counted, "g", scandump(counted, "f"))
    keeps_no_one_waiting(master, move)
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
    push(r, "g", pull(r, "f"))
    assert server.digest("g") == server.digest("f")


def test_cursors_of_large_dumps(server, r):
    large(r, "f")
    large(r, "other")
    for command in ("TAMIS.DUMP", "TAMIS.SCANDUMP"):
        first, head = r.execute_command(command, "f", 0)
        assert head[:5] == b"TAMIS"
        assert refused(r, command, "other", first) == OVER  # of another key
        second, _ = r.execute_command(command, "f", 0)
        assert first != second  # two at a time, and both go on
        whole = head + rest(r, "f", first, command)
        assert whole == head + rest(r, "f", second, command) and len(whole) > CAPACITY
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
    push(r, "g", data + rest(r, "f", first), size=4 * MB)
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
    goes_through_restarts(server, "f", "g", data, cut, 8 * MB)
    r = server.r
    assert "still being loaded" in refused(r, "TAMIS.EXISTS", "g", 1)
    assert r.execute_command("COPY", "g", "h") == 1
    assert r.restore("i", 0, r.dump("g"))
    for key in "ghi":
        push(r, key, data, cut[-2], 7000001)
        assert server.digest(key) == server.digest("f")


def test_a_large_load_refuses(servers):
    """Damage of the header is found with its piece, of the rest with the last one, which has the checksums;
    the page that has it is named, and nothing is left of the load, on a replica too."""
    master, replica = pair(servers)
    r = master.r
    large(r, "f", *COUNTED, capacity=3000000)
    data = pull(r, "f")
    step = MB
    for at in (20, 200, 3 << 20, len(data) - 1):
        spoiled = bytearray(data)
        spoiled[at] ^= 64
        i, error = load_until_refused(r, "g", cut_up(spoiled, step))
        assert error and i == (0 if at < 1000 else len(data) // step * step), (at, i, error)
        page = re.search(r"bytes (\d+) to (\d+) does not match", error)
        assert at != 3 << 20 or int(page[1]) <= at <= int(page[2]) < int(page[1]) + 4096, error
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
    takes_its_memory_once(servers, lambda r: large(r, "v"))
