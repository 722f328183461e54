"""Records in the server: attributes, combinations, verifiers, removal; saved and replicated."""
import random

import pytest
import redis

from conftest import free_port, wait
from test_bytes import pull
from test_keys import refused

ATTRIBUTES = ["ATTRIBUTES", 3, "ip", "user", "status:int:20"]


def make(r, key, *options, rate=0.01, capacity=500):
    assert r.execute_command("TAMIS.XRESERVE", key, rate, capacity, *ATTRIBUTES, *options) == b"OK"


def records(n, seed=1):
    rng = random.Random(seed)
    return [("ip=10.0.%d.%d" % (rng.randrange(256), rng.randrange(256)),
             "user=u%d" % rng.randrange(10 ** 6), "status=%d" % rng.choice([200, 301, 404, 500]))
            for _ in range(n)]


def xinfo(r, key):
    flat = r.execute_command("TAMIS.XINFO", key)
    return {flat[i].decode(): flat[i + 1] for i in range(0, len(flat), 2)}


def ask(r, key, *pairs):
    return r.execute_command("TAMIS.XQUERY", key, *pairs)


def test_add_and_ask(r):
    make(r, "x")
    assert r.execute_command("TAMIS.XADD", "x", "ip=1.2.3.4", "user=ann", "status=200") == 1
    assert r.execute_command("TAMIS.XADD", "x", "status=0200", "user=ann", "ip=1.2.3.4") == 0
    assert r.execute_command("TAMIS.XADD", "x", "ip=5.6.7.8", "user=bob", "status=404") == 1
    assert ask(r, "x", "ip=1.2.3.4") == [1, 1]
    assert ask(r, "x", "ip=1.2.3.4", "user=ann") == [1, 1]
    assert ask(r, "x", "ip=1.2.3.4", "user=bob") == [0, 1]  # both are there, but not together
    assert ask(r, "x", "ip=9.9.9.9") == [0, 1]
    assert ask(r, "x", "ip=1.2.3.4", "ip=9.9.9.9", "user=bob", "user=ann") == [1, 1]  # any of them
    assert ask(r, "x", "ip=1.2.3.4", "user=ann", "status=200") == [1, 1]
    assert ask(r, "none", "ip=1") == [0, 1]
    i = xinfo(r, "x")
    assert i["records"] == 2 and i["kind"] == b"records" and i["verifier"] == b"filter"
    assert [a[0] for a in i["attributes"]] == [b"ip", b"user", b"status"]
    assert [a[1] for a in i["attributes"]] == [b"text", b"text", b"int"]
    assert sorted(i["combos"]) == [[b"ip", b"status"], [b"ip", b"user"], [b"user", b"status"]]
    assert float(i["fpp"]) == 0.01 and float(i["fpp_record"]) < 0.01


def test_missing_and_empty(r):
    make(r, "x")
    r.execute_command("TAMIS.XADD", "x", "ip=1", "user=")
    r.execute_command("TAMIS.XADD", "x", "ip=2")
    assert ask(r, "x", "ip=1", "user=") == [1, 1] and ask(r, "x", "ip=1", "user!") == [0, 1]
    assert ask(r, "x", "ip=2", "user=") == [0, 1] and ask(r, "x", "ip=2", "user!") == [1, 1]


@pytest.mark.parametrize("options", [[], ["DELETABLE"], ["VERIFIER", "table", "DELETABLE"],
                                     ["VERIFIER", "none"], ["COMBO", "ip+user"], ["NOCOMBOS"],
                                     ["GROWTH", "fixed"], ["GROWTH", "dynamic"], ["EXPANSION", 2],
                                     ["LAYOUT", "spread"], ["HASH", "xxh3"]])
