"""A follower that is asked over HTTP: its answers are those of the copies, its doubts too, and nothing that
a client does keeps it from following."""
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import urllib.parse

import pytest

from hosts import BEAT, TAMIS, WAIT, Origin, locate, wait_for
from serving import Connection, Follower
from troubles import Clocks

pytestmark = pytest.mark.skipif(not shutil.which("redis-server"), reason="no redis-server")


def of_the_files(world, folder, keys):
    """As tamis locate says without asking the follower."""
    copy = str(world.folder / "files")

    def copied():
        shutil.rmtree(copy, ignore_errors=True)
        try:
            shutil.copytree(str(world.folder / folder), copy)
        except shutil.Error:
            pass        # the follower replaced a file meanwhile
        return os.path.exists(copy + "/status")
    wait_for(copied, "a copy of the folder")
    with open(copy + "/status") as f:
        lines = f.readlines()
    assert any(line.startswith("serve unix:/") for line in lines)
    with open(copy + "/status", "w") as f:
        f.writelines(line for line in lines if not line.startswith("serve "))
    return locate(world, "files", keys)


def two_origins(world, beat=10):
    """With a beat of ten seconds no copy is in doubt because the machine is busy."""
    world.start_server()
    origins = [Origin(world, "a", beat), Origin(world, "b", beat)]
    follower = Follower(world, "copies")
    for origin in origins:
        origin.feed(0, 2000)
    origins[1].process.stdin.write(b"+a-7\n+two words\n+caf\xc3\xa9\n+\"q\\\n")
    origins[1].process.stdin.flush()
    wait_for(lambda: all("b" in follower.locate([key])[key][0] for key in ("a-7", "b-1999", "\"q\\")) and
             "a" in follower.locate(["a-1999"])["a-1999"][0], "the copies")
    return origins, follower


def test_answers_are_those_of_the_copies(world):
    origins, follower = two_origins(world)
    a, b = origins
    wait_for(lambda: follower.owners()["b"]["items"] >= 2004, "all of b")
    keys = (a.sample(100) + b.sample(100) + ["a-7", "two words", "café", "\"q\\", "none", "", "x" * 5000] +
            ["stranger-%d" % random.randrange(10**9) for _ in range(300)])
    keys = list(dict.fromkeys(keys))
    wait_for(lambda: of_the_files(world, "copies", keys[:-300]) == follower.locate(keys[:-300]),
             "the files of the copies")
    assert of_the_files(world, "copies", keys) == follower.locate(keys)
    assert follower.locate(["a-7"])["a-7"] == ({"a", "b"}, set())

    # one key, many keys, text, lines of JSON: the same answers
    for key in keys[:20] + ["two words", "café", "\"q\\", ""]:
        one = follower.json("/locate?key=" + urllib.parse.quote(key, safe=""))
        assert (set(one["owners"]), set(one["maybe"])) == follower.locate([key])[key]
        assert one["key"] == key and one["owners"] == sorted(one["owners"])
    body = "\n".join(keys).encode() + b"\n"
    status, text, headers = follower.ask("/locate", body, headers={
        "Content-Type": "text/plain", "Accept": "text/plain"})
    found = [key for key in keys if follower.locate([key])[key][0]]
    assert status == 200 and text.decode() == "".join(
        "%s\t%s\n" % (key, " ".join(sorted(follower.locate([key])[key][0]))) for key in found)
    assert int(headers["Tamis-Hit"]) == len(found) and headers["Tamis-Doubt"] == "0"
    _, text, _ = follower.ask("/locate", "\0".join(keys).encode(), headers={
        "Content-Type": "application/octet-stream", "Accept": "application/x-ndjson"})
    lines = [json.loads(line) for line in text.decode().splitlines()]
    assert [(line["key"], line["owners"], line["maybe"]) for line in lines] == \
        [(key, sorted(follower.locate([key])[key][0]), []) for key in keys]

    # what changes is there without a file being read, in the other direction too
    a.feed(a.n, 50)
    wait_for(lambda: all_located_there(follower, a), "new keys")
    a.feed(0, 50, "-")
    wait_for(lambda: "a" not in follower.locate(["a-3"])["a-3"][0], "removals")

    # metrics say what the owners' page says
    owners, metrics = follower.owners(), follower.metrics()
    assert set(owners) == {"a", "b"}
    for name, owner in owners.items():
        assert owner["state"] == "current" and not owner["doubt"]
        assert metrics["tamis_owner_version", 'owner="%s"' % name] == owner["version"]
        assert metrics["tamis_owner_items", 'owner="%s"' % name] == owner["items"]
        assert metrics["tamis_owner_member_miss_bound", 'owner="%s"' % name] == 0.01
        assert metrics["tamis_owner_doubt", 'owner="%s"' % name] == 0
        assert 0 <= metrics["tamis_owner_age_seconds", 'owner="%s"' % name] < 60
        assert 0 < owner["bytes"] <= metrics["tamis_owner_bytes_total", 'owner="%s"' % name]
    assert metrics["tamis_owners", 'state="current"'] == 2
    assert metrics["tamis_carrier_up", ""] == 1
    assert metrics["tamis_located_keys_total", ""] > 1000
    assert metrics["tamis_messages_total", ""] >= 4 and metrics["tamis_bytes_total", ""] > 1000
    buckets = [value for (name, _), value in metrics.items() if name == "tamis_locate_seconds_bucket"]
    assert buckets == sorted(buckets)
    assert buckets[-1] == metrics["tamis_locate_seconds_count", ""] > 50
    assert 0 < metrics["tamis_locate_seconds_sum", ""] < 600


