"""Three nodes, with slots moved under load, and masters replaced by their replicas: nothing is lost, nothing is denied."""
import logging
import signal
import subprocess
import threading
import time

import pytest
from redis.cluster import RedisCluster
from redis.exceptions import ResponseError

from conftest import ASAN, BUSY, LONG, free_port, wait
from sets import Load, names
from test_replica import same, synced

logging.disable(logging.CRITICAL)  # the client logs every redirection

FILTERS = 150
ROUNDS = 100  # of items to each, then the same again: a slow machine does not fill them


def node(servers):
    return servers(port=free_port(cluster=True), cluster_enabled="yes", cluster_config_file="nodes.conf",
                   cluster_node_timeout="5000", **{"tamis.family-key": "0123456789abcdef" * 2})


def cluster(servers):
    nodes = [node(servers) for _ in range(3)]
    cli(["create"] + ["127.0.0.1:%d" % n.port for n in nodes] + ["--cluster-yes"])
    for n in nodes:
        wait(lambda: b"cluster_state:ok" in n.r.execute_command("CLUSTER", "INFO"), 30)
    return nodes


def cli(words):
    done = subprocess.run(["redis-cli", "--cluster"] + words, capture_output=True, text=True,
                          timeout=BUSY * 60)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def write(port, number, stop, added, errors):
    r, i = RedisCluster("127.0.0.1", port), 0
    try:
        while not stop.is_set():
            key, item = "f%d" % (i % FILTERS), "w%d-%d" % (number, i)
            if i % 3:
                r.execute_command("BF.ADD", key, item)
            else:
                r.execute_command("TAMIS.MADD", key, item, item + "b")
                added.add((key, item + "b"))
            added.add((key, item))
            i = (i + 1) % (FILTERS * ROUNDS)
    except Exception as error:  # whatever it is, the test tells
        errors.append(repr(error))
    finally:
        r.close()


def test_slots_move_under_load(servers):
    nodes = cluster(servers)
    port = nodes[0].port
    r = RedisCluster("127.0.0.1", port)
    for i in range(FILTERS):
        options = [[], ["DELETABLE"], ["GROWTH", "window", "WINDOW", 1e6]][i % 3]  # it forgets no one here
        assert r.execute_command("TAMIS.RESERVE", "f%d" % i, 0.0001, 500, *options)
    stop, errors, added = threading.Event(), [], [set(), set()]
    writers = [threading.Thread(target=write, args=(port, i, stop, added[i], errors))
               for i in range(2)]
    for w in writers:
        w.start()
    ids = [n.r.execute_command("CLUSTER", "MYID").decode() for n in nodes]
    slots = 1000 if ASAN else 4000 if LONG else 1500
    for source, target in ((0, 1), (1, 2), (2, 0)):
        cli(["reshard", "127.0.0.1:%d" % port, "--cluster-from", ids[source], "--cluster-to",
             ids[target], "--cluster-slots", str(slots), "--cluster-yes"])
    stop.set()
    for w in writers:
        w.join()
    assert not errors, errors
    members = sorted(added[0] | added[1])
    assert len(members) > 500
    by_key = {}
    for key, item in members:
        by_key.setdefault(key, []).append(item)
    for key, items in by_key.items():
        assert all(r.execute_command("TAMIS.MEXISTS", key, *items)), key
        wrong = sum(r.execute_command("TAMIS.MEXISTS", key, *["no%d" % i for i in range(1000)]))
        assert wrong <= 4
    migrated = sum(n.r.info("commandstats").get("cmdstat_migrate", {}).get("calls", 0)
                   for n in nodes)
    assert migrated > 0
    r.execute_command("TAMIS.ADD", "{tag}a", "x")  # values of one slot, and of one family
    r.execute_command("TAMIS.ADD", "{tag}b", "y")
    assert r.execute_command("TAMIS.MERGE", "{tag}c", 2, "{tag}a", "{tag}b")
    assert r.execute_command("TAMIS.MEXISTS", "{tag}c", "x", "y") == [1, 1]
    r.close()


def role(server):
    return server.r.info("replication")["role"]


def write_one(port, key, stop, added, errors):
    """Items 0, 1, ... to this key."""
    r = RedisCluster("127.0.0.1", port)
    try:
        while not stop.is_set():
            r.execute_command("BF.ADD", key, len(added))
            added.append(len(added))
    except Exception as error:  # whatever it is, the test tells
        errors.append(repr(error))
    finally:
        r.close()


def take_over(replica):
    """By CLUSTER FAILOVER, as often as it takes: the servers give up after 5 seconds, which a busy machine may need."""
    for _ in range(20):
        replica.r.execute_command("CLUSTER", "FAILOVER")
        for _ in range(60):
            if role(replica) == "master":
                return
            time.sleep(0.1)
    raise AssertionError(replica.log_tail())


def owner_port(node, key):
    """Where a node says that the key is; it hears of a new owner from the others."""
    r = RedisCluster("127.0.0.1", node.port)
    try:
        return r.get_node_from_key(key).port
    finally:
        r.close()


