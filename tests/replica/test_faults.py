"""What goes wrong around copies, with real processes: a server that stands still, an origin that is killed,
two origins with one name, a stream that is cut short. A copy that calls itself current is right as of the
last heartbeat, and nothing that was acknowledged is lost."""
import collections
import os
import random
import shutil
import signal
import subprocess
import time

import pytest

from hosts import LONG, TAMIS, WAIT, follow, has_copies, locate, wait_for
from troubles import Clocks, Line

pytestmark = pytest.mark.skipif(not shutil.which("redis-server"), reason="no redis-server")


class Fed:
    """An origin that acknowledges its lines: which of its keys are safe since when."""

    def __init__(self, world, name, *options, file=None, new=(), url=None, env=None):
        self.world, self.name, self.options = world, name, options
        self.url, self.env = url or world.url, env
        self.file = file or name + ".tamis"
        self.keys, self.told = 0, 0
        self.safe = []  # time, keys
        world.run("create", self.file, "--fpp", "1e-6", *new)
        self.start()

    def start(self):
        self.lines, self.base = 0, self.keys
        self.process = self.world.start(
            TAMIS, "publish", self.file, "--to", self.url, "--as", self.name, "--stay", "--ack",
            *self.options, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        os.set_blocking(self.process.stdout.fileno(), False)

    def feed(self, n):
        lines = "".join("+%s-%d\n" % (self.name, i) for i in range(self.keys, self.keys + n))
        self.process.stdin.write(lines.encode())
        self.process.stdin.flush()
        self.keys += n

    def acknowledged(self):
        """The number of its keys that are safe."""
        data = self.process.stdout.read() or b""
        lines = data.split(b"\n")[:-1]
        if lines:
            self.told = self.base + int(lines[-1])
            self.safe.append((time.monotonic(), self.told))
        return self.told

    def feed_safely(self, n):
        self.feed(n)
        wait_for(lambda: self.acknowledged() == self.keys, "an acknowledgement")

    def kill(self):
        """What was not acknowledged may be lost, and is not asked."""
        self.process.kill()
        self.process.wait()
        self.keys = max(self.acknowledged(), self.base)

    def denied(self, folder, first=0, last=None):
        keys = ["%s-%d" % (self.name, i) for i in range(first, self.keys if last is None else last)]
        answers = locate(self.world, folder, keys)
        return [key for key in keys if self.name not in answers[key][0] | answers[key][1]]

    def located(self, folder, first=0):
        keys = ["%s-%d" % (self.name, i) for i in range(first, self.keys)]
        return all(self.name in sure for sure, _ in locate(self.world, folder, keys).values())


def in_doubt(world, folder):
    return locate(world, folder, ["nobody"])["nobody"][1]


LEASE_LEFT = 12  # seconds: of three beats, of which one may have passed since the last message


def test_a_server_that_stands_still_makes_doubt_after_one_beat(world):
    world.start_server()
    origin = Fed(world, "a", "--beat", "6s")
    origin.feed_safely(1000)
    follow(world, "d")
    wait_for(lambda: has_copies(world, "d") and origin.located("d"), "the copy")
    assert in_doubt(world, "d") == set()
    for _ in range(5):  # a busy machine may look only when the lease has expired too
        world.server.send_signal(signal.SIGSTOP)
        stopped = time.monotonic()
        origin.feed(300)
        wait_for(lambda: in_doubt(world, "d") == {"a"}, "doubt")
        seen = time.monotonic() - stopped
        world.server.send_signal(signal.SIGCONT)
        wait_for(lambda: origin.located("d"), "after it went on")
        if seen < LEASE_LEFT:
            break
    assert seen < LEASE_LEFT


def test_messages_that_waited_do_not_make_a_copy_current(world):
    world.start_server()
    origin = Fed(world, "a", "--beat", "300ms", "--max-age", "100ms")
    origin.feed_safely(1000)
    follow(world, "d")
    wait_for(lambda: has_copies(world, "d") and origin.located("d"), "the copy")
    for _ in range(4):
        world.server.send_signal(signal.SIGSTOP)
        time.sleep(1.5)  # more than a lease
        origin.feed(500)
        time.sleep(0.5)
        world.server.send_signal(signal.SIGCONT)
        end = time.monotonic() + 1
        while time.monotonic() < end:
            assert origin.denied("d", origin.keys - 500) == []
        wait_for(lambda: origin.located("d", origin.keys - 500), "after it went on")


def test_a_follower_that_starts_again_knows_that_a_heartbeat_waited(world):
    """The last heartbeat of a dead origin arrives at the server a second time, long after it was sent."""
    world.start_server()
    origin = Fed(world, "a", "--beat", "1s", "--max-age", "100ms")
    origin.feed_safely(1000)
    follower = follow(world, "d")
    wait_for(lambda: has_copies(world, "d") and origin.located("d"), "the copy")
    seen = int(world.redis("XLEN", "hosts"))
    wait_for(lambda: int(world.redis("XLEN", "hosts")) >= seen + 2, "heartbeats")
    origin.kill()
    time.sleep(4)  # more than a lease
    follower.kill()
    follower.wait()
    late = world.redis("EVAL", "local last = redis.call('XREVRANGE', 'hosts', '+', '-', 'COUNT', 1) "
                       "return redis.call('XADD', 'hosts', '*', unpack(last[1][2]))", "0")
    follow(world, "d")
    wait_for(lambda: "position %s\n" % late in open(world.folder / "d/status").read(), "the heartbeat")
    assert in_doubt(world, "d") == {"a"}


def test_what_was_acknowledged_survives_a_kill(world):
    world.start_server()
    origin = Fed(world, "a", "--beat", "300ms", new=["--deletable"])
    follow(world, "d")
    for _ in range(3):
        origin.feed_safely(1000)
        origin.kill()
        assert os.path.exists(os.path.join(world.folder, "a.tamis.changes"))
        origin.start()
    wait_for(lambda: has_copies(world, "d") and origin.located("d"), "all that was safe")
    origin.process.send_signal(signal.SIGTERM)
    assert origin.process.wait(timeout=WAIT) == 0
    assert not os.path.exists(os.path.join(world.folder, "a.tamis.changes"))
    keys = "".join("a-%d\n" % i for i in range(origin.keys))
    assert world.run("check", "a.tamis", input=keys) == keys
    items = world.run("info", "a.tamis", "--json")
    assert '"items": %d,' % origin.keys in items  # each of them once


def test_of_two_origins_with_one_name_the_first_ends(world):
    world.start_server()
    first = Fed(world, "a", "--beat", "300ms")
    first.feed_safely(100)
    follow(world, "d")
    wait_for(lambda: has_copies(world, "d") and first.located("d"), "the copy")
    second = Fed(world, "a", "--beat", "300ms", file="other.tamis", new=["--like", "a.tamis"])
    second.keys = second.base = first.keys
    second.feed_safely(100)
    assert first.process.wait(timeout=WAIT) == 2
    assert b"another process now publishes as a: a.tamis: " in first.process.stderr.read()
    second_keys = ["a-%d" % i for i in range(100, 200)]
    wait_for(lambda: all("a" in sure for sure, _ in locate(world, "d", second_keys).values()),
             "the second")
    assert second.process.poll() is None


def test_two_followers_do_not_share_a_folder(world):
    world.start_server()
    origin = Fed(world, "a")
    origin.feed_safely(10)
    first = follow(world, "d")
    wait_for(lambda: has_copies(world, "d"), "copies")
    done = subprocess.run([TAMIS, "follow", world.url, "-o", "d", "--for", "5s"], cwd=world.folder,
                          capture_output=True, text=True, timeout=WAIT)
    assert done.returncode == 2
    assert "another tamis follow is writing to it: d: " in done.stderr
    first.kill()
    first.wait()
    world.run("follow", world.url, "-o", "d", "--once", "--for", "120s")


def test_a_slow_disk_does_not_prolong_a_lease(world):
    """The copy was heard of before it is saved, and saving it takes longer than its lease."""
    world.run("create", "a.tamis")
    world.run("publish", "a.tamis", "--to", "file:exchange", "--as", "a", input="+ann\n")
    clocks = Clocks(world.folder, "d")
    for slow, doubt in [("0", set()), ("100", {"a"})]:
        follower = follow(world, "d" + slow, "file:exchange", "1h", env=dict(clocks.env, TAMIS_SLOW_DISK=slow))
        wait_for(lambda: os.path.exists(os.path.join(world.folder, "d" + slow, "status")), "the status")
        follower.kill()
        follower.wait()
        assert locate(world, "d" + slow, ["zoe"], env=clocks.env)["zoe"][1] == doubt


def test_a_question_during_an_update_sees_one_state(world):
    world.start_server()
    origins = [Fed(world, "o%d" % i, "--beat", "60s", "--max-age", "10ms") for i in range(6)]
    for origin in origins:
        origin.feed_safely(5000)
    world.start(TAMIS, "follow", world.url, "-o", "d", "--every", "20ms", stderr=subprocess.DEVNULL)
    wait_for(lambda: has_copies(world, "d") and all(o.located("d", 4000) for o in origins), "copies")
    doubts = 0
    for _ in range(60):
        for origin in origins:
            origin.feed(20)
        doubts += bool(in_doubt(world, "d"))
    assert doubts == 0


def repaired(world, cut):
    """Something is taken from the stream that a follower has not seen yet."""
    world.start_server()
    origin = Fed(world, "a", "--beat", "300ms", "--max-age", "100ms")
    origin.feed_safely(1000)
    follower = follow(world, "d")
    wait_for(lambda: has_copies(world, "d") and origin.located("d"), "the copy")
    follower.send_signal(signal.SIGSTOP)
    origin.feed_safely(500)
    before = int(world.redis("XLEN", "hosts"))
    wait_for(lambda: int(world.redis("XLEN", "hosts")) >= before + 3, "some heartbeats")
    cut()
    follower.send_signal(signal.SIGCONT)
    wait_for(lambda: origin.located("d"), "the repair")


def test_a_stream_that_was_cut_short_is_repaired(world):
    repaired(world, lambda: world.redis("XTRIM", "hosts", "MAXLEN", "1"))


def test_a_snapshot_that_was_deleted_is_repaired(world):
    repaired(world, lambda: (world.redis("DEL", "{hosts}:snapshot:a"),
                             world.redis("XTRIM", "hosts", "MAXLEN", "1")))


def test_a_server_that_went_back_in_time_is_repaired(world):
    def restore():
        world.redis("EVAL", "local last = redis.call('XREVRANGE', 'hosts', '+', '-', 'COUNT', 40) "
                    "for i, e in ipairs(last) do redis.call('XDEL', 'hosts', e[1]) end", "0")
    repaired(world, restore)


def test_a_stream_that_begins_again_before_its_end_is_repaired(world):
    clocks = Clocks(world.folder, "s")
    world.start_server(env=clocks.env)
    origin = Fed(world, "a", "--beat", "300ms", "--max-age", "100ms")
    origin.feed_safely(100)
    follow(world, "d")
    wait_for(lambda: has_copies(world, "d") and origin.located("d"), "the copy")
    clocks.set(-3600)
    origin.feed_safely(100)     # what waits at the server waits by its new clock from then on
    wait_for(lambda: origin.located("d"), "what came after the clock was set")
    world.redis("DEL", "hosts")
    origin.feed_safely(100)
    wait_for(lambda: origin.located("d"), "the repair")


def test_a_dead_owner_does_not_hold_the_stream(world):
    world.start_server()
    world.run("create", "a.tamis")
    world.run("create", "dead.tamis")
    world.run("publish", "dead.tamis", "--to", world.url, "--as", "dead", input="+x\n")
    for i in range(5):
        keys = "".join("+%d-%d\n" % (i, j) for j in range(2000))
        world.run("publish", "a.tamis", "--to", world.url, "--as", "a", "--min-gap", "none", input=keys)
    held = int(world.redis("XLEN", "hosts"))
    world.redis("HSET", "{hosts}:owners", "dead", "1-1")  # an hour behind
    world.run("publish", "a.tamis", "--to", world.url, "--as", "a", input="")
    assert held > 15 and int(world.redis("XLEN", "hosts")) < 5
    world.redis("HSET", "{hosts}:owners", "dead", world.redis("HGET", "{hosts}:owners", "a"))
    world.run("follow", world.url, "-o", "d", "--for", "2s")
    assert in_doubt(world, "d") <= {"dead"}
    world.run("forget", world.url, "dead")
    world.run("forget", world.url, "dead", status=(1,))
    world.start(TAMIS, "follow", world.url, "-o", "d", "--every", "100ms", stderr=subprocess.DEVNULL)
    wait_for(lambda: "dead" not in locate(world, "d", ["x"])["x"][0] | in_doubt(world, "d"), "no dead")


def test_an_idle_owner_does_not_hold_the_stream(world):
    world.start_server()
    idle = Fed(world, "idle", "--beat", "100ms")
    idle.feed_safely(10)
    busy = Fed(world, "busy", "--beat", "100ms", "--max-age", "10ms", "--min-gap", "none")
    longest = 0
    for _ in range(300):
        busy.feed(3000 if busy.keys < 30_000 else 300)
        longest = max(longest, int(world.redis("XLEN", "hosts")))
        if longest > 50 and int(world.redis("XLEN", "hosts")) < longest / 2:
            return
        time.sleep(0.02)
    raise AssertionError("the stream only grew, to %d" % longest)


# ---- random faults ---------------------------------------------------------------------------------

BEAT, EVERY = 0.4, 1 if LONG else 0.1
LAG = 3 * BEAT + EVERY + 0.5  # of a copy that calls itself current: a lease, a save, --max-age


class Faults:
    """Two origins, a follower, a server, each with a line and a clock of its own: faults at random, and after
    each the same question again and again. A key that was acknowledged longer ago than the stated lag is
    located, or its owner is in doubt."""

    def __init__(self, world, rng):
        self.world, self.rng, self.done, self.recent = world, rng, collections.Counter(), []
        self.lines = {name: Line(world.port) for name in "abd"}
        self.clocks = {name: Clocks(world.folder, name) for name in "abds"}
        self.start_server()
        self.origins = [Fed(world, name, "--beat", "%dms" % (BEAT * 1000), "--max-age", "100ms",
                            "--save", "2s", "--linger", "5s", url=self.url(name), env=self.clocks[name].env)
                        for name in "ab"]
        self.start_follower()
        for origin in self.origins:
            origin.feed_safely(500)
        wait_for(lambda: has_copies(world, "d") and self.converged(), "the first copies")

    def url(self, name):
        return "redis://127.0.0.1:%d/hosts" % self.lines[name].port

    def start_server(self):
        self.world.start_server(env=self.clocks["s"].env)

    def start_follower(self):
        self.follower = follow(self.world, "d", self.url("d"), env=self.clocks["d"].env)

    def converged(self):
        return all(origin.located("d", max(0, origin.keys - 50)) for origin in self.origins)

    def ask(self):
        """What was safe for long enough when the question began."""
        asked = time.monotonic()
        keys = {}
        for origin in self.origins:
            origin.acknowledged()
            safe = max((n for at, n in origin.safe if at < asked - LAG), default=0)
            for _ in range(25):
                if safe:
                    keys["%s-%d" % (origin.name, self.rng.randrange(max(0, safe - 400), safe))] = origin
        answers = locate(self.world, "d", list(keys)) if keys else {}
        denied = [key for key, origin in keys.items()
                  if origin.name not in answers[key][0] | answers[key][1]]
        assert not denied, str((denied[:5], self.recent[-6:], self.facts(asked), self.done))

    def facts(self, asked):
        """What may tell why a key was denied: times before the question, clocks, the status that was read."""
        with open(os.path.join(self.world.folder, "d", "status")) as file:
            status = file.read()
        return ({origin.name: [(round(asked - at, 2), n) for at, n in origin.safe[-8:]] for origin in self.origins},
                {name: (clocks.day, clocks.boot) for name, clocks in self.clocks.items()},
                round(time.clock_gettime(time.CLOCK_BOOTTIME), 2), round(time.monotonic() - asked, 2), status)

    def feed(self):
        for origin in self.origins:
            if origin.process.poll() is None and origin.keys - origin.told < 3000:  # what a pipe can hold
                origin.feed(self.rng.randrange(1, 60))

    # Each makes something go wrong and returns what ends it.

    def stand_still(self):
        process = self.rng.choice([self.world.server, self.follower] + [o.process for o in self.origins])
        process.send_signal(signal.SIGSTOP)
        return lambda: process.send_signal(signal.SIGCONT)

    def kill_origin(self):
        """Its machine may have been started again, so that its clock since boot begins anew."""
        origin = self.rng.choice(self.origins)
        origin.kill()
        self.clocks[origin.name].set(self.clocks[origin.name].day, self.rng.choice([0, 3600, 86400]))
        return origin.start

    def kill_follower(self):
        self.follower.kill()
        self.follower.wait()
        return self.start_follower

    def trim(self):
        self.world.redis("XTRIM", "hosts", "MAXLEN", str(self.rng.randrange(4)))

    def delete(self):
        self.world.redis("DEL", self.rng.choice(["{hosts}:snapshot:a", "{hosts}:owners", "hosts"]))

    def restore(self):
        """The server comes back with the data of now, or of a while ago."""
        if self.rng.randrange(2):
            self.world.redis("SAVE")
        self.world.server.kill()
        self.world.server.wait()
        return self.start_server

    def shift_clock(self):
        """Of the day, on any machine; what was set wrong may stay so."""
        clocks = self.rng.choice(list(self.clocks.values()))
        clocks.set(self.rng.choice([-86400, -3600, -2, -0.3, 0.3, 2, 3600, 86400]))
        return self.rng.choice([None, lambda: clocks.set(0)])

    def sleep_and_wake(self):
        """The machine of an origin slept: its clocks were going while nothing else was."""
        origin = self.rng.choice(self.origins)
        clocks, slept = self.clocks[origin.name], self.rng.choice([1, 60, 3600])
        origin.process.send_signal(signal.SIGSTOP)

        def wake():
            clocks.set(clocks.day + slept, clocks.boot + slept)
            origin.process.send_signal(signal.SIGCONT)
        return wake

    def partition(self):
        """One side does not reach the server, or no one does."""
        lines = self.rng.choice([[line] for line in self.lines.values()] + [list(self.lines.values())])
        lost = self.rng.randrange(2)
        for line in lines:
            line.cut()
        return lambda: [line.mend(lost) for line in lines]

    def round(self):
        kinds = [self.stand_still, self.kill_origin, self.kill_follower, self.trim, self.delete, self.restore,
                 self.shift_clock, self.sleep_and_wake, self.partition]
        fault = self.rng.choice(kinds)
        self.done[fault.__name__] += 1
        self.recent.append((round(time.monotonic(), 2), fault.__name__))
        mend = fault()
        for wait in range(2):
            if wait and mend:
                mend()
            until = time.monotonic() + self.rng.choice([0.1, 0.5, 2 * BEAT, 4 * BEAT])
            while time.monotonic() < until:
                self.feed()
                self.ask()

    def end(self):
        for line in self.lines.values():
            line.end()


def test_random_faults(world):
    seed = int(os.environ.get("TAMIS_SEED", "11"), 0)
    faults = Faults(world, random.Random(seed))
    for i in range(int(os.environ.get("TAMIS_FAULTS", "500" if LONG else "40"))):
        faults.round()
        if i % 10 == 9:
            faults.feed()
            wait_for(faults.converged, "copies after fault %d, seed %d" % (i, seed))
    faults.end()
