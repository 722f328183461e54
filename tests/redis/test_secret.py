"""The key of the server's family stays among those who may have it: what clients get does not tell it."""
import os
import signal
import subprocess
import tempfile

import pytest
import redis

from conftest import TAMIS, free_port, wait
from large import loadchunks, scandump
from sets import Load, names
from test_bytes import pull
from test_hostile import sealed
from test_keys import refused
from test_replica import same, synced

MINE, OTHER = "00112233445566778899aabbccddeeff", "ff" * 16
# A tenant, as a page of ours or of the server's would have him: all but what is administration.
TENANT = ["on", ">secret", "~*", "&*", "+@all", "-@admin", "-@dangerous"]


def key_of(r):
    return r.config_get("tamis.family-key")["tamis.family-key"]


def tenant(server, rules=TENANT):
    server.r.execute_command("ACL", "SETUSER", "tenant", "reset", *rules)
    return server.client(username="tenant", password="secret")


def values(r):
    """Of every sort; what they are called."""
    load = Load(r)
    load.create()
    load.run(300)
    r.execute_command("TAMIS.XRESERVE", "{v}records", 0.01, 100, "ATTRIBUTES", 2, "a", "b", "DELETABLE",
                      "VERIFIER", "table")
    for i in range(50):
        r.execute_command("TAMIS.XADD", "{v}records", "a=%d" % i, "b=%d" % (i % 7))
    r.execute_command("TAMIS.RESERVE", "{v}large", 0.001, 2000000)  # in pieces
    r.execute_command("TAMIS.MADD", "{v}large", *range(1000))
    assert r.memory_usage("{v}large") > 2 << 20
    r.config_set("tamis.work-limit", 2 << 20)
    return names() + ["{v}records", "{v}large"]


def dumps(r, key, *words):
    """All that the commands for it reply, each in its own pieces."""
    said = []
    for command in ("TAMIS.DUMP", "TAMIS.SCANDUMP", "BF.SCANDUMP"):
        pieces, cursor = [], 0
        while cursor or not pieces:
            cursor, piece = r.execute_command(command, key, cursor, *words)
            pieces.append(piece)
        said.append(b"".join(pieces))
    return said


def test_dumps_do_not_tell_it(servers):
    """A tenant dumps values of his own, in all ways there are."""
    server = servers(**{"tamis.family-key": MINE})
    keys, r = values(server.r), tenant(server)
    for name in keys:
        for data in dumps(r, name):
            assert bytes.fromhex(MINE) not in data and data[72:88] == bytes(16), name
            assert data[88:104] == dumps(server.r, name, "WITHKEY")[0][88:104]  # the check


def test_who_may_have_it(servers):
    server = servers(**{"tamis.family-key": MINE})
    r = server.r
    r.execute_command("TAMIS.ADD", "f", "x")
    for rules, told in ((TENANT, False), (TENANT + ["+config|get"], True), (["allcommands"], True),
                        (["+@all", "-config"], False), (["+@all", "-@dangerous"], False),
                        (["+@all", "-config|get"], False), (["+tamis.dump", "+bf.scandump"], False),
                        (["+tamis.dump", "+bf.scandump", "+tamis.publish", "+@admin"], True)):
        user = tenant(server, ["on", ">secret", "~*"] + rules)
        for words in (["TAMIS.DUMP", "f", 0], ["BF.SCANDUMP", "f", 0]):
            assert len(user.execute_command(*words)) == 2
            if told:
                assert bytes.fromhex(MINE) in user.execute_command(*words, "WITHKEY")[1]
            else:
                assert "WITHKEY needs the permission" in refused(user, *words, "WITHKEY")
                with pytest.raises(redis.exceptions.NoPermissionError):
                    user.execute_command("CONFIG", "GET", "tamis.family-key")
        user.close()
    # One cannot go on with another's, nor ask for it by a script, or in a transaction.
    cursor, _ = r.execute_command("BF.SCANDUMP", "f", 0, "WITHKEY")
    user = tenant(server)
    for at in (cursor, cursor >> 40 << 40):
        assert "dump has ended" in refused(user, "BF.SCANDUMP", "f", at)
        assert "dump has ended" in refused(user, "TAMIS.DUMP", "f", at)
    script = "return redis.call('TAMIS.DUMP', KEYS[1], 0, 'WITHKEY')"
    assert "WITHKEY needs the permission" in refused(user, "EVAL", script, 1, "f")
    assert "WITHKEY needs the permission" in refused(r, "EVAL", script, 1, "f")
    pipe = user.pipeline()
    pipe.execute_command("TAMIS.DUMP", "f", 0, "WITHKEY")
    with pytest.raises(redis.ResponseError, match="WITHKEY needs the permission"):
        pipe.execute()
    assert "wrong number of arguments" in refused(r, "TAMIS.DUMP", "f", 0, "KEY")
    assert "wrong number of arguments" in refused(r, "BF.SCANDUMP", "f", 0, "x")


