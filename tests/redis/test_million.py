"""However a value travels, a million keys are answered as before, and its digest is the same."""
import signal
import subprocess

from conftest import ASAN, TAMIS, free_port, wait
from sets import MANY, answers, fill
from test_bytes import pull
from test_cluster import cli, cluster
from test_replica import pair, synced


def test_a_restart_with_rdb(servers):
    server = servers()
    said, digest = fill(server, "f"), server.digest("f")
    server.r.save()
    server.restart()
    assert server.digest("f") == digest and answers(server, "f") == said


def test_a_restart_with_aof(servers):
    """Replayed from the commands; then rewritten, as commands too, and replayed."""
    server = servers(appendonly="yes", appendfsync="no", aof_use_rdb_preamble="no")
    said, digest = fill(server, "f"), server.digest("f")
    server.restart()
    assert server.digest("f") == digest and answers(server, "f") == said
    server.r.bgrewriteaof()
    wait(lambda: server.r.info("persistence")["aof_rewrite_in_progress"] == 0
         and server.r.info("persistence")["aof_rewrite_scheduled"] == 0, 60)
    assert server.r.info("persistence")["aof_last_bgrewrite_status"] == "ok"
    server.restart(signal.SIGTERM if ASAN else signal.SIGKILL)
    assert server.digest("f") == digest and answers(server, "f") == said


def test_another_server(servers):
    """DUMP and RESTORE of the server, MIGRATE, and COPY."""
    a, b = servers(), servers(port=free_port())
    said, digest = fill(a, "f"), a.digest("f")
    assert b.r.restore("f", 0, a.r.dump("f"))
    assert b.digest("f") == digest and answers(b, "f") == said
    assert a.r.execute_command("COPY", "f", "g") == 1
    b.r.delete("f")
    assert a.r.execute_command("MIGRATE", "127.0.0.1", b.port, "f", 0, 60000) == b"OK"
    assert a.digest("g") == digest == b.digest("f")
    assert answers(a, "g") == said == answers(b, "f")


def test_pieces(servers):
    """SCANDUMP and LOADCHUNK by the client's own functions; DUMP and LOAD, through a file."""
    family = {"tamis.family-key": "0123456789abcdef" * 2}
    a, b = servers(**family), servers(**family)
    said, digest = fill(a, "f"), a.digest("f")
    cursor = 0
    while True:
        cursor, data = a.r.bf().scandump("f", cursor)
        if cursor == 0:
            break
        assert b.r.bf().loadchunk("f", cursor, data) in (True, b"OK")
    assert b.digest("f") == digest and answers(b, "f") == said
    data = pull(a.r, "f")
    b.r.delete("f")
    for i in range(0, len(data), 100001):
        left = b.r.execute_command("TAMIS.LOAD", "f", i, data[i:i + 100001])
    assert left == 0 and b.digest("f") == digest and answers(b, "f") == said


def test_a_file(servers, tmp_path):
    """The command line answers as the server does."""
    server = servers()
    said = fill(server, "f")
    path = tmp_path / "f.tamis"
    path.write_bytes(pull(server.r, "f", "WITHKEY"))
    keys = ["key%d" % i for i in range(MANY)]
    yes = [line for line in said.split(b"\r\n") if line[:1] == b":"]
    done = subprocess.run([TAMIS, "check", str(path)], input="\n".join(keys) + "\n",
                          capture_output=True, text=True)
    assert done.stdout.split() == [key for key, one in zip(keys, yes) if one == b":1"]


def test_a_replica(servers):
    """One that follows, and one that was killed, missed half and is synced again."""
    master, replica = pair(servers)
    said, digest = fill(master, "f"), master.digest("f")
    synced(master, replica)
    assert replica.digest("f") == digest and answers(replica, "f") == said
    replica.stop(signal.SIGTERM if ASAN else signal.SIGKILL)
    more = fill(master, "g", "0.001", "20000")
    replica.start()
    wait(lambda: replica.r.info("replication")["master_link_status"] == "up", 30)
    synced(master, replica)
    for key, want in (("f", said), ("g", more)):
        assert replica.digest(key) == master.digest(key)
        assert answers(replica, key) == want == answers(master, key)


def test_a_slot_moves(servers):
    nodes = cluster(servers)
    slot = nodes[0].r.execute_command("CLUSTER", "KEYSLOT", "f")
    home = next(n for n in nodes if owns(n, slot))
    target = next(n for n in nodes if n is not home)
    said, digest = fill(home, "f"), home.digest("f")
    ids = [n.r.execute_command("CLUSTER", "MYID").decode() for n in (home, target)]
    cli(["reshard", "127.0.0.1:%d" % home.port, "--cluster-from", ids[0], "--cluster-to", ids[1],
         "--cluster-slots", "4000", "--cluster-yes"])
    wait(lambda: owns(target, slot), 30)
    assert home.r.dbsize() == 0
    assert target.digest("f") == digest and answers(target, "f") == said


def owns(node, slot):
    for line in node.r.execute_command("CLUSTER", "NODES").decode().splitlines():
        words = line.split()
        if "myself" in words[2]:
            return any(int(w.split("-")[0]) <= slot <= int(w.split("-")[-1])
                       for w in words[8:] if not w.startswith("["))
    return False
