"""Replicas end with the bytes of their master: adds, growth, windows, removals, resyncs."""
import glob
import os
import signal
import threading
import time

import pytest
import redis

from conftest import ASAN, encode, free_port, wait
from sets import Load, names
from test_keys import info


def synced(master, replica):
    def done():
        m, s = master.r.info("replication"), replica.r.info("replication")
        return s.get("master_link_status") == "up" and \
            s["slave_repl_offset"] == m["master_repl_offset"]
    wait(done, 60, "the replica did not catch up:\n" + replica.log_tail())


def pair(servers, **options):
    master = servers(port=free_port(), **options)
    replica = servers(port=free_port(), replicaof="127.0.0.1 %d" % master.port, **options)
    wait(lambda: replica.r.info("replication")["master_link_status"] == "up", 30)
    return master, replica


def same(master, replica, keys):
    synced(master, replica)
    assert master.digest(*keys) == replica.digest(*keys)
    assert b"CRITICAL" not in replica.log_tail().encode()


def test_a_stream_of_changes(servers):
    master, replica = pair(servers)
    load = Load(master.r)
    load.create()
    load.run(500)
    time.sleep(0.6)  # the windows move on
    load.run(300)
    same(master, replica, names())
    load.check(replica.r)


def test_every_command(servers):
    """What each writing command replicates makes the same value."""
    master, replica = pair(servers)
    do = master.r.execute_command
    do("BF.ADD", "a", "x")
    do("BF.MADD", "b", "x", "y")
    do("BF.INSERT", "c", "CAPACITY", 7, "NONSCALING", "ITEMS", *range(20))
    do("BF.RESERVE", "d", 0.001, 10, "EXPANSION", 4)
    do("TAMIS.RESERVE", "e", "LIKE", "d")
    do("TAMIS.INSERT", "f", "GROWTH", "flexible", "CAPACITY", 5, "ITEMS", *range(50))
    do("TAMIS.INSERT", "w", "GROWTH", "window", "WINDOW", 0.01, "ITEMS", *range(50))
    do("TAMIS.RESERVE", "del", 0.01, 20, "GROWTH", "flexible", "DELETABLE")
    do("TAMIS.MADD", "del", *range(100))
    do("TAMIS.MDEL", "del", *range(50, 150))
    do("TAMIS.MDEL", "del", *range(50))
    do("TAMIS.RESERVE", "big", 0.01, 100, "MAXMEM", 3000)
    do("TAMIS.MADD", "big", *range(1000))
    do("BF.RESERVE", "n", 0.001, 10)
    do("TAMIS.MERGE", "m", 3, "a", "b", "n", "RESTATE")
    do("TAMIS.MERGE", "stack", 2, "d", "e", "RESTATE")
    do("TAMIS.RESERVE", "i1", 0.01, 100, "NONSCALING")
    do("TAMIS.RESERVE", "i2", 0.01, 100, "NONSCALING")
    do("TAMIS.MADD", "i1", *range(50))
    do("TAMIS.MADD", "i2", *range(25, 75))
    do("TAMIS.INTERSECT", "i", "i1", "i2")
    do("TAMIS.RESERVE", "fold", 0.01, 10000)
    do("TAMIS.MADD", "fold", *range(50))
    do("TAMIS.FOLD", "fold")
    time.sleep(0.02)
    do("TAMIS.FORGET", "w")
    do("TAMIS.CLEAR", "f")
    cursor, data = do("TAMIS.DUMP", "a", 0)
    assert cursor == 0
    do("TAMIS.LOAD", "l", 0, data)
    do("TAMIS.LOAD", "half", 0, data[:200])
    with pytest.raises(redis.ResponseError):
        do("TAMIS.LOAD", "bad", 0, data[:200] + b"x" * (len(data) - 200))
    do("TAMIS.LOAD", "bad", 0, data[:200])
    with pytest.raises(redis.ResponseError):
        do("TAMIS.LOAD", "bad", 200, b"x" * (len(data) - 200))
    keys = [key.decode() for key in master.r.keys()]
    assert "bad" not in keys
    same(master, replica, keys)
    assert sorted(replica.r.keys()) == sorted(master.r.keys())
    for server in (master, replica):
        assert server.r.execute_command("TAMIS.CARD", "i") > 0


def test_what_changes_nothing_is_not_replicated(servers):
    master, replica = pair(servers)
    do = master.r.execute_command
    do("TAMIS.MADD", "f", 1, 2, 3)
    synced(master, replica)
    before = master.r.info("replication")["master_repl_offset"]
    for _ in range(100):
        do("BF.MADD", "f", 1, 2, 3)
        do("TAMIS.MEXISTS", "f", 1, 2)
    assert master.r.info("replication")["master_repl_offset"] - before < 200


