"""A folder of messages behind a web server: followers fetch it with conditional requests, and are in doubt
when they cannot. The web server is Python's own, with nothing but the files."""
import functools
import http.server
import os
import socketserver
import subprocess
import threading
import time

import pytest

from hosts import LONG, TAMIS, WAIT, wait_for
from serving import Follower

BEAT = "6s"     # checks are a second apart, and a busy machine is late


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_request(self, code="-", size="-"):
        self.server.requests.append((self.path, int(code)))

    def end_headers(self):
        if self.server.age:
            self.send_header("Age", str(self.server.age))
        super().end_headers()

    def copyfile(self, source, outputfile):
        data = source.read()
        slow = self.server.seconds if self.path.endswith("/snapshot") else 0   # a slow line
        for i in range(slow):
            outputfile.write(data[i * len(data) // 100:(i + 1) * len(data) // 100])
            time.sleep(1)
        outputfile.write(data[slow * len(data) // 100:])

    def do_GET(self):
        if self.server.broken:
            self.send_error(self.server.broken)
        else:
            super().do_GET()


class Web(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.requests, self.broken, self.age, self.seconds = [], 0, 0, 0
        super().__init__(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
        self.url = "http://127.0.0.1:%d/exchange" % self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()


@pytest.fixture
def web(tmp_path):
    server = Web(tmp_path / "www")
    yield server
    server.shutdown()
    server.server_close()


def publish(world, name, *more, text=None):
    process = world.start(TAMIS, "publish", name + ".tamis", "--to", "file:www/exchange", "--as", name,
                          "--beat", BEAT, "--max-age", "100ms", "--stay", *more,
                          stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if text:
        feed(process, text)
    return process


def feed(process, text):
    process.stdin.write(text.encode())
    process.stdin.flush()


def test_a_folder_is_followed_through_a_web_server(world, web):
    world.run("create", "a.tamis", "--deletable")
    world.run("create", "b β.tamis", "--like", "a.tamis")
    a = publish(world, "a", text="+ann\n+bob\n")
    b = publish(world, "b β", text="+bob\n")
    follower = Follower(world, "copies", web.url)
    wait_for(lambda: follower.locate(["bob"])["bob"] == ({"a", "b β"}, set()), "both copies")
    assert follower.locate(["ann", "zoe"]) == {"ann": ({"a"}, set()), "zoe": (set(), set())}

    # changes come as deltas, in the other direction too
    snapshots = sum(path.endswith("/snapshot") for path, _ in web.requests)
    feed(a, "+zoe\n-ann\n")
    wait_for(lambda: follower.locate(["zoe"])["zoe"][0] == {"a"}, "a change")
    assert follower.locate(["ann"])["ann"] == (set(), set())
    assert sum(path.endswith("/snapshot") for path, _ in web.requests) == snapshots

    # what did not change is not sent again, and no message is fetched twice
    del web.requests[:]
    wait_for(lambda: len([1 for _, code in web.requests if code == 304]) >= 4, "conditional requests")
    numbers = [path for path, code in web.requests if path[-1].isdigit() and code == 200]
    assert len(numbers) == len(set(numbers))
    assert not any(code not in (200, 304) for _, code in web.requests), web.requests

    # an error of the server is doubt; when it is there again, so are the answers
    web.broken = 503
    wait_for(lambda: follower.health()["status"] == "unavailable", "doubt")
    assert follower.locate(["bob"])["bob"] == (set(), {"a", "b β"})
    web.broken = 0
    wait_for(lambda: follower.health()["status"] == "ok", "the server's return")

    # a farewell, and an owner that is forgotten
    a.stdin.close()
    a.terminate()
    a.wait()
    world.run("publish", "a.tamis", "--to", "file:www/exchange", "--as", "a", "--retire", input="")
    wait_for(lambda: set(follower.owners()) == {"b β"}, "the farewell")
    b.kill()
    b.wait()
    world.run("forget", "file:www/exchange", "b β")
    wait_for(lambda: follower.owners() == {}, "an owner that is forgotten")


def test_a_folder_that_was_published_once_is_followed_once(world, web):
    (world.folder / "key").write_text("00112233445566778899aabbccddeeff\n")
    world.run("create", "a.tamis", "--key-file", "key")
    world.run("publish", "a.tamis", "--to", "file:www/exchange", "--as", "a", "--no-key", "--beat", "60s",
              input="+ann\n")
    world.run("follow", web.url + "/", "-o", "copies", "--key-file", "key", "--once", "--for", "120s")
    assert world.run("locate", "copies", "ann", "--key-file", "key") == "ann\ta\n"
    for path in ["owners", "a/index", "a/snapshot"]:  # nothing in them is a secret
        assert os.stat(world.folder / "www/exchange" / path).st_mode & 0o777 == 0o644
    world.run("publish", "a.tamis", "--to", "file:private", "--as", "a", "--beat", "60s", input="")
    for path in ["owners", "a/index", "a/snapshot"]:
        assert os.stat(world.folder / "private" / path).st_mode & 0o777 == 0o600


def test_what_is_not_there_is_said(world, web):
    def follow(url):
        return subprocess.run([TAMIS, "follow", url, "-o", "copies", "--for", "300ms"], cwd=world.folder,
                              capture_output=True, text=True, timeout=WAIT)
    done = follow(web.url)
    assert done.returncode == 2 and "/owners: not found" in done.stderr
    web.broken = 403
    done = follow(web.url)
    assert done.returncode == 2 and "403" in done.stderr
    assert follow("http://127.0.0.1:1/x").returncode == 2
    world.run("create", "a.tamis")
    done = subprocess.run([TAMIS, "publish", "a.tamis", "--to", web.url, "--as", "a", "--linger", "1s"],
                          cwd=world.folder, capture_output=True, text=True, timeout=WAIT, input="+x\n")
    assert done.returncode == 2 and "publish to file:FOLDER" in done.stderr


def test_what_a_cache_kept_for_days_is_doubt(world, web):
    world.run("create", "a.tamis")
    publish(world, "a", text="+ann\n")
    follower = Follower(world, "copies", web.url)
    wait_for(lambda: follower.health()["status"] == "ok", "the copy")
    web.age = 1000000
    wait_for(lambda: follower.health()["status"] == "unavailable", "doubt")
    assert follower.locate(["ann"])["ann"] == (set(), {"a"})


@pytest.mark.skipif(not LONG, reason="takes over a minute")
def test_a_large_snapshot_arrives_over_a_slow_line(world, web):
    world.run("create", "a.tamis", "--capacity", "4000000")
    world.run("add", "a.tamis", input="".join("%d\n" % i for i in range(300000)))
    world.run("publish", "a.tamis", "--to", "file:www/exchange", "--as", "a", "--beat", "none", "--message", "64Mi",
              input="")
    assert os.stat(world.folder / "www/exchange/a/snapshot").st_size > 500000
    (world.folder / "www/exchange/a").rename(world.folder / "www/exchange/kept")
    follower = Follower(world, "copies", web.url)
    (world.folder / "www/exchange/kept").rename(world.folder / "www/exchange/a")
    web.seconds = 70
    wait_for(lambda: follower.locate(["7"])["7"] == ({"a"}, set()), "the copy")
