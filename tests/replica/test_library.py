"""A program of ten lines that follows in a thread of its own: examples/follow.c, as C and as C++."""
import os
import signal
import subprocess

import pytest

from hosts import TAMIS, WAIT, wait_for

BUILD = os.environ.get("TAMIS_BUILD", "build/release")


@pytest.mark.parametrize("program", ["examples/follow", "examples-c++/follow"])
def test_the_example_follows_and_answers(world, program):
    for name in "ab":
        world.run("create", name + ".tamis")
    origins = [world.start(TAMIS, "publish", name + ".tamis", "--to", "file:exchange", "--as", name, "--stay",
                           "--beat", "6s", "--max-age", "100ms", stdin=subprocess.PIPE,
                           stderr=subprocess.DEVNULL) for name in "ab"]
    origins[0].stdin.write(b"+ann\n+bob\n")
    origins[1].stdin.write(b"+bob\n")
    for origin in origins:
        origin.stdin.flush()
    gateway = world.start(os.path.join(BUILD, program), "file:exchange", stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True)

    def ask(key):
        gateway.stdin.write(key + "\n")
        gateway.stdin.flush()
        return gateway.stdout.readline().strip()
    wait_for(lambda: ask("bob") in ("bob: a b", "bob: b a"), "the copies")
    assert ask("ann") == "ann: a" and ask("zoe") == "zoe:"
    origins[1].stdin.write(b"+zoe\n")
    origins[1].stdin.flush()
    wait_for(lambda: ask("zoe") == "zoe: b", "a change")
    origins[1].kill()
    wait_for(lambda: ask("ann") in ("ann: a ?b", "ann: ?b a"), "doubt")
    origins[0].send_signal(signal.SIGSTOP)
    wait_for(lambda: ask("ann") in ("ann: ?a ?b", "ann: ?b ?a"), "more doubt")
    gateway.stdin.close()
    assert gateway.wait(timeout=WAIT) == 0


def test_what_is_no_address_is_said(world):
    done = subprocess.run([os.path.join(BUILD, "examples/follow"), "ftp://x"], cwd=world.folder,
                          capture_output=True, text=True, timeout=WAIT, stdin=subprocess.DEVNULL)
    assert done.returncode == 2 and "not an address" in done.stderr