@pytest.mark.parametrize("diskless", ["disabled", "swapdb"])
def test_a_replica_killed_and_resynced(servers, diskless):
    master, replica = pair(servers, repl_diskless_load=diskless)
    load = Load(master.r)
    load.create()
    load.run(200)
    stop = threading.Event()
    writer_load = Load(master.client(), seed=2, prefix="{w}")
    writer_load.create()

    def write():
        while not stop.is_set():
            writer_load.run(5)
    writer = threading.Thread(target=write)
    writer.start()
    for how in (signal.SIGKILL, signal.SIGTERM) if not ASAN else (signal.SIGTERM,):
        time.sleep(0.1)
        replica.stop(how)
        load.run(100)
        replica.start()
        wait(lambda: replica.r.info("replication")["master_link_status"] == "up", 30)
    replica.r.execute_command("REPLICAOF", "NO", "ONE")  # a full resync without a restart
    replica.r.execute_command("TAMIS.ADD", "stray", "x")
    replica.r.execute_command("REPLICAOF", "127.0.0.1", master.port)
    time.sleep(0.2)
    stop.set()
    writer.join()
    same(master, replica, names() + names("{w}"))
    load.check(replica.r)
    writer_load.check(replica.r)
    assert replica.r.exists("stray") == 0


def test_a_replica_becomes_master(servers):
    """It goes on with the family of its master, so that values can be united."""
    master, replica = pair(servers)
    master.r.execute_command("TAMIS.ADD", "old", "x")
    synced(master, replica)
    with pytest.raises(redis.ReadOnlyError):
        replica.r.execute_command("TAMIS.ADD", "old", "y")
    master.stop()
    replica.r.execute_command("REPLICAOF", "NO", "ONE")
    replica.r.execute_command("TAMIS.ADD", "new", "y")
    assert replica.r.execute_command("TAMIS.MERGE", "all", 2, "old", "new") == b"OK"
    assert replica.r.execute_command("TAMIS.MEXISTS", "all", "x", "y", "z") == [1, 1, 0]


def test_a_replica_without_bf_commands(servers):
    """A master replicates BF.ADD and CF.ADD as they came; a replica that was told bf=no has no such commands for
    its clients, and loses nothing."""
    master = servers(port=free_port())
    replica = servers("bf=no", port=free_port(), replicaof="127.0.0.1 %d" % master.port, appendonly="yes")
    wait(lambda: replica.r.info("replication")["master_link_status"] == "up", 30)
    wait(lambda: replica.r.info("persistence")["aof_rewrite_in_progress"] == 0)
    do = master.r.execute_command
    do("BF.ADD", "b", "x")
    do("bf.add", "b", "y")
    do("BF.MADD", "b", *range(1000))
    do("BF.INSERT", "b", "ITEMS", "z")
    do("CF.ADD", "c", "x")
    do("CF.ADD", "c", "x")
    assert [do("CF.ADDNX", "c", "x"), do("CF.ADDNX", "c", "y")] == [0, 1]
    do("CF.INSERTNX", "c", "ITEMS", "y", "z")
    do("CF.DEL", "c", "x")
    do("TAMIS.RESERVE", "w", 0.01, 100, "GROWTH", "window", "WINDOW", 60)
    pipe = master.r.pipeline(transaction=True)
    pipe.execute_command("BF.ADD", "w", "x")
    pipe.execute_command("CF.ADD", "c", "in a transaction")
    pipe.execute()
    master.r.eval("return redis.call('BF.ADD', KEYS[1], 'of a script')", 1, "b")
    same(master, replica, ["b", "c", "w"])
    assert replica.r.info("stats")["unexpected_error_replies"] == 0
    with pytest.raises(redis.ResponseError, match="unknown command"):
        replica.r.execute_command("BF.EXISTS", "b", "x")
    replica.r.execute_command("DEBUG", "LOADAOF")  # its own file has TAMIS commands only
    assert master.digest("b", "c", "w") == replica.digest("b", "c", "w")
    replica.r.execute_command("REPLICAOF", "NO", "ONE")
    with pytest.raises(redis.ResponseError, match="unknown command"):
        replica.r.execute_command("BF.ADD", "b", "x")