def all_located_there(follower, origin):
    keys = ["%s-%d" % (origin.name, i) for i in range(origin.n - 50, origin.n)]
    return all(origin.name in sure for sure, _ in follower.locate(keys).values())


def test_doubt_is_shown(world):
    origins, follower = two_origins(world, BEAT)
    a, b = origins
    wait_for(lambda: follower.health()["status"] == "ok", "health")

    # the server stands still: within a beat nothing is promised any more, and the process answers on
    world.server.send_signal(signal.SIGSTOP)
    wait_for(lambda: follower.health()["status"] == "unavailable", "doubt")
    wait_for(lambda: follower.health()["cut_off"], "being cut off")
    health = follower.health()
    assert (health["owners"], health["current"], health["doubt"]) == (2, 0, 2)
    assert health["reached"] >= BEAT
    assert follower.locate(["a-7", "none"]) == {"a-7": (set(), {"a", "b"}), "none": (set(), {"a", "b"})}
    assert {owner["state"] for owner in follower.owners().values()} == {"stale"}
    metrics = follower.metrics()
    assert metrics["tamis_carrier_up", ""] == 0 and metrics["tamis_owner_doubt", 'owner="a"'] == 1
    world.server.send_signal(signal.SIGCONT)
    wait_for(lambda: follower.health()["status"] == "ok", "the server's return")

    # one origin is killed: the other still answers
    b.process.kill()
    b.process.wait()
    wait_for(lambda: follower.health()["status"] == "doubt", "the death of an origin")
    wait_for(lambda: follower.locate(["a-7"])["a-7"] == ({"a"}, {"b"}), "its doubt")
    wait_for(lambda: world.run("locate", "unix:copies.sock", "a-7", status=(0, 1)) == "a-7\ta ?b\n", "a from text")
    wait_for(lambda: world.run("locate", "copies", "none", "--maybe") == "none\t?b\n", "b, which may have all")
    wait_for(lambda: world.run("locate", "unix:copies.sock", "none", status=(1,)) == "none\t?b\n", "only b")

    # two origins with one name: contested, until one of them ended; the older one ends by itself when
    # it looks at the server, so it is stopped while the other begins
    a.process.send_signal(signal.SIGSTOP)
    shutil.copy(str(world.folder / "a.tamis"), str(world.folder / "again.tamis"))
    again = world.start(TAMIS, "publish", "again.tamis", "--to", world.url, "--as", "a", "--stay",
                        "--beat", "%dms" % (BEAT * 1000), stdin=subprocess.PIPE,
                        stderr=subprocess.DEVNULL)
    epoch = follower.owners()["a"]["epoch"]
    wait_for(lambda: follower.owners()["a"]["epoch"] != epoch, "the later origin")
    a.process.send_signal(signal.SIGCONT)
    wait_for(lambda: follower.owners()["a"]["state"] == "contested" or a.process.poll() is not None,
             "two of one name")
    assert a.process.wait(timeout=WAIT) == 2
    wait_for(lambda: follower.owners()["a"]["state"] == "current", "one of them left")
    assert again.poll() is None

    # the server is gone for good
    world.server.kill()
    world.server.wait()
    wait_for(lambda: follower.health()["status"] == "unavailable", "the server's death")
    follower.process.send_signal(signal.SIGTERM)
    assert follower.process.wait(timeout=WAIT) == 0
    assert not os.path.exists(follower.path)


def test_a_follower_whose_machine_slept_doubts_when_it_wakes(world):
    clocks = Clocks(world.folder, "both")       # an hour passes for the origin, too
    world.start_server()
    origin = Origin(world, "a", 60, clocks.env)
    follower = Follower(world, "copies", env=clocks.env)
    origin.feed(0, 1000)
    wait_for(lambda: all_located_there(follower, origin), "the copy")
    world.server.send_signal(signal.SIGSTOP)    # nothing comes in before the first question
    follower.process.send_signal(signal.SIGSTOP)
    clocks.set(0, 3600)
    follower.process.send_signal(signal.SIGCONT)
    assert follower.locate(["a-1"])["a-1"] == (set(), {"a"})
    world.server.send_signal(signal.SIGCONT)
    wait_for(lambda: all_located_there(follower, origin), "the next heartbeat")


