"""PUBLISH: copies of a filter by messages in a stream, from the master alone, never twice."""
import json
import os
import signal
import subprocess
import time

import pytest
import redis

from conftest import TAMIS, free_port, wait
from test_keys import info, refused, reserve

FOLLOWS = b"tamis follow" in subprocess.run([TAMIS, "help"], capture_output=True).stdout


def entries(r, stream):
    return [e for e in r.xrange(stream)]


def epochs(r, stream, owner):
    return int(r.lindex("{%s}:snapshot:%s" % (stream, owner), 0))


class Follower:
    """tamis follow, as a process."""

    def __init__(self, server, name, folder, *options):
        self.out, self.options = os.path.join(folder, "copies.tamis"), options
        self.process = subprocess.Popen(
            [TAMIS, "follow", "redis+unix://%s?name=%s" % (server.socket, name), "-o", self.out, *options],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(20)

    def locate(self, key):
        """"yes" or "no" by a copy that is current, else "doubt"."""
        done = subprocess.run([TAMIS, "locate", self.out, key, "--json", *self.options],
                              capture_output=True, text=True)
        if done.returncode not in (0, 1):
            return "doubt"
        said = json.loads(done.stdout) if done.stdout.strip() else {"owners": [], "maybe": []}
        return "yes" if said["owners"] else "doubt" if said["maybe"] else "no"


@pytest.fixture
def follower(tmp_path):
    made = []

    def make(server, name, *options):
        made.append(Follower(server, name, str(tmp_path), *options))
        return made[-1]
    yield make
    for f in made:
        f.stop()


def test_a_stream_of_messages(server, r):
    reserve(r, "f", 0.01, 1000)
    r.execute_command("TAMIS.MADD", "f", *range(500))
    assert r.execute_command("TAMIS.PUBLISH", "f", "copies", "host1", "MISS", 0.05) == b"OK"
    first = entries(r, "copies")
    assert first and all(set(e[1]) == {b"o", b"m"} and e[1][b"o"] == b"host1" for e in first)
    assert all(e[1][b"m"].startswith(b"TMSG") for e in first)
    assert r.hget("{copies}:owners", "host1") is not None
    snapshot = r.lrange("{copies}:snapshot:host1", 0, -1)
    assert int(snapshot[0]) > 10**18 and snapshot[1].startswith(b"TMSG")
    i = info(r, "f")
    assert i["published"] == b"copies" and i["version"] >= 1
    # Few changes are not worth a message; many are.
    r.execute_command("TAMIS.MADD", "f", *range(500, 505))
    assert len(entries(r, "copies")) == len(first)
    r.execute_command("TAMIS.MADD", "f", *range(505, 700))
    assert len(entries(r, "copies")) > len(first)
    assert info(r, "f")["version"] > i["version"]
    r.execute_command("TAMIS.CLEAR", "f")
    assert info(r, "f")["version"] > i["version"] + 1
    assert r.execute_command("TAMIS.UNPUBLISH", "f") == 1
    assert r.execute_command("TAMIS.UNPUBLISH", "f") == 0
    assert r.exists("{copies}:snapshot:host1") == 0 and r.hget("{copies}:owners", "host1") is None
    assert info(r, "f")["published"] is None
    n = len(entries(r, "copies"))
    r.execute_command("TAMIS.MADD", "f", *range(700))
    assert len(entries(r, "copies")) == n


def test_heartbeats(server, r):
    reserve(r, "f", 0.01, 1000)
    r.execute_command("TAMIS.PUBLISH", "f", "copies", "host1", "BEAT", 1)
    n = len(entries(r, "copies"))
    wait(lambda: len(entries(r, "copies")) >= n + 2, 15)
    r.delete("f")
    time.sleep(1.5)
    n = len(entries(r, "copies"))
    time.sleep(1.5)
    assert len(entries(r, "copies")) == n  # there is no one to speak


@pytest.mark.parametrize("lose", [
    lambda r: r.delete("{copies}:snapshot:host1"), lambda r: r.xtrim("copies", maxlen=0),
    lambda r: r.delete("copies"), lambda r: r.xdel("copies", r.xrevrange("copies", count=1)[0][0])])
def test_what_is_lost_is_written_anew(server, r, lose):
    reserve(r, "f", 0.01, 1000)
    r.execute_command("TAMIS.PUBLISH", "f", "copies", "host1", "BEAT", 1)
    before = r.lindex("{copies}:snapshot:host1", 1)
    epoch = epochs(r, "copies", "host1")
    lose(r)
    wait(lambda: r.lindex("{copies}:snapshot:host1", 1) not in (None, before), 10)
    wait(lambda: epochs(r, "copies", "host1") == epoch and len(entries(r, "copies")), 10)


def test_of_two_with_one_name_the_later_goes_on(server, r):
    for name in "fg":
        reserve(r, name, 0.01, 1000)
        r.execute_command("TAMIS.PUBLISH", name, "copies", "host1", "BEAT", 1)
    epoch = epochs(r, "copies", "host1")
    wait(lambda: "another server now publishes as host1" in server.log_tail(), 10)
    assert epochs(r, "copies", "host1") == epoch


def test_no_word_while_writes_are_paused(servers):
    """As in a failover, or a shutdown that waits for its replicas."""
    master = servers(port=free_port())
    replica = servers(port=free_port(), replicaof="127.0.0.1 %d" % master.port)
    wait(lambda: replica.r.info("replication")["master_link_status"] == "up", 30)
    r = master.r
    reserve(r, "f", 0.01, 1000)
    r.execute_command("TAMIS.PUBLISH", "f", "copies", "host1", "BEAT", 1)
    r.execute_command("CLIENT", "PAUSE", 3500, "WRITE")
    n = len(entries(r, "copies"))
    time.sleep(3)
    assert len(entries(r, "copies")) == n
    wait(lambda: len(entries(r, "copies")) > n, 15)


def test_refusals(server, r):
    reserve(r, "f", 0.01, 100)
    r.set("s", "x")
    for words, text in ((["none", "st", "o"], "not found"), (["s", "st", "o"], "WRONGTYPE"),
                        (["f", "st", "o", "WHAT", 1], "the targets are"),
                        (["f", "st", "o", "MISS"], "a target is missing"),
                        (["f", "st", "o", "MISS", 7], "a target is missing or out of range"),
                        (["f", "st", "o", "BEAT", 0.5], "a target is missing or out of range"),
                        (["f", "st", ""], "a stream needs a name"), (["f", "", "o"], "a stream needs a name"),
                        (["f", "st", "x" * 256], "a stream needs a name")):
        assert refused(r, "TAMIS.PUBLISH", *words).startswith(text), words
    assert refused(r, "TAMIS.UNPUBLISH", "s").startswith("WRONGTYPE")
    assert r.execute_command("TAMIS.UNPUBLISH", "none") == 0
    assert info(r, "f")["published"] is None
    # A stream that is no stream: the filter works, and it is tried again later.
    assert r.execute_command("TAMIS.PUBLISH", "f", "s", "o") == b"OK"
    assert r.execute_command("TAMIS.MADD", "f", *range(50)) == [1] * 50
    assert r.get("s") == b"x"


def test_never_twice(servers):
    """The replica has the stream of its master and adds nothing; a restart begins a new epoch."""
    master = servers(port=free_port(), appendonly="yes", appendfsync="no")
    replica = servers(port=free_port(), replicaof="127.0.0.1 %d" % master.port)
    wait(lambda: replica.r.info("replication")["master_link_status"] == "up", 30)
    r = master.r
    reserve(r, "{c}f", 0.01, 100)
    r.execute_command("TAMIS.PUBLISH", "{c}f", "{c}", "me", "BEAT", 1)
    for i in range(0, 2000, 100):
        r.execute_command("TAMIS.MADD", "{c}f", *range(i, i + 100))
    time.sleep(1.2)
    assert r.execute_command("WAIT", 1, 5000) == 1

    def same():
        keys = ["{c}", "{c}:owners", "{c}:snapshot:me", "{c}f"]
        return master.digest(*keys) == replica.digest(*keys)
    wait(same, 10)
    assert b"CRITICAL" not in replica.log_tail().encode()
    n, epoch = len(r.xrange("{c}")), int(r.lindex("{c}:snapshot:me", 0))
    assert n > 2
    master.restart()
    r = master.r
    wait(lambda: int(r.lindex("{c}:snapshot:me", 0)) > epoch, 10)  # found again without a write
    assert info(r, "{c}f")["published"] == b"{c}"
    wait(lambda: replica.r.info("replication")["master_link_status"] == "up", 30)
    wait(same, 20)
    # The replica takes over: it publishes from now on, in its own epoch.
    epoch = int(r.lindex("{c}:snapshot:me", 0))
    master.stop()
    replica.r.execute_command("REPLICAOF", "NO", "ONE")
    wait(lambda: int(replica.r.lindex("{c}:snapshot:me", 0)) > epoch, 15)


def test_it_is_part_of_the_value(servers):
    server = servers(appendonly="yes", appendfsync="no", aof_use_rdb_preamble="no")
    r = server.r
    reserve(r, "f", 0.01, 100, "DELETABLE")
    r.execute_command("TAMIS.PUBLISH", "f", "st", "me", "MISS", 0.25, "FALSERATE", 0.5, "WEIGHTS", 1, 2,
                      "MAXAGE", 3.5, "BEAT", 100)
    r.execute_command("TAMIS.MADD", "f", *range(50))
    r.bgrewriteaof()
    wait(lambda: r.info("persistence")["aof_rewrite_in_progress"] == 0)
    server.restart()
    assert info(server.r, "f")["published"] == b"st"
    r = server.r
    assert r.execute_command("COPY", "f", "copy") == 1
    assert info(r, "copy")["published"] is None  # one owner, one origin
    r.rename("f", "g")
    r.execute_command("TAMIS.MADD", "g", *range(1000, 1300))
    assert info(r, "g")["published"] == b"st" and info(r, "g")["version"] >= 1
    r.execute_command("TAMIS.ADD", "x", "y")
    before = epochs(r, "st", "me")
    r.execute_command("TAMIS.RESERVE", "h", "LIKE", "g")
    r.execute_command("TAMIS.MADD", "h", *range(5000, 5100))
    r.execute_command("TAMIS.MERGE", "g", 1, "h")
    assert epochs(r, "st", "me") > before  # a new filter in its place
    payload = r.dump("g")
    r.delete("g")
    r.restore("g", 0, payload)
    assert info(r, "g")["published"] == b"st"
    with pytest.raises(redis.ResponseError):
        r.restore("bad", 0, payload[:-20] + b"0123456789" + payload[-10:])


def test_it_goes_on_elsewhere(servers):
    """A value that is renamed or moved, or whose database is swapped, has its heartbeats there."""
    server = servers()
    clients = [server.client(db=i) for i in range(3)]
    reserve(server.r, "f", 0.01, 100)
    server.r.execute_command("TAMIS.PUBLISH", "f", "st", "me", "BEAT", 1)

    def beats(r):
        length = r.xlen("st")
        wait(lambda: r.xlen("st") >= length + 2, 10)

    server.r.rename("f", "g")
    beats(clients[0])
    server.r.execute_command("SWAPDB", 0, 1)
    beats(clients[1])
    clients[1].execute_command("MOVE", "g", 2)
    beats(clients[2])
    assert info(clients[2], "g")["published"] == b"st"


@pytest.mark.skipif(not FOLLOWS, reason="this command line has no follow")
@pytest.mark.parametrize("words", [[], ["WITHKEY"]], ids=" ".join)
def test_a_follower_has_the_bits(server, r, follower, tmp_path, words):
    """It gets the key from a file, or with the snapshot."""
    reserve(r, "f", 0.001, 1000, "DELETABLE")
    r.execute_command("TAMIS.MADD", "f", *["a%d" % i for i in range(1000)])
    r.execute_command("TAMIS.PUBLISH", "f", "copies", "host1", "MISS", 0.01, "BEAT", 1,
                      "MAXAGE", 0.2, *words)
    (tmp_path / "key").write_text(r.config_get("tamis.family-key")["tamis.family-key"])
    f = follower(server, "copies", *([] if words else ["--key-file", str(tmp_path / "key")]))
    wait(lambda: f.locate("a1") == "yes", 20)
    for step in range(5):
        r.execute_command("TAMIS.MADD", "f", *["b%d-%d" % (step, i) for i in range(400)])
        wait(lambda: f.locate("b%d-0" % step) == "yes", 20)
    r.execute_command("TAMIS.MDEL", "f", *["a%d" % i for i in range(1000)])
    wait(lambda: f.locate("a7") == "no", 20)
    wait(lambda: f.locate("b3-3") == "yes", 20)