def master_and_replica(servers, **options):
    """The options are the master's: a replica with a file of its own cannot stop while it writes it."""
    master = servers(port=free_port(), **options)
    replica = servers(port=free_port(), replicaof="127.0.0.1 %d" % master.port)
    wait(lambda: replica.r.info("replication")["master_link_status"] == "up", 30)
    return master, replica


def rewrite(r):
    r.bgrewriteaof()
    wait(lambda: r.info("persistence")["aof_rewrite_in_progress"] == 0, 60)


def push(r, key, data, *words, size=100000):
    for i in range(0, len(data), size):
        r.execute_command("TAMIS.LOAD", key, i, data[i:i + size], *(words if i == 0 else ()))


def test_dumps_without_it_load_under_the_same_key(servers):
    server, twin = servers(**{"tamis.family-key": MINE}), servers(**{"tamis.family-key": MINE})
    for name in values(server.r):
        digest = server.digest(name)
        push(twin.r, name, pull(server.r, name))
        assert twin.digest(name) == digest, name
        if "records" not in name:
            loadchunks(twin.r, "c", scandump(server.r, name))
            assert twin.digest("c") == digest
            twin.r.delete("c")


def test_another_key_is_refused_with_the_first_piece(servers):
    """Before anything is made of it: even if the first piece is as short as it may be."""
    server, other = servers(**{"tamis.family-key": MINE}), servers(**{"tamis.family-key": OTHER})
    for name in values(server.r):
        data = pull(server.r, name)
        for size in (128, 1000, len(data)):
            if size > 2 << 20:
                continue
            message = refused(other.r, "TAMIS.LOAD", "x", 0, data[:size])
            assert "another family than this server's (tamis.family-key)" in message
        chunk = server.r.execute_command("BF.SCANDUMP", name, 0)
        assert "received bad data: it was saved without its key" in refused(other.r, "BF.LOADCHUNK", "x",
                                                                            *chunk)
        assert other.r.keys() == []
        push(other.r, name, data, "KEY", MINE)  # who has the key can say it
        assert other.digest(name) == server.digest(name)
        other.r.flushall()
        push(other.r, name, pull_with_key(server.r, name))
        assert other.digest(name) == server.digest(name)
        other.r.flushall()
    assert refused(other.r, "TAMIS.LOAD", "x", 0, data[:127]) == "received bad data"
    assert "KEY is 32" in refused(other.r, "TAMIS.LOAD", "x", 0, data[:1000], "KEY", "ab")


def pull_with_key(r, key):
    return dumps(r, key, "WITHKEY")[0]


def test_the_command_line_asks_with_a_key_file(servers, tmp_path):
    server = servers()
    server.r.execute_command("TAMIS.MADD", "f", "ann", "bob")
    (tmp_path / "f.tamis").write_bytes(pull(server.r, "f"))
    (tmp_path / "key").write_text(key_of(server.r))
    ask = [TAMIS, "check", str(tmp_path / "f.tamis")]
    assert subprocess.run(ask, input=b"ann\n", capture_output=True).returncode == 2
    done = subprocess.run(ask + ["--key-file", str(tmp_path / "key")], input=b"ann\nzoe\n",
                          capture_output=True)
    assert done.stdout == b"ann\n", done.stderr


# ---- a value that came without its key is like any other -----------------------------------------

