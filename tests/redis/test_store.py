"""Values in the hands of the server: saved, loaded, copied, moved, expired, in transactions."""
import signal
import time

import pytest
import redis

from conftest import ASAN, wait
from sets import KINDS, Load, names


def filled(server, steps=800, **options):
    load = Load(server.r, **options)
    load.create()
    load.run(steps)
    return load


def test_rdb(servers):
    server = servers()
    load = filled(server)
    before = server.digest(*names())
    server.r.save()
    server.restart()
    assert server.digest(*names()) == before
    load.check(server.r)
    load.run(200)
    load.check(server.r)


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_aof(servers, preamble):
    """Replayed from the commands, then rewritten and replayed again."""
    server = servers(appendonly="yes", appendfsync="no", aof_use_rdb_preamble=preamble)
    load = filled(server)
    time.sleep(0.6)  # windows have something to forget
    load.run(200)
    before = server.digest(*names())
    server.restart()
    assert server.digest(*names()) == before
    server.r.bgrewriteaof()
    wait(lambda: server.r.info("persistence")["aof_rewrite_in_progress"] == 0
         and server.r.info("persistence")["aof_rewrite_scheduled"] == 0)
    assert server.r.info("persistence")["aof_last_bgrewrite_status"] == "ok"
    load.run(200)
    before = server.digest(*names())
    server.restart(signal.SIGKILL if preamble == "no" and not ASAN else signal.SIGTERM)
    assert server.digest(*names()) == before
    load.check(server.r)


def test_a_partial_load_is_saved_too(servers):
    server = servers(appendonly="yes", appendfsync="no", aof_use_rdb_preamble="no")
    r = server.r
    r.execute_command("TAMIS.RESERVE", "f", 0.01, 200000)
    r.execute_command("TAMIS.MADD", "f", *range(1000))
    data = b"".join(iter_dump(r, "f"))
    assert r.execute_command("TAMIS.LOAD", "g", 0, data[:100000]) == len(data) - 100000
    server.r.bgrewriteaof()
    wait(lambda: server.r.info("persistence")["aof_rewrite_in_progress"] == 0)
    for _ in range(2):
        before = server.digest("f", "g")
        server.restart()
        assert server.digest("f", "g") == before
        server.r.save()
    r = server.r
    with pytest.raises(redis.ResponseError, match="still being loaded"):
        r.execute_command("TAMIS.EXISTS", "g", 1)
    assert r.execute_command("COPY", "g", "h") == 1
    for key in ("g", "h"):
        assert r.execute_command("TAMIS.LOAD", key, 100000, data[100000:]) == 0
        assert server.digest(key) == server.digest("f")


def iter_dump(r, key, command="TAMIS.DUMP"):
    cursor = 0
    while True:
        cursor, data = r.execute_command(command, key, cursor)
        yield data
        if cursor == 0:
            return


def test_two_servers_exchange_payloads(servers):
    a, b = servers(), servers("bf=no")
    load = filled(a, 400)
    for key in names():
        payload = a.r.dump(key)
        assert b.r.restore(key, 0, payload)
        assert b.digest(key) == a.digest(key)
        assert b.r.dump(key) == payload
        with pytest.raises(redis.ResponseError, match="BUSYKEY"):
            b.r.restore(key, 0, payload)
        b.r.restore(key, 0, payload, replace=True)
    load.check(b.r)
    plain = servers(load=False)
    with pytest.raises(redis.ResponseError, match="Bad data format"):
        plain.r.restore("x", 0, a.r.dump(names()[0]))


def test_migrate(servers):
    from conftest import free_port
    a, b = servers(), servers(port=free_port())
    load = filled(a, 200)
    before = a.digest(*names())
    assert a.r.execute_command("MIGRATE", "127.0.0.1", b.port, "", 0, 5000, "KEYS", *names()) == b"OK"
    assert a.r.dbsize() == 0 and b.digest(*names()) == before
    load.check(b.r)


def test_copy_rename_expire(server, r):
    load = filled(server, 300)
    for key in names():
        before = server.digest(key)
        assert r.execute_command("COPY", key, "copy") == 1
        assert r.execute_command("COPY", key, "copy", "DB", 3) == 1
        assert server.digest("copy") == before == server.digest("copy", db=3)
        r.execute_command("TAMIS.ADD", "copy", "a key of its own")
        assert server.digest(key) == before
        assert r.rename(key, "elsewhere") and server.digest("elsewhere") == before
        assert r.rename("elsewhere", key)
        r.delete("copy")
        server.client(db=3).delete("copy")
    load.check(r)
    r.execute_command("TAMIS.ADD", "short", "x")
    r.pexpire("short", 30)
    assert r.execute_command("TAMIS.EXISTS", "short", "x") == 1
    time.sleep(0.06)
    assert r.execute_command("TAMIS.EXISTS", "short", "x") == 0
    r.execute_command("TAMIS.ADD", "kept", "x")
    r.expire("kept", 1000)
    r.execute_command("TAMIS.MERGE", "kept", 1, "{v}scalable", "RESTATE")
    assert 0 < r.ttl("kept") <= 1000
    assert r.type("kept") == b"tamis-set"