def test_options(r, options):
    make(r, "x", *options, capacity=4000 if "GROWTH" in options else 300)
    rows = records(2000)
    for row in rows:
        r.execute_command("TAMIS.XADD", "x", *row)
    assert all(ask(r, "x", *row)[0] for row in rows)
    assert all(ask(r, "x", *row[:2])[0] for row in rows)
    other = records(2000, seed=2)
    wrong = sum(ask(r, "x", *row)[0] for row in other)
    assert wrong <= 20 + 6 * 20 ** 0.5
    verified = ask(r, "x", *rows[0][:2])[1]
    assert verified == (options not in (["NOCOMBOS"], ["VERIFIER", "none"]))
    if "DELETABLE" in options:
        before = xinfo(r, "x")["records"]
        said = [r.execute_command("TAMIS.XDEL", "x", *row) for row in rows[:1000]]
        assert 0 not in said
        assert all(ask(r, "x", *row)[0] for row in rows[1000:])
        assert r.execute_command("TAMIS.XDEL", "x", "ip=none", "user=none") == 0
        assert xinfo(r, "x")["records"] == before - 1000
        for row in rows[1000:]:
            r.execute_command("TAMIS.XDEL", "x", *row)
        assert xinfo(r, "x")["records"] == 0


def test_refusals(server, r):
    make(r, "x")
    r.execute_command("TAMIS.ADD", "f", "a")
    cases = [
        (["XRESERVE", "y", 0.1, 10, "ATTRIBUTES", 0, "a"], "after the capacity come ATTRIBUTES"),
        (["XRESERVE", "y", 0.1, 10, "ATTRIBUTES", 5, "a"], "after the capacity come ATTRIBUTES"),
        (["XRESERVE", "y", 0.1, 10, "WHAT", 1, "a"], "after the capacity come ATTRIBUTES"),
        (["XRESERVE", "y", 0, 10, "ATTRIBUTES", 1, "a"], "error rate must be"),
        (["XRESERVE", "y", 0.1, 0, "ATTRIBUTES", 1, "a"], "capacity must be"),
        (["XRESERVE", "y", 0.1, 10, "ATTRIBUTES", 2, "a", "a"], "two attributes have the same name"),
        (["XRESERVE", "y", 0.1, 10, "ATTRIBUTES", 1, ""], "an attribute has a name"),
        (["XRESERVE", "y", 0.1, 10, "ATTRIBUTES", 1, "a=b"], "an attribute has a name"),
        (["XRESERVE", "y", 0.1, 10, "ATTRIBUTES", 1, "a:float"], "after the name of an attribute"),
        (["XRESERVE", "y", 0.1, 10, "ATTRIBUTES", 1, "a", "COMBO", "a+z"], "COMBO is names"),
        (["XRESERVE", "y", 0.1, 10, "ATTRIBUTES", 1, "a", "VERIFIER", "z"], "VERIFIER is none"),
        (["XRESERVE", "y", 0.1, 10, "ATTRIBUTES", 1, "a", "UNIQUE"], "unknown option 'UNIQUE'"),
        (["XRESERVE", "y", 0.1, 10, "ATTRIBUTES", 1, "a", "GROWTH", "window"], "records grow"),
        (["XRESERVE", "y", 0.01, 10**10, "ATTRIBUTES", 1, "a"], "could not create filter"),
        (["XRESERVE", "x", 0.1, 10, "ATTRIBUTES", 1, "a"], "item exists"),
        (["XRESERVE", "f", 0.1, 10, "ATTRIBUTES", 1, "a"], "item exists"),
        (["XADD", "x", "ip=1", "ip=2"], "a record has one value for an attribute"),
        (["XADD", "x", "ip"], "a pair is attribute=value"),
        (["XADD", "x", ""], "a pair is attribute=value"),
        (["XADD", "x", "colour=red"], ""),
        (["XADD", "none", "ip=1"], "not found"),
        (["XADD", "f", "ip=1"], "WRONGTYPE"),
        (["XDEL", "x", "ip=1"], "the records are not deletable"),
        (["XDEL", "none", "ip=1"], "not found"),
        (["XQUERY", "x", "what=1"], ""),
        (["XQUERY", "f", "ip=1"], "WRONGTYPE"),
        (["XINFO", "none"], "not found"),
        (["XINFO", "f"], "WRONGTYPE"),
        (["ADD", "x", "a"], "WRONGTYPE"),
        (["EXISTS", "x", "a"], "WRONGTYPE"),
        (["INFO", "x"], "WRONGTYPE"),
    ]
    before = server.digest("x", "f")
    for words, text in cases:
        assert refused(r, "TAMIS." + words[0], *words[1:]).startswith(text), words
    assert server.digest("x", "f") == before and r.exists("y") == 0
    for command in ("XRESERVE k 0.1 10 ATTRIBUTES", "XADD k", "XDEL k", "XQUERY k", "XINFO"):
        words = command.split()
        assert refused(r, "TAMIS." + words[0], *words[1:]).startswith("wrong number")


