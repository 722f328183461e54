"""Replicas between processes: origins, followers and a real redis-server that come and go.

A sample of the keys is asked again and again, whatever happens: a key that an origin has had for a
while is located, or the origin is shown as in doubt. In a long run with 10 million keys and a
partition of 20 seconds.
"""
import os
import random
import shutil
import signal
import socket
import subprocess
import time

import pytest

TAMIS = os.environ.get("TAMIS", "tamis")
LONG = os.environ.get("TAMIS_LONG") == "1"
KEYS = 10_000_000 if LONG else 30_000
PARTITION = 20 if LONG else 3
BEAT, LEASE = (2, 6) if LONG else (0.4, 1.2)
WAIT = 600 if LONG else 180

pytestmark = pytest.mark.skipif(not shutil.which("redis-server"), reason="no redis-server")


class World:
    def __init__(self, folder):
        self.folder = folder
        self.processes = []
        self.server = None
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.url = "redis://127.0.0.1:%d/hosts" % self.port

    def start(self, *arguments, **more):
        process = subprocess.Popen(arguments, cwd=self.folder, **more)
        self.processes.append(process)
        return process

    def run(self, *arguments, status=(0,), **more):
        done = subprocess.run([TAMIS, *arguments], cwd=self.folder, capture_output=True, text=True,
                              timeout=WAIT, **more)
        assert done.returncode in status, done.stderr
        return done.stdout

    def start_server(self):
        self.server = self.start("redis-server", "--port", str(self.port), "--bind", "127.0.0.1",
                                 "--dir", str(self.folder), "--save", "", "--appendonly", "no",
                                 stdout=subprocess.DEVNULL)
        wait_for(lambda: self.redis("PING") == "PONG", "the server")

    def redis(self, *command):
        done = subprocess.run(["redis-cli", "-p", str(self.port), *command], capture_output=True,
                              text=True, timeout=60)
        return done.stdout.strip()

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()