def test_a_replica_takes_over(servers):
    """By hand while others write, then because its master was killed; the old master follows the new one."""
    nodes = cluster(servers)
    owner = owner_port(nodes[0], "{v}")
    master = next(n for n in nodes if n.port == owner)
    replica = node(servers)
    cli(["add-node", "127.0.0.1:%d" % replica.port, "127.0.0.1:%d" % nodes[0].port, "--cluster-slave",
         "--cluster-master-id", master.r.execute_command("CLUSTER", "MYID").decode()])
    wait(lambda: replica.r.info("replication").get("master_link_status") == "up", 30)
    load = Load(master.r)
    load.create()
    load.run(100)
    stop, errors, added = threading.Event(), [], []
    writer = threading.Thread(target=write_one, args=(nodes[0].port, "{v}late", stop, added, errors))
    writer.start()
    wait(lambda: len(added) > 200 or errors, 30)
    take_over(replica)
    wait(lambda: role(master) == "slave", 30)
    there = len(added)
    wait(lambda: len(added) > there + 200 or errors, 30)
    stop.set()
    writer.join()
    assert not errors, errors
    same(replica, master, names())
    load.r = replica.r
    load.run(100)
    load.check(replica.r)
    synced(replica, master)
    digest = replica.digest(*names())
    replica.stop(signal.SIGKILL)
    wait(lambda: role(master) == "master", 60)
    wait(lambda: b"cluster_state:ok" in master.r.execute_command("CLUSTER", "INFO"), 30)
    assert master.digest(*names()) == digest
    load.r = master.r
    load.run(100)
    load.check(master.r)
    replica.start()
    wait(lambda: replica.r.info("replication").get("master_link_status") == "up", 60)
    same(master, replica, names())
    wait(lambda: owner_port(nodes[0], "{v}") == master.port, 60)
    r = RedisCluster("127.0.0.1", nodes[0].port)
    for i in range(0, len(added), 5000):
        assert all(r.execute_command("TAMIS.MEXISTS", "{v}late", *added[i:i + 5000]))
    r.close()


def node_alone(servers):
    """One that has all slots."""
    server = servers(port=free_port(cluster=True), cluster_enabled="yes")
    server.r.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    wait(lambda: "cluster_state:ok" in str(server.r.execute_command("CLUSTER", "INFO")), 20)
    return server


@pytest.mark.parametrize("word", ["1", "LIKE", ""])
def test_any_number_of_arguments(servers, word):
    """A node asks a command for its keys before it runs, whatever follows its name: there is no client to reply to."""
    server = node_alone(servers)
    for name in server.r.execute_command("COMMAND LIST", "FILTERBY", "MODULE", "tamis"):
        for n in range(14):
            server.raw(name, *[word] * n)
    assert server.alive()


def test_keys_of_one_slot(servers):
    """Commands with several keys refuse those of two slots, even where one node has both."""
    r = node_alone(servers).r
    for key in ("a", "b", "{a}2"):
        r.execute_command("TAMIS.RESERVE", key, 0.01, 1000)  # a vector each, which can be intersected
        r.execute_command("TAMIS.ADD", key, "x")
    for words in ("MERGE a 1 b", "MERGE a 2 {a}2 b", "INTERSECT a {a}2 b", "RESERVE n 0.01 10 LIKE a",
                  "RESERVE n LIKE a", "PUBLISH a b me"):
        with pytest.raises(ResponseError, match="CROSSSLOT"):
            r.execute_command("TAMIS." + words.split()[0], *words.split()[1:])
    for words in ("MERGE a 1 {a}2", "MERGE {a}3 2 a {a}2 CONCAT", "INTERSECT {a}4 a {a}2",
                  "RESERVE {a}5 0.01 10 LIKE a", "RESERVE {a}6 LIKE a", "PUBLISH a {a}s me"):
        assert r.execute_command("TAMIS." + words.split()[0], *words.split()[1:]) == b"OK"


def test_publishing_stays_in_the_slot(servers):
    nodes = cluster(servers)
    r = RedisCluster("127.0.0.1", nodes[0].port)
    r.execute_command("TAMIS.MADD", "{p}f", *range(500))
    with pytest.raises(ResponseError, match="slot"):
        at = r.get_node_from_key("{p}f")
        r.execute_command("TAMIS.PUBLISH", "{p}f", "{q}s", "host", target_nodes=at)
    for stream in ("{p}s", "p"):
        assert r.execute_command("TAMIS.PUBLISH", "{p}f", stream, "host")
        home = r.get_node_from_key("{p}f").name
        beside = list(r.scan_iter(match="*host*")) + list(r.scan_iter(match="*owners*"))
        assert len(beside) == 2         # the snapshot and the positions
        assert all(r.keyslot(key) == r.keyslot("{p}f") for key in beside)
        assert r.get_node_from_key(stream).name == home
        before = r.xlen(stream)
        assert before
        r.execute_command("TAMIS.MADD", "{p}f", *["%s-%d" % (stream, i) for i in range(500)])
        assert r.xlen(stream) > before
        assert r.execute_command("TAMIS.UNPUBLISH", "{p}f") == 1
    # Moved to another node, it goes on there.
    r.execute_command("TAMIS.PUBLISH", "{p}f", "{p}s", "host", "BEAT", 1)
    ids = {n.port: n.r.execute_command("CLUSTER", "MYID").decode() for n in nodes}
    source = r.get_node_from_key("{p}f").port
    target = next(port for port in ids if port != source)
    cli(["reshard", "127.0.0.1:%d" % source, "--cluster-from", ids[source], "--cluster-to",
         ids[target], "--cluster-slots", "5461", "--cluster-yes"])
    moved = RedisCluster("127.0.0.1", target)
    assert moved.get_node_from_key("{p}f").port == target
    before = moved.xlen("{p}s")
    moved.execute_command("TAMIS.MADD", "{p}f", *["moved-%d" % i for i in range(500)])
    wait(lambda: moved.xlen("{p}s") > before, 20)
    assert moved.execute_command("TAMIS.UNPUBLISH", "{p}f") == 1
    r.close()
    moved.close()
