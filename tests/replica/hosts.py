"""Origins, followers and a real redis-server as processes: what the tests of this folder share."""
import os
import random
import signal
import socket
import subprocess
import time

TAMIS = os.environ.get("TAMIS", "tamis")
LONG = os.environ.get("TAMIS_LONG") == "1"
KEYS = 10_000_000 if LONG else 30_000
PARTITION = 20 if LONG else 3
BEAT, LEASE = (2, 6) if LONG else (0.4, 1.2)
WAIT = 600 if LONG else 180


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

    def start_server(self, **more):
        self.server = self.start("redis-server", "--port", str(self.port), "--bind", "127.0.0.1",
                                 "--dir", str(self.folder), "--save", "", "--appendonly", "no",
                                 stdout=subprocess.DEVNULL, **more)
        wait_for(lambda: self.redis("PING") == "PONG", "the server")

    def redis(self, *command):
        done = subprocess.run(["redis-cli", "-p", str(self.port), *command], capture_output=True,
                              text=True, timeout=WAIT)
        return done.stdout.strip()

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()


class Origin:
    """A process that is fed; it knows which keys it was given."""

    def __init__(self, world, name, beat=BEAT, env=None):
        self.world, self.name, self.n = world, name, 0
        self.beat, self.env = beat, env
        world.run("create", name + ".tamis", "--capacity", str(KEYS), "--fpp", "1e-6",
                  "--deletable", *([] if name == "a" else ["--like", "a.tamis"]))
        self.start()

    def start(self):
        self.process = self.world.start(
            TAMIS, "publish", self.name + ".tamis", "--to", self.world.url, "--as", self.name,
            "--beat", "%dms" % (self.beat * 1000), "--stay", "--save", "60s" if LONG else "1s",
            "--max-age", "5s" if LONG else "300ms", "--linger", "5s", env=self.env,
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


def locate(world, folder, keys, **more):
    """key -> (owners, owners in doubt)"""
    out = world.run("locate", folder, *keys, status=(0, 1), **more)
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


def follow(world, folder, url=None, every="1s" if LONG else "100ms", **more):
    return world.start(TAMIS, "follow", url or world.url, "-o", folder, "--every", every,
                       stderr=subprocess.DEVNULL, **more)