def test_memory_comes_back(server, r):
    """Lazily freed or at once; what MEMORY USAGE says is what goes."""
    r.execute_command("TAMIS.RESERVE", "warm", 0.01, 1000)
    r.flushall()
    wait(lambda: r.info("memory")["lazyfree_pending_objects"] == 0)
    before = r.info("memory")["used_memory"]
    for turn in range(3):
        for i in range(20):
            r.execute_command("TAMIS.RESERVE", "big%d" % i, 0.01, 4000000 // (1 + i % 2))
            r.execute_command("TAMIS.MADD", "big%d" % i, *range(100))
        usage = sum(r.memory_usage("big%d" % i) for i in range(20))
        used = r.info("memory")["used_memory"] - before
        if not ASAN:
            assert 0.99 * usage < used < 1.3 * usage  # the allocator has its steps
        if turn == 0:
            r.execute_command("FLUSHALL", "ASYNC")
        elif turn == 1:
            r.unlink(*["big%d" % i for i in range(20)])
        else:
            r.delete(*["big%d" % i for i in range(20)])
        wait(lambda: r.info("memory")["lazyfree_pending_objects"] == 0)
        wait(lambda: int(r.info("tamis")["tamis_values"]) == 0)
        assert r.info("memory")["used_memory"] - before < 3000000


def test_transactions_and_scripts(server, r):
    pipe = r.pipeline(transaction=True)
    pipe.execute_command("TAMIS.RESERVE", "f", 0.01, 100)
    pipe.execute_command("TAMIS.MADD", "f", 1, 2, 3)
    pipe.execute_command("TAMIS.MEXISTS", "f", 1, 4)
    assert pipe.execute() == [b"OK", [1, 1, 1], [1, 0]]
    script = """redis.call('TAMIS.ADD', KEYS[1], ARGV[1])
                return redis.call('TAMIS.MEXISTS', KEYS[1], ARGV[1], ARGV[2])"""
    assert r.eval(script, 1, "lua", "a", "b") == [1, 0]
    script = """redis.setresp(3) return redis.call('BF.EXISTS', KEYS[1], ARGV[1]) == true"""
    assert r.eval(script, 1, "lua", "a") == 1
    with pytest.raises(redis.ResponseError, match="item exists"):
        r.eval("return redis.call('TAMIS.RESERVE', KEYS[1], 0.1, 10)", 1, "lua")
    with r.pipeline() as pipe:  # a change by someone else is seen
        pipe.watch("f")
        r.execute_command("TAMIS.ADD", "f", "new")
        pipe.multi()
        pipe.ping()
        with pytest.raises(redis.WatchError):
            pipe.execute()


def test_reload_keeps_all(server, r):
    load = filled(server, 300)
    before = r.execute_command("DEBUG", "DIGEST")
    for _ in range(3):
        assert r.execute_command("DEBUG", "RELOAD") == b"OK"
        assert r.execute_command("DEBUG", "DIGEST") == before
    load.check(r)
    assert len(KINDS) == r.dbsize()


def test_the_family_survives_a_restart(servers):
    """New values can be united with those from before, without a word in the configuration."""
    server = servers(appendonly="yes", appendfsync="no")
    server.r.execute_command("TAMIS.ADD", "old", "x")
    server.restart()
    r = server.r
    assert r.info("tamis")["tamis_family"] == "adopted"
    r.execute_command("TAMIS.ADD", "new", "y")
    assert r.execute_command("TAMIS.MERGE", "all", 2, "old", "new") == b"OK"
    assert r.execute_command("TAMIS.MEXISTS", "all", "x", "y", "z") == [1, 1, 0]


def test_out_of_memory(server, r):
    r.execute_command("TAMIS.RESERVE", "f", 0.01, 100, "DELETABLE")
    r.execute_command("TAMIS.ADD", "f", "x")
    r.execute_command("TAMIS.XRESERVE", "x", 0.01, 100, "ATTRIBUTES", 1, "a", "DELETABLE")
    r.execute_command("TAMIS.XADD", "x", "a=1")
    r.config_set("maxmemory", 1)
    try:
        for command in (["RESERVE", "g", 0.1, 10], ["ADD", "f", "y"], ["MADD", "f", "y"],
                        ["INSERT", "f", "ITEMS", "y"], ["MERGE", "g", 1, "f"],
                        ["INTERSECT", "g", "f", "f"], ["LOAD", "g", 0, "x"],
                        ["LOADCHUNK", "g", 1, "x"], ["PUBLISH", "f", "stream", "owner"],
                        ["XRESERVE", "y", 0.1, 10, "ATTRIBUTES", 1, "a"], ["XADD", "x", "a=2"]):
            with pytest.raises(redis.ResponseError, match="OOM|maxmemory"):
                r.execute_command("TAMIS." + command[0], *command[1:])
        assert r.execute_command("TAMIS.EXISTS", "f", "x") == 1
        assert r.execute_command("TAMIS.DEL", "f", "x") == 1
        assert r.execute_command("TAMIS.CLEAR", "f") == b"OK"
        assert r.execute_command("TAMIS.XQUERY", "x", "a=1") == [1, 1]
        assert r.execute_command("TAMIS.DUMP", "x", 0)[0] == 0
        assert r.execute_command("TAMIS.XDEL", "x", "a=1") == 1
    finally:
        r.config_set("maxmemory", 0)


def test_a_key_without_a_name(servers):
    """The empty name is a name: values of it are dumped in pieces and published twice."""
    r = servers().r
    r.execute_command("TAMIS.RESERVE", "", 1e-6, 5000000)
    r.execute_command("TAMIS.ADD", "", "x")
    cursor, pieces = 0, 0
    while pieces == 0 or cursor:
        cursor, _ = r.execute_command("TAMIS.DUMP", "", cursor)
        pieces += 1
    assert pieces > 1
    r.delete("")
    r.execute_command("TAMIS.ADD", "", "x")
    for _ in range(2):
        r.execute_command("TAMIS.PUBLISH", "", "stream", "me")
    assert r.execute_command("TAMIS.EXISTS", "", "x") == 1