def test_saved_and_replicated(servers):
    master = servers(port=free_port(), appendonly="yes", appendfsync="no")
    replica = servers(port=free_port(), replicaof="127.0.0.1 %d" % master.port,
                      **{"tamis.value-limit": "100kb", "tamis.expansion": 7,
                         "tamis.family-key": "11" * 16})
    wait(lambda: replica.r.info("replication")["master_link_status"] == "up", 30)
    r = master.r
    keys = ["plain", "deletable", "table", "sized"]
    for key, options in zip(keys, ([], ["DELETABLE", "EXPANSION", 2],
                                   ["DELETABLE", "VERIFIER", "table"], ["MAXMEM", 200000])):
        make(r, key, *options, capacity=100)
    rows = records(1500)
    for key in keys:
        for row in rows + rows[:100]:
            r.execute_command("TAMIS.XADD", key, *row)
        for row in rows[:700] if key in ("deletable", "table") else []:
            r.execute_command("TAMIS.XDEL", key, *row)
    assert r.execute_command("WAIT", 1, 10000) == 1
    digests = master.digest(*keys)
    assert replica.digest(*keys) == digests
    master.restart()
    assert master.digest(*keys) == digests
    r = master.r
    r.bgrewriteaof()
    wait(lambda: r.info("persistence")["aof_rewrite_in_progress"] == 0)
    master.restart()
    r = master.r
    assert master.digest(*keys) == digests
    for key in keys:
        assert all(ask(r, key, *row)[0] for row in rows[700:])
        assert r.execute_command("COPY", key, "copy") == 1
        data = pull(r, "copy")
        r.delete("copy")
        assert r.execute_command("TAMIS.LOAD", "copy", 0, data) == 0
        r.restore("copy2", 0, r.dump(key))
        assert master.digest("copy2") == master.digest(key)
        assert xinfo(r, "copy")["records"] == xinfo(r, key)["records"]
        assert r.memory_usage(key) > 10000
        r.delete("copy", "copy2")


def test_replies_in_both_protocols(server, r):
    make(r, "x")
    assert server.raw("TAMIS.XADD", "x", "ip=1", resp=3) == b"#t\r\n"
    assert server.raw("TAMIS.XADD", "x", "ip=1") == b":0\r\n"
    assert server.raw("TAMIS.XQUERY", "x", "ip=1") == b"*2\r\n:1\r\n:1\r\n"
    assert server.raw("TAMIS.XQUERY", "x", "ip=2", resp=3) == b"*2\r\n#f\r\n#t\r\n"
    assert server.raw("TAMIS.XINFO", "x", resp=3).startswith(b"%18\r\n+kind\r\n+records\r\n")


@pytest.mark.parametrize("growth", ["fixed", "dynamic"])
def test_full_sets_of_records_say_so(r, growth):
    make(r, "x", "GROWTH", growth, capacity=40)
    with pytest.raises(redis.ResponseError, match="^the set of records is full: it holds the 40 "
                                                  "records it was made for; make a larger one$"):
        for row in records(1000):
            r.execute_command("TAMIS.XADD", "x", *row)