def test_limits_and_defaults_of_the_replica_do_not_matter(servers):
    master = servers(port=free_port())
    replica = servers(port=free_port(), replicaof="127.0.0.1 %d" % master.port,
                      **{"tamis.value-limit": "100kb", "tamis.work-limit": "100kb",
                         "tamis.capacity": 7, "tamis.error-rate": "0.5", "tamis.expansion": 3,
                         "tamis.family-key": "00" * 16})
    wait(lambda: replica.r.info("replication")["master_link_status"] == "up", 30)
    do = master.r.execute_command
    do("TAMIS.RESERVE", "f", 0.01, 100000)
    for i in range(0, 300000, 5000):
        do("TAMIS.MADD", "f", *range(i, i + 5000))
    do("TAMIS.ADD", "auto", "x")
    do("BF.RESERVE", "bf", 0.01, 1000)
    do("BF.INSERT", "bfi", "CAPACITY", 2000, "ITEMS", *range(6000))
    do("TAMIS.MERGE", "g", 1, "f")
    data, cursor = b"", 0
    while True:
        cursor, piece = do("TAMIS.DUMP", "f", cursor)
        data += piece
        if cursor == 0:
            break
    do("TAMIS.LOAD", "l", 0, data)
    same(master, replica, ["f", "auto", "bf", "bfi", "g", "l"])
    for name in ("f", "bf", "bfi"):     # MEMORY USAGE adds what the allocator gave the server for the key
        assert info(master.r, name)["bytes"] == info(replica.r, name)["bytes"]


@pytest.mark.parametrize("aof", [False, True], ids=["replica", "file"])
def test_an_add_that_only_changes_the_form(servers, aof):
    """The 25th key of a filter without a stated capacity moves all of them into lines. It may be a false positive of
    those, so that the reply is "was there"; replicas must do the same, or they deny it."""
    options = {"appendonly": "yes", "appendfsync": "always", "aof_use_rdb_preamble": "no"} if aof else {}
    master = servers(port=free_port(), **options)
    replica = None if aof else servers(port=free_port(), replicaof="127.0.0.1 %d" % master.port)
    if replica:
        wait(lambda: replica.r.info("replication")["master_link_status"] == "up", 30)
    do, exact, members = master.r.execute_command, ["exact:%d" % i for i in range(24)], {}
    do("TAMIS.INSERT", "lines", "ERROR", 0.45, "ITEMS", *exact, "one more")
    strange = ["stranger:%d" % i for i in range(100000)]
    strange = [item for item, there in zip(strange, do("BF.MEXISTS", "lines", *strange)) if there]
    ways = [lambda key, *items: do("BF.ADD", key, items[0]), lambda key, *items: do("BF.MADD", key, *items, "later")[0],
            lambda key, *items: do("TAMIS.INSERT", key, "NOCREATE", "ITEMS", *items)[0]]
    for i, item in enumerate(strange):  # alone, with another, and as a command with options
        key = "f%d" % i
        do("TAMIS.INSERT", key, "ERROR", 0.45, "ITEMS", *exact)
        assert do("BF.EXISTS", key, item) == 0
        if ways[i % 3](key, item) == 0:  # not so if it only resembles "one more"
            members[key] = exact + [item]
    assert len(members) >= 3
    was = master.digest(*members)
    if aof:
        master.r.execute_command("DEBUG", "LOADAOF")
        assert master.digest(*members) == was
    else:
        same(master, replica, members)
    for key in members:
        assert all((master if aof else replica).r.execute_command("BF.MEXISTS", key, *members[key]))


def test_what_a_master_created_is_not_refused(servers):
    """In an append-only file, or from a master, RedisBloom among them: commands that state no limit, or the one of a
    replica in between. The value gets the limit of this server, and takes what the master adds."""
    server = servers(appendonly="yes", appendfsync="always", **{"tamis.value-limit": "64kb"})
    creations = {"bloom": ["BF.RESERVE", 0.01, 10**6], "expanding": ["BF.RESERVE", 0.01, 10**6, "EXPANSION", 3],
                 "fixed": ["BF.RESERVE", 0.01, 10**6, "NONSCALING"], "cuckoo": ["CF.RESERVE", 10**6, "EXPANSION", 0],
                 "insert": ["BF.INSERT", "CAPACITY", 10**6, "ITEMS", "x"],
                 "scales": ["BF.INSERT", "VALIDATESCALETO", 10**8, "ITEMS", "x"],
                 "further on": ["TAMIS.RESERVE", 0.01, 10**6, "MAXMEM", 65536, "GROWTH", "fixed"],
                 "records": ["TAMIS.XRESERVE", 0.01, 10**5, "ATTRIBUTES", 1, "a", "VERIFIER", "table", "MAXMEM", 5000]}
    with pytest.raises(redis.ResponseError, match="limit of a value"):
        server.r.execute_command("BF.RESERVE", "here", 0.01, 10**6)
    [path] = glob.glob(os.path.join(server.folder, "appendonlydir", "*.incr.aof"))
    with open(path, "ab") as aof:
        for key, (command, *words) in creations.items():
            aof.write(encode(command, key, *words))
            add = ["TAMIS.XADD", key, "a=y"] if key == "records" else \
                ["CF.ADD" if key == "cuckoo" else "BF.ADD", key, "y"]
            aof.write(encode(*add))
        for key, capacity in (("united", 10000), ("other", 9000)):  # each below its limit, and the union above
            aof.write(encode("TAMIS.RESERVE", key, 0.01, capacity, "GROWTH", "scalable", "MAXMEM", 20000))
            aof.write(encode("TAMIS.ADD", key, "of " + key))
        aof.write(encode("TAMIS.MERGE", "united", 1, "other", "CONCAT", "RESTATE"))
    server.r.execute_command("DEBUG", "LOADAOF")
    assert server.r.execute_command("TAMIS.MEXISTS", "united", "of united", "of other") == [1, 1]
    assert info(server.r, "united")["memory_limit"] == 20000
    for key in creations:
        limit = 5000 if key == "records" else 65536
        facts = server.r.execute_command("TAMIS.XINFO", key) if key == "records" else info(server.r, key)
        if key == "records":
            facts = {k.decode(): v for k, v in zip(facts[::2], facts[1::2])}
            assert server.r.execute_command("TAMIS.XQUERY", key, "a=y")[0] == 1
        else:
            assert server.r.execute_command("TAMIS.EXISTS", key, "y") == 1
        assert facts["memory_limit"] == limit, key