def test_what_came_without_it_is_saved_with_it(servers):
    """By RDB and AOF files and a replica, where the key is known from nothing else."""
    source = servers()
    source.r.execute_command("TAMIS.MADD", "f", *range(1000))
    data, key, digest = pull(source.r, "f"), key_of(source.r), source.digest("f")
    for options in ({}, {"appendonly": "yes", "aof_use_rdb_preamble": "no"}, {"appendonly": "yes"}):
        master, replica = master_and_replica(servers, **options)
        r = master.r
        r.execute_command("TAMIS.LOAD", "part", 0, data[:200], "KEY", key)
        push(r, "f", data, "KEY", key)
        assert master.digest("f") == digest
        same(master, replica, ["f", "part"])
        for how in ("", "REWRITE"):
            if how and options:
                rewrite(r)
            elif not options:
                wait(r.save)  # when none is made for the replica
            replica.stop()
            master.restart()
            replica.start()
            r = master.r
            assert master.digest("f") == digest
            same(master, replica, ["f", "part"])
        for i in range(200, len(data), 5000):
            assert r.execute_command("TAMIS.LOAD", "part", i, data[i:i + 5000]) >= 0
        assert master.digest("part") == digest
        same(master, replica, ["f", "part"])


def test_an_unknown_key_travels(servers):
    """A master without values: its replica and its file learn the key with the first piece."""
    master, replica = master_and_replica(servers, appendonly="yes", appendfsync="no")
    master.r.execute_command("TAMIS.ADD", "f", "x")
    data, key = pull(master.r, "f"), key_of(master.r)
    master.r.flushall()
    synced(master, replica)
    replica.restart()
    synced(master, replica)
    push(master.r, "g", data, size=300)
    same(master, replica, ["g"])
    assert key_of(replica.r) == key
    master.restart(signal.SIGKILL)
    assert master.r.execute_command("TAMIS.EXISTS", "g", "x") == 1
    assert key_of(master.r) == key


# ---- the key of the server is not one that a client chose ----------------------------------------

def plant(user, data):
    """Values of a family of his own, by all commands that make some."""
    user.execute_command("TAMIS.RESERVE", "a", 0.01, 100, "KEY", MINE)
    user.execute_command("TAMIS.RESERVE", "b", 0.01, 100, "FAMILY", MINE)
    user.execute_command("TAMIS.XRESERVE", "c", 0.01, 100, "ATTRIBUTES", 1, "a", "FAMILY", MINE)
    user.execute_command("TAMIS.INSERT", "d", "FAMILY", MINE, "ITEMS", "x")
    push(user, "e", data, "FAMILY", MINE)


def is_free(server):
    """Its key is its own, and of no value."""
    return key_of(server.r) != MINE and server.r.info("tamis")["tamis_family"] == "random"


@pytest.fixture(scope="module")
def foreign():
    """The bytes of a filter that has its key, which is not the server's."""
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/key", "w") as out:
            out.write(MINE)
        subprocess.run([TAMIS, "create", folder + "/f.tamis", "--capacity", "100", "--key-file",
                        folder + "/key"], check=True)
        with open(folder + "/f.tamis", "rb") as made:
            data = made.read()
    assert data[72:88] == bytes.fromhex(MINE)
    return data


@pytest.mark.parametrize("how", ["rdb", "aof", "rewrite"])
def test_a_client_cannot_plant_one(servers, foreign, how):
    """What was saved is loaded; what others make afterwards is not of his family."""
    server = servers(**{} if how == "rdb" else {"appendonly": "yes", "aof_use_rdb_preamble": "no"})
    plant(tenant(server), foreign)
    if how == "rdb":
        server.r.save()
    elif how == "rewrite":
        rewrite(server.r)
    server.restart()
    assert sorted(server.r.keys()) == [b"a", b"b", b"c", b"d", b"e"] and is_free(server)


def test_nor_on_a_replica(servers, foreign):
    master, replica = master_and_replica(servers)
    plant(tenant(master), foreign)
    synced(master, replica)
    assert is_free(replica) and len(replica.r.keys()) == 5
    replica.restart()  # by the file of the master
    synced(master, replica)
    assert is_free(replica) and len(replica.r.keys()) == 5
    master.r.execute_command("TAMIS.ADD", "ours", "x")
    synced(master, replica)
    assert key_of(replica.r) == key_of(master.r)