class Origin:
    """A process that is fed; it knows which keys it was given."""

    def __init__(self, world, name):
        self.world, self.name, self.n = world, name, 0
        world.run("create", name + ".tamis", "--capacity", str(KEYS), "--fpp", "1e-6",
                  "--deletable", *([] if name == "a" else ["--like", "a.tamis"]))
        self.start()

    def start(self):
        self.process = self.world.start(
            TAMIS, "publish", self.name + ".tamis", "--to", self.world.url, "--as", self.name,
            "--beat", "%dms" % (BEAT * 1000), "--stay", "--save", "60s" if LONG else "1s",
            "--max-age", "5s" if LONG else "300ms", "--linger", "5s",
            stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def feed(self, first, n, sign="+"):
        lines = "".join("%s%s-%d\n" % (sign, self.name, i) for i in range(first, first + n))
        self.process.stdin.write(lines.encode())
        self.process.stdin.flush()
        if sign == "+":
            self.n = max(self.n, first + n)

    def sample(self, n=60):
        return ["%s-%d" % (self.name, random.randrange(self.n)) for _ in range(n)]


def wait_for(condition, what, seconds=WAIT):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("%s: not within %d s" % (what, seconds))


def locate(world, folder, keys):
    """key -> (owners, owners in doubt)"""
    out = world.run("locate", folder, *keys, status=(0, 1))
    answers = {key: (set(), set()) for key in keys}
    for line in out.splitlines():
        key, _, names = line.partition("\t")
        for name in names.split():
            answers[key][name.startswith("?")].add(name.lstrip("?"))
    return answers


def never_denied(world, folder, origins):
    """Outside of the bound: of keys long known, none is denied without doubt."""
    for origin in origins:
        answers = locate(world, folder, origin.sample())
        denied = [key for key, (sure, doubt) in answers.items()
                  if origin.name not in sure and origin.name not in doubt]
        assert not denied, denied[:5]


def has_copies(world, folder):
    """Until the first came, a question is refused."""
    return subprocess.run([TAMIS, "locate", folder, "x"], cwd=world.folder, capture_output=True,
                          timeout=WAIT).returncode < 2


def all_located(world, folder, origins):
    for origin in origins:
        last = ["%s-%d" % (origin.name, i) for i in range(max(0, origin.n - 20), origin.n)]
        for sure, _ in locate(world, folder, last + origin.sample(20)).values():
            if origin.name not in sure:
                return False
    return True


def follow(world, folder):
    return world.start(TAMIS, "follow", world.url, "-o", folder, "--every",
                       "1s" if LONG else "100ms", stderr=subprocess.DEVNULL)


@pytest.fixture
def world(tmp_path):
    random.seed(int(os.environ.get("TAMIS_SEED", "7"), 0))
    w = World(tmp_path)
    yield w
    w.end()


def test_copies_converge_through_partitions_and_deaths(world):
    world.start_server()
    origins = [Origin(world, "a"), Origin(world, "b")]
    a, b = origins
    folders = ["one", "two"]
    followers = {folder: follow(world, folder) for folder in folders}
    for origin in origins:
        origin.feed(0, KEYS // 2)

    def converged():
        return all(all_located(world, folder, origins) for folder in folders)
    wait_for(lambda: all(has_copies(world, folder) for folder in folders), "any copies")
    wait_for(converged, "the first copies")

    # a partition: the server does not answer, and both sides go on
    world.server.send_signal(signal.SIGSTOP)
    until = time.monotonic() + PARTITION
    a.feed(a.n, 200)
    while time.monotonic() < until:
        for folder in folders:
            never_denied(world, folder, [b])  # nothing was added there
        time.sleep(0.1)
    for folder in folders:
        sure, doubt = locate(world, folder, ["nobody"])["nobody"]
        assert doubt == {"a", "b"} and not sure, "the leases ran out"
    world.server.send_signal(signal.SIGCONT)
    wait_for(converged, "after a partition")

    # a follower dies, misses something, and goes on where it was
    followers["two"].kill()
    followers["two"].wait()
    a.feed(a.n, KEYS // 10)
    wait_for(lambda: all_located(world, "one", origins), "the other follower")
    time.sleep(LEASE)
    sure, doubt = locate(world, "two", ["nobody"])["nobody"]
    assert doubt == {"a", "b"}
    followers["two"] = follow(world, "two")
    wait_for(converged, "after a follower died")

    # an origin dies; then it lives again, with what its file has and what comes
    b.process.kill()
    b.process.wait()
    wait_for(lambda: locate(world, "one", ["x"])["x"][1] == {"b"}, "its lease")
    never_denied(world, "one", origins)
    b.start()
    b.feed(0, min(b.n, 50_000) if LONG else b.n)
    b.feed(b.n, 100)
    wait_for(converged, "after an origin died")

    # the server dies and comes back, with its data
    world.redis("SAVE")
    world.server.kill()
    world.server.wait()
    a.feed(a.n, 100)
    for folder in folders:
        never_denied(world, folder, [b])
    world.start_server()
    wait_for(converged, "after the server came back with its data")

    # and without
    world.server.kill()
    world.server.wait()
    os.unlink(os.path.join(world.folder, "dump.rdb"))
    b.feed(b.n, 100)
    world.start_server()
    wait_for(converged, "after the server came back without its data")

    # removals arrive too
    a.feed(0, 50, "-")
    wait_for(lambda: all("a" not in sure | doubt for sure, doubt in
                         locate(world, "one", ["a-%d" % i for i in range(50)]).values()),
             "removals")
    for follower in followers.values():
        assert follower.poll() is None
    for origin in origins:
        assert origin.process.poll() is None
        origin.process.send_signal(signal.SIGTERM)
        assert origin.process.wait(timeout=WAIT) == 0


def test_a_stream_is_cut_but_never_before_the_last_snapshot(world):
    world.start_server()
    world.run("create", "a.tamis")
    world.run("create", "b.tamis", "--like", "a.tamis")
    for name in "ab":
        world.run("publish", name + ".tamis", "--to", world.url, "--as", name,
                  input="+%s-first\n" % name)
    lengths = []
    for i in range(12):  # a publishes much, in messages that are larger than its snapshot
        keys = "".join("+a-%d-%d\n" % (i, j) for j in range(20_000))
        world.run("publish", "a.tamis", "--to", world.url, "--as", "a", "--member-miss", "0.1%",
                  input=keys)
        lengths.append(int(world.redis("XLEN", "hosts")))
    # b's only snapshot holds it
    assert lengths == sorted(lengths) and lengths[-1] > lengths[0]
    world.run("publish", "b.tamis", "--to", world.url, "--as", "b", input="+b-second\n")
    assert int(world.redis("XLEN", "hosts")) < lengths[-1] / 4
    world.run("follow", world.url, "-o", "copies", "--once", "--for", "120s")
    answers = locate(world, "copies", ["a-3-77", "a-11-19999", "b-first", "b-second", "none"])
    assert [sorted(sure) for sure, _ in answers.values()] == [["a"], ["a"], ["b"], ["b"], []]


def test_password_and_database_in_the_address(world):
    world.start_server()
    world.redis("CONFIG", "SET", "requirepass", "s3cret/x")
    world.run("create", "a.tamis")
    good = "redis://default:s3cret%%2Fx@127.0.0.1:%d/some%%20name?db=3" % world.port
    world.run("publish", "a.tamis", "--to", good, "--as", "host 1/β", input="+ann\n")
    world.run("follow", good, "-o", "copies", "--once", "--for", "120s")
    assert world.run("locate", "copies", "ann") == "ann\thost 1/β\n"
    for login in ["", ":wrong@"]:
        bad = "redis://%s127.0.0.1:%d/n" % (login, world.port)
        done = subprocess.run([TAMIS, "publish", "a.tamis", "--to", bad, "--as", "x"], input="",
                              cwd=world.folder, capture_output=True, text=True, timeout=WAIT)
        assert done.returncode == 2
        assert "NOAUTH" in done.stderr or "WRONGPASS" in done.stderr


def test_a_farewell_removes_the_copy(world):
    world.start_server()
    world.run("create", "a.tamis")
    world.run("publish", "a.tamis", "--to", world.url, "--as", "a", input="+ann\n")
    world.run("follow", world.url, "-o", "copies", "--once", "--for", "120s")
    assert world.run("locate", "copies", "ann") == "ann\ta\n"
    world.run("publish", "a.tamis", "--to", world.url, "--as", "a", "--retire", input="")
    follow(world, "copies")
    wait_for(lambda: world.run("locate", "copies", "ann", status=(0, 1)) == "", "the farewell")
    assert world.redis("HLEN", "{hosts}:owners") == "0"