def test_the_bound_itself_publishes_and_memory_answers(world):
    """Heartbeats, the age of changes and the disk come once an hour, if they come."""
    world.start_server()
    world.run("create", "a.tamis")
    origin = world.start(TAMIS, "publish", "a.tamis", "--to", world.url, "--as", "a", "--stay", "--beat", "1h",
                         stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    follower = Follower(world, "copies", every="1h")
    fed = 0

    def right():
        missed = 0
        for i in range(0, fed, 5000):
            keys = ["a-%d" % j for j in range(i, min(fed, i + 5000))]
            missed += sum("a" not in sure for sure, _ in follower.locate(keys).values())
        return missed <= 0.01 * fed
    for burst in [10000, 3000] + 20 * [200] + [4000]:
        origin.stdin.write("".join("+a-%d\n" % i for i in range(fed, fed + burst)).encode())
        origin.stdin.flush()
        fed += burst
        wait_for(right, "99 %% of %d keys" % fed)
    assert follower.owners()["a"]["member_miss"] == 0.01


def error_of(answer, status):
    got, text, headers = answer
    assert got == status, (got, text)
    assert headers["Content-Type"] == "application/json"
    error = json.loads(text)
    assert list(error) == ["error"] and error["error"] and "\n" not in error["error"]
    return error["error"]


def test_bad_requests_get_one_clear_error(world):
    follower = Follower(world, "copies", "file:exchange")
    ask = follower.ask
    assert "/locate" in error_of(ask("/"), 404)
    assert "/locate" in error_of(ask("/locate/"), 404)
    assert "key=KEY" in error_of(ask("/locate"), 400)
    assert "'kex'" in error_of(ask("/locate?kex=1"), 400)
    assert "'kex'" in error_of(ask("/locate?key=1&kex=1"), 400)
    error = ask("/owners", b"", "POST")
    assert "GET" in error_of(error, 405) and error[2]["Allow"] == "GET, HEAD"
    assert "POST" in error_of(ask("/locate", method="DELETE"), 405)
    for body in ["", "{", "[", "[1]", "[\"a\"", "[\"a\",]", "[\"a\"] x", "{\"keys\": []", "\"a\"", "{}",
                 "{\"key\": [\"a\"]}", "{\"keys\": \"a\"}", "[\"\\x\"]", "[\"a\nb\"]", "[\"\\u12\"]",
                 "[[\"a\"]]", "{\"keys\": [\"a\"], \"more\": 1}", "null"]:
        assert "keys" in error_of(ask("/locate", body), 400), body
    assert "one place" in error_of(ask("/locate?key=a", "[\"b\"]"), 400)
    assert "10000" in error_of(ask("/locate", json.dumps(["k"] * 10001)), 413)
    assert len(follower.json("/locate", ["k"] * 10000)["answers"]) == 10000
    long = json.dumps(["k" * 2000] * 600).encode()
    assert "bytes" in error_of(ask("/locate", long), 413)
    pieces = (long[i:i + 10000] for i in range(0, len(long), 10000))
    connection = Connection(follower.path)
    connection.request("POST", "/locate", body=pieces, encode_chunked=True,
                       headers={"Transfer-Encoding": "chunked"})
    answer = connection.getresponse()
    assert "bytes" in error_of((answer.status, answer.read(), answer.headers), 413)

    connection = Connection(follower.path)
    connection.putrequest("POST", "/locate")
    connection.putheader("Content-Length", str(10**12))
    connection.endheaders()
    answer = connection.getresponse()
    assert "bytes" in error_of((answer.status, answer.read(), answer.headers), 413)

    # bytes that are not text come back as such, and are asked as they are
    assert follower.json("/locate?key=%ff%00x")["key"] == "\ufffd\x00x"
    assert follower.json("/locate", ["\ud800"])["answers"][0]["key"]
    assert ask("/healthz", method="HEAD")[:2] == (503, b"")
    metrics = follower.metrics()
    assert metrics["tamis_http_requests_total", 'code="4xx"'] > 20


def test_clients_that_are_slow_or_hostile_do_not_keep_it_from_following(world):
    origins, follower = two_origins(world)
    random_bytes = random.Random(7)
    held = []
    for i in range(150):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(60)
        s.connect(follower.path)
        try:
            if i % 5 == 0:
                s.sendall(b"GET /locate?key=a HTTP/1.1\r\nHo")             # never ends
            elif i % 5 == 1:
                s.sendall(b"POST /locate HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n[")
            elif i % 5 == 2:
                s.sendall(random_bytes.randbytes(3000) + b"\r\n\r\n")
            elif i % 5 == 3:                                              # asks, and never reads
                s.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 200)
            else:
                s.sendall(b"GET /locate?key=" + b"k" * 200_000 + b" HTTP/1.1\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            pass                                                          # refused: as good
        held.append(s)
    a = origins[0]
    for _ in range(3):                                                    # and it follows
        a.feed(a.n, 50)
        wait_for(lambda: all_located_there(follower, a), "new keys beside slow clients")
    assert follower.health()["status"] in ("ok", "doubt")
    assert follower.metrics()["tamis_http_connections", ""] > 50
    for s in held:
        s.close()
    wait_for(lambda: follower.metrics()["tamis_http_connections", ""] < 5, "the connections to end")
    assert follower.process.poll() is None


def test_locate_asks_a_follower_that_serves(world):
    origins, follower = two_origins(world)

    def asked():
        return follower.metrics()["tamis_located_keys_total", ""]
    status = world.folder / "copies" / "status"
    wait_for(lambda: status.exists() and "serve unix:/" in status.read_text(), "the status")
    before = asked()
    assert world.run("locate", "copies", "a-1", "b-1", "a-7") == "a-1\ta\nb-1\tb\na-7\ta b\n"
    assert asked() == before + 3
    lines = "".join("a-%d\n" % i for i in range(2000)) + "\n\xff\n"
    got = world.run("locate", "copies", input=lines)
    assert asked() == before + 3 + 2002
    assert got.count("\n") >= 2000 and world.run("locate", "unix:copies.sock", input=lines) == got
    assert world.run("locate", "unix:copies.sock", "--json", "a-7") == \
        '{"key": "a-7", "owners": ["a", "b"], "maybe": []}\n'
    assert world.run("locate", "unix:copies.sock", "-0", input="a-7\0x\ny\0") == "a-7\ta b\0"
    assert world.run("locate", "unix:copies.sock", "--owners").startswith("a\t")
    assert len(world.run("locate", "unix:copies.sock", "--owners", "--json").splitlines()) == 2

    # its address is taken
    done = subprocess.run([TAMIS, "follow", world.url, "-o", "other", "--serve", "unix:copies.sock"],
                          cwd=world.folder, capture_output=True, text=True, timeout=WAIT)
    assert done.returncode == 2 and "Address already in use" in done.stderr

    # killed: the files answer, in doubt; and what was asked for at its address is an error
    follower.process.kill()
    follower.process.wait()
    wait_for(lambda: locate(world, "copies", ["a-1"])["a-1"] == (set(), {"a", "b"}), "doubt")
    assert "unix:copies.sock" in subprocess.run(
        [TAMIS, "locate", "unix:copies.sock", "a-1"], cwd=world.folder, capture_output=True,
        text=True, timeout=WAIT).stderr

    # another follower, without these origins, has its address now: it is not asked for this folder
    other = world.start(TAMIS, "follow", "file:nobody", "-o", "other", "--serve", "unix:copies.sock",
                        stderr=subprocess.DEVNULL)
    wait_for(follower_listens(follower), "the other follower")
    assert locate(world, "copies", ["a-1"])["a-1"] == (set(), {"a", "b"})
    assert world.run("locate", "unix:copies.sock", "a-1", status=(1,)) == ""
    other.send_signal(signal.SIGTERM)
    other.wait()


def follower_listens(follower):
    def there():
        try:
            return follower.ask("/healthz")[0] == 503
        except (FileNotFoundError, ConnectionRefusedError):
            return False
    return there


def test_a_port_is_on_this_machine_unless_told_otherwise(world):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    world.start(TAMIS, "follow", "file:exchange", "-o", "copies", "--serve", str(port),
                stderr=subprocess.DEVNULL)

    def there():
        try:
            socket.create_connection(("127.0.0.1", port), timeout=60).close()
        except ConnectionRefusedError:
            return False
        return True
    wait_for(there, "the port")
    listening = open("/proc/net/tcp").read()
    assert "0100007F:%04X 00000000:0000 0A" % port in listening
    assert "00000000:%04X 00000000:0000 0A" % port not in listening
    assert world.run("locate", "http://127.0.0.1:%d" % port, "x", status=(1,)) == ""
    for bad in ["unix:", "unix:" + "x" * 200, "70000", "host", "127.0.0.1:", ":x", "http://127.0.0.1:1/x"]:
        done = subprocess.run([TAMIS, "follow", "file:exchange", "-o", "c2", "--serve", bad],
                              cwd=world.folder, capture_output=True, text=True, timeout=WAIT)
        assert done.returncode == 2 and "give unix:PATH" in done.stderr, bad