def test_nor_with_a_mark_that_he_forged(servers):
    """RESTORE brings it, and is replayed from the append-only file, and on a replica."""
    master, replica = master_and_replica(servers, appendonly="yes", appendfsync="no")
    master.r.config_set("rdbcompression", "no")
    master.r.execute_command("TAMIS.RESERVE", "a", 0.01, 1000, "KEY", MINE)
    payload = master.r.dump("a")
    assert payload[10:12] == b"\x02\x01"
    forged = sealed(payload[:11] + b"\x40\x41" + payload[12:-10], payload[-10:-8])
    master.r.flushall()
    tenant(master, TENANT + ["+restore"]).restore("a", 0, forged)
    synced(master, replica)
    assert is_free(replica) and is_free(master)
    master.restart(signal.SIGKILL)
    assert master.r.keys() == [b"a"] and is_free(master)
    master.r.set("s", "x")
    assert master.r.execute_command("DEBUG", "RELOAD") == b"OK"
    assert is_free(master)


def test_what_the_server_made_goes_on(servers):
    """Its family stays that of the values it has, through files of each sort."""
    for options in ({}, {"appendonly": "yes"}, {"appendonly": "yes", "aof_use_rdb_preamble": "no"}):
        for command in (["TAMIS.ADD", "f", "x"], ["TAMIS.XRESERVE", "f", 0.1, 9, "ATTRIBUTES", 1, "a"]):
            server = servers(**options)
            key = key_of(server.r)
            server.r.execute_command("TAMIS.RESERVE", "other", 0.01, 100, "KEY", MINE)
            server.r.execute_command(*command)
            for how in ("", "rewrite"):
                if not options:
                    server.r.save()
                elif how:
                    rewrite(server.r)
                server.restart()
                assert key_of(server.r) == key
                assert server.r.info("tamis")["tamis_family"] == "adopted"


# ---- what else could tell it ---------------------------------------------------------------------

def test_published_messages_do_not_tell_it(servers):
    """Neither the stream nor the snapshot, unless someone who may have the key says WITHKEY."""
    server = servers(**{"tamis.family-key": MINE})
    r, user, secret = server.r, tenant(server), bytes.fromhex(MINE)
    user.execute_command("TAMIS.MADD", "f", *range(100))
    assert "WITHKEY needs the permission" in refused(user, "TAMIS.PUBLISH", "f", "s", "me", "WITHKEY")
    assert r.keys() == [b"f"]
    user.execute_command("TAMIS.PUBLISH", "f", "s", "me", "MISS", 0.01)
    user.execute_command("TAMIS.MADD", "f", *range(100, 200))
    said = b"".join(user.lrange("{s}:snapshot:me", 0, -1)) + repr(user.xrange("s")).encode()
    assert secret not in said and user.xlen("s") > 1
    assert repr(secret)[2:-1].encode() not in said
    r.execute_command("TAMIS.PUBLISH", "f", "s", "me", "MISS", 0.01, "WITHKEY")
    assert secret in b"".join(r.lrange("{s}:snapshot:me", 0, -1))
    for _ in range(2):  # that it does is saved, and goes to replicas
        assert r.execute_command("DEBUG", "RELOAD") == b"OK"
        r.delete("{s}:snapshot:me")
        wait(lambda: r.exists("{s}:snapshot:me"))
        assert secret in b"".join(r.lrange("{s}:snapshot:me", 0, -1))


def test_published_with_its_key_on_replicas_and_in_files(servers):
    master, replica = master_and_replica(servers, appendonly="yes", aof_use_rdb_preamble="no")
    master.r.execute_command("TAMIS.MADD", "f", *range(100))
    master.r.execute_command("TAMIS.PUBLISH", "f", "s", "me", "WITHKEY")
    secret = bytes.fromhex(key_of(master.r))
    for again in (False, True):
        if again:
            rewrite(master.r)
        master.restart()
        master.r.delete("{s}:snapshot:me")
        wait(lambda: master.r.exists("{s}:snapshot:me"))
        assert secret in b"".join(master.r.lrange("{s}:snapshot:me", 0, -1))
    synced(master, replica)
    replica.r.replicaof("NO", "ONE")
    replica.r.delete("{s}:snapshot:me")
    wait(lambda: replica.r.exists("{s}:snapshot:me"))
    assert secret in b"".join(replica.r.lrange("{s}:snapshot:me", 0, -1))


