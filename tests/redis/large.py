"""Dumps and loads of values far above tamis.work-limit, in pieces: what large filters and large sets of
records have in common."""
import pytest
import redis

from conftest import ASAN, wait
from test_time import Counted

MB = 1 << 20
OVER = "this dump has ended: start again with cursor 0"
CHANGED = "the value changed during its dump: start again with cursor 0"
FAMILY = {"tamis.family-key": "0123456789abcdef" * 2}


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


def rest(r, key, cursor, command="TAMIS.DUMP"):
    """What a dump replies from this cursor on."""
    pieces = []
    while cursor:
        cursor, data = r.execute_command(command, key, cursor)
        pieces.append(data)
    return b"".join(pieces)


def push(r, key, data, first=0, size=MB):
    size = min(size, int(r.config_get("tamis.work-limit")["tamis.work-limit"]))
    for i in range(first, len(data), size):
        left = r.execute_command("TAMIS.LOAD", key, i, data[i:i + size])
    assert left == 0


def keeps_no_one_waiting(server, move):
    """None of the calls of move(client) takes long, in one of three attempts: the bound is far more than a call
    takes, and far less than the whole value would."""
    times = []
    for _ in range(3):
        counted = Counted(unix_socket_path=server.socket)
        move(counted)
        times.append(counted.longest)
        if times[-1] < (300 if ASAN else 30):
            return
    pytest.fail("milliseconds of a call: %s" % times)


def goes_through_restarts(server, key, to, data, cut, size):
    """Loads the data up to each cut but the last: what is there is saved, rewritten and loaded again like any
    value."""
    for i in range(1, len(cut) - 1):
        for at in range(cut[i - 1], cut[i], size):
            left = server.r.execute_command("TAMIS.LOAD", to, at, data[at:min(at + size, cut[i])])
        assert left == len(data) - cut[i]
        digest = server.digest(key, to)
        assert server.r.execute_command("DEBUG", "RELOAD") == b"OK"
        assert server.digest(key, to) == digest
        if i == 3:
            server.r.bgrewriteaof()
            wait(lambda: server.r.info("persistence")["aof_rewrite_in_progress"] == 0, 60)
        server.restart()
        assert server.digest(key, to) == digest


def load_until_refused(r, key, pieces):
    """Where a load ends, and the error."""
    at = 0
    for piece in pieces:
        try:
            r.execute_command("TAMIS.LOAD", key, at, piece)
        except redis.ResponseError as error:
            assert r.exists(key) == 0
            return at, str(error)
        at += len(piece)
    return at, None


def cut_up(data, size):
    return [bytes(data[i:i + size]) for i in range(0, len(data), size)]


def takes_its_memory_once(servers, make, slack=0):
    """A restart, RESTORE and LOAD of what make(client) puts under "v". The allocator has its steps."""
    server = servers(**FAMILY)
    make(server.r)
    usage, digest = server.r.memory_usage("v"), server.digest("v")
    most = 1.4 * usage + slack
    server.r.save()
    server.restart()
    assert server.digest("v") == digest
    assert server.r.info("memory")["used_memory_peak"] < most
    server.r.config_set("tamis.work-limit", min(8 * MB, usage // 4))
    payload = server.r.dump("v")
    other = servers(**FAMILY)
    loadchunks(other.r, "v", scandump(server.r, "v"))
    assert other.digest("v") == digest
    assert other.r.info("memory")["used_memory_peak"] < most
    other.r.flushall()
    other.r.restore("v", 0, payload)  # the payload is there beside it, compressed
    assert other.digest("v") == digest
    assert other.r.info("memory")["used_memory_peak"] < most + 4 * len(payload)