def test_items_that_redisbloom_did_not_count(servers):
    """RedisBloom passes over false positives of its own, so that a filter that may not grow takes more items than its
    capacity; and a cuckoo filter takes as many as it has slots. None of them may be refused in its stream."""
    server = servers(appendonly="yes", appendfsync="always")
    r, items = server.r, ["item:%d" % i for i in range(1000)]
    creations = {"bf": ["BF.RESERVE", 0.3, 200, "NONSCALING"], "expansion": ["BF.RESERVE", 0.3, 200, "EXPANSION", 0],
                 "insert": ["BF.INSERT", "CAPACITY", 200, "ERROR", 0.3, "NONSCALING", "ITEMS", "x"],
                 "cf": ["CF.RESERVE", 600, "EXPANSION", 0], "slots": ["CF.RESERVE", 90, "BUCKETSIZE", 3, "EXPANSION", 0]}
    takes = {"cf": 1000, "slots": 93}  # 600 / 2 or 90 / 3 buckets, rounded up to a power of 2
    [path] = glob.glob(os.path.join(server.folder, "appendonlydir", "*.incr.aof"))
    with open(path, "ab") as aof:
        for key, (command, *words) in creations.items():
            aof.write(encode(command, key, *words))
            for item in items[:takes.get(key, 250)]:
                aof.write(encode("CF.ADD" if key in takes else "BF.ADD", key, item))
    r.execute_command("DEBUG", "LOADAOF")
    for key in creations:
        assert all(r.execute_command("TAMIS.MEXISTS", key, *items[:takes.get(key, 250)])), key
    for key in ("bf", "cf"):  # but not any number
        with pytest.raises(redis.ResponseError, match="full"):
            for i in range(2000):
                r.execute_command("CF.ADD" if key == "cf" else "BF.ADD", key, "more:%d" % i)


def test_items_passed_over_by_nx(servers):
    """An add that skips what is there skips it on replicas too, in filters with a clock as well."""
    master, replica = pair(servers)
    do = master.r.execute_command
    for growth in ("smooth", "flexible"):
        do("TAMIS.RESERVE", growth, 0.001, 50, "GROWTH", growth, "DELETABLE")
        do("TAMIS.MADD", growth, "there", "gone")
        assert do("TAMIS.INSERT", growth, "NX", "ITEMS", "there", "new") == [0, 1]
        assert do("CF.INSERTNX", growth, "ITEMS", "there", "newer") == [0, 1]
    start = time.time_ns() - 3000 * 10**9   # by now the newest vector is another one, which only "new" enters
    do("TAMIS.RESERVE", "window", 0.001, 50, "GROWTH", "window", "WINDOW", 7000, "AT", start)
    do("TAMIS.INSERT", "window", "AT", start, "ITEMS", "there")
    assert do("TAMIS.INSERT", "window", "NX", "ITEMS", "there", "new") == [0, 1]
    same(master, replica, ["smooth", "flexible", "window"])
    for growth in ("smooth", "flexible"):
        assert do("TAMIS.DEL", growth, "there") == 1
    synced(master, replica)
    for r in (master.r, replica.r):
        assert [r.execute_command("TAMIS.EXISTS", g, "there") for g in ("smooth", "flexible")] == [0, 0]