def test_logs_do_not_tell_it(servers, foreign):
    """Neither SLOWLOG and MONITOR, of commands that have one, on a replica too, nor the log."""
    master, replica = master_and_replica(servers, slowlog_log_slower_than=0, slowlog_max_len=1000, loglevel="debug")
    heard = []
    watching = [s.client() for s in (master, replica)]
    monitors = [w.monitor() for w in watching]
    for m in monitors:
        m.__enter__()
    plant(master.r, foreign)
    key = key_of(master.r)
    master.r.execute_command("TAMIS.ADD", "ours", "x")
    master.r.execute_command("TAMIS.LOAD", "copy", 0, dumps(master.r, "ours", "WITHKEY")[0])
    master.r.execute_command("BF.LOADCHUNK", "again", 1, foreign)
    master.r.set("end", "end")
    synced(master, replica)
    for m in monitors:
        while "'SET', 'end'" not in repr(heard[-1:]) and "SET end" not in repr(heard[-1:]):
            heard.append(m.next_command()["command"])
        heard.append("")
    for w in watching:
        w.connection_pool.disconnect()
    texts = [repr(s.r.execute_command("SLOWLOG", "GET", 1000)) for s in (master, replica)]
    texts += heard
    for s in (master, replica):
        with open(s.folder + "/log") as log:
            texts.append(log.read())
    assert any("TAMIS.LOAD" in t for t in texts[:2]) and any("TAMIS.LOAD" in h for h in heard)
    for text in texts:
        for k in (MINE, key):
            assert k not in text.lower()
            assert bytes.fromhex(k) not in text.encode("latin-1", "ignore")
            assert repr(bytes.fromhex(k))[2:-1] not in text


def copies(server, key, dumped):
    """How often the bytes of the key are in the server's memory, or in that part which core dumps have."""
    found, start, end = 0, 0, 0
    with open("/proc/%d/smaps" % server.process.pid) as maps, \
            open("/proc/%d/mem" % server.process.pid, "rb", 0) as mem:
        for line in maps:
            first = line.split()[0]
            if "-" in first:
                start, end = [int(x, 16) for x in first.split("-")]
                own = line.split()[1].startswith("rw")
            elif first == "VmFlags:" and own and not (dumped and "dd" in line.split()):
                mem.seek(start)
                found += mem.read(end - start).count(bytes.fromhex(key))
    return found


@pytest.mark.skipif(os.environ.get("TAMIS_VARIANT") == "asan",
                    reason="the sanitizer's shadow memory is too large to be read")
def test_dumps_of_the_server_have_no_key(servers):
    """No copy of a key's bytes is where a core dump would have it, whichever way it came or went; and no
    copy at all is left when nothing has it. The hexadecimal digits of commands and of CONFIG are the
    server's, and so are the bytes it sends and saves."""
    server = servers()
    r = server.r
    other = os.urandom(16).hex()
    r.config_set("tamis.family-key", MINE)
    assert key_of(r) == MINE  # the module keeps what it showed
    r.execute_command("TAMIS.RESERVE", "f", "0.01", 1000)
    r.execute_command("TAMIS.XRESERVE", "x", "0.01", 1000, "ATTRIBUTES", 2, "a", "b")
    r.execute_command("TAMIS.RESERVE", "o", "0.01", 1000, "HASH", "xxh3", "KEY", other)
    r.execute_command("TAMIS.INSERT", "i", "KEY", other, "ITEMS", "a", "b")
    r.execute_command("TAMIS.RESERVE", "l", "0.01", 1000, "LIKE", "o")
    assert r.execute_command("TAMIS.DUMP", "f", 0)
    for key in (MINE, other):
        assert copies(server, key, False) > 0
        assert copies(server, key, True) == 0
    r.config_set("tamis.family-key", "00" * 16)
    r.flushall()
    for key in (MINE, other):
        assert copies(server, key, False) == 0
