"""Replicas between processes: origins, followers and a real redis-server that come and go.

A sample of the keys is asked again and again, whatever happens: a key that an origin has had for a
while is located, or the origin is shown as in doubt. In a long run with 10 million keys and a
partition of 20 seconds.
"""
import json
import os
import shutil
import signal
import subprocess
import time

import pytest

from hosts import (KEYS, LEASE, LONG, PARTITION, TAMIS, WAIT, Origin, all_located, follow, has_copies,
                   locate, never_denied, wait_for)

pytestmark = pytest.mark.skipif(not shutil.which("redis-server"), reason="no redis-server")


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


def test_origins_of_different_sizes_share_planned_vectors(world):
    world.start_server()
    world.run("create", "a.tamis", "--for-publish", "--capacity", "20000", "--deletable")
    shapes = set()
    for name, keys in [("a", 100), ("b", 20000), ("c", 5000)]:
        if name != "a":
            world.run("create", name + ".tamis", "--like", "a.tamis")
        world.run("publish", name + ".tamis", "--to", world.url, "--as", name,
                  input="".join("+%s-%d\n" % (name, i) for i in range(keys)))
        facts = json.loads(world.run("info", name + ".tamis", "--json"))
        shapes.add((facts["growth"], facts["layout"], facts["bits"] / facts["vectors"], facts["hashes"]))
    assert len(shapes) == 1 and {"dynamic", "spread"} < set(shapes.pop())
    world.run("follow", world.url, "-o", "copies", "--once", "--for", "120s")
    for name, key in [("a", "a-99"), ("b", "b-19999"), ("c", "c-4999")]:
        assert name in locate(world, "copies", [key])[key][0]
    for words, text in [([], "--capacity"), (["--capacity", "9", "--layout", "blocked"], "leave it out"),
                        (["--capacity", "9", "--attrs", "x"], "leave it out")]:
        done = subprocess.run([TAMIS, "create", "x.tamis", "--for-publish", *words], cwd=world.folder,
                              capture_output=True, text=True, timeout=WAIT)
        assert done.returncode == 2 and text in done.stderr
