"""Private servers with the module, each on a socket in a folder of its own; they are always stopped.

With TAMIS_VARIANT=asan the module is the sanitized one: anything the sanitizers find, leaks included, fails
the test when the server stops.
"""
import glob
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import pytest
import redis

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("TAMIS_BUILD", os.path.join(ROOT, "build", "release"))
MODULE = os.path.join(BUILD, "tamis.so")
TAMIS = os.path.join(BUILD, "tamis")
ASAN = os.environ.get("TAMIS_VARIANT") == "asan"
LONG = os.environ.get("TAMIS_LONG") == "1"
SERVER = os.environ.get("REDIS_SERVER", "redis-server")
BUSY = 12       # factor for all waits: other work on the machine must not fail a test


def free_port(cluster=False):
    """A free port; with cluster, one whose bus port is free too."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if not cluster:
            return port
        if port + 10000 < 65536:
            with socket.socket() as bus:
                try:
                    bus.bind(("127.0.0.1", port + 10000))
                    return port
                except OSError:
                    pass


def environment(folder):
    env = dict(os.environ)
    if ASAN:
        library = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True,
                                 text=True, check=True).stdout.strip()
        env.update(LD_PRELOAD=os.path.realpath(library), UBSAN_OPTIONS="print_stacktrace=1",
                   ASAN_OPTIONS="detect_leaks=1:allocator_may_return_null=1:log_path=%s/asan"
                   % folder)
    return env


def findings_in(folder):
    """What the sanitizers found, except crashes of the leak checker itself, which happen now and then when
    a program with threads ends (google/sanitizers, issue 1353)."""
    crash = ("Tracer caught signal", "LeakSanitizer has encountered a fatal error", "==HINT: ")
    lines = [line for path in glob.glob(folder + "/asan.*") for line in open(path)]
    return "".join(line for line in lines if not any(words in line for words in crash))


class Server:
    """A private redis-server. Options are those of redis.conf: name=value, with _ for -."""

    def __init__(self, module="", port=0, load=True, **options):
        self.folder = tempfile.mkdtemp(prefix="tamis-redis-")
        self.port, self.module, self.load, self.options = port, module, load, options
        self.socket = os.path.join(self.folder, "s")
        self.process = None
        self.start()

    def start(self):
        options = {"port": self.port, "bind": "127.0.0.1", "unixsocket": self.socket,
                   "dir": self.folder, "save": "", "logfile": "log", "daemonize": "no",
                   "enable-debug-command": "yes", "enable-module-command": "yes",
                   "repl-diskless-sync-delay": "0"}
        options.update({key.replace("_", "-"): value for key, value in self.options.items()})
        with open(os.path.join(self.folder, "conf"), "w") as conf:
            if self.load:
                conf.write("loadmodule %s %s\n" % (MODULE, self.module))
            for key, value in options.items():
                for one in value if isinstance(value, list) else [value]:
                    conf.write("%s %s\n" % (key, '""' if one == "" else one))
        self.process = subprocess.Popen([SERVER, os.path.join(self.folder, "conf")],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env=environment(self.folder))
        self.r = self.client()
        wait(lambda: self.process.poll() is not None or self.r.ping())
        assert self.alive(), "the server did not start:\n" + self.log_tail()
        if ASAN and self.load:
            with open("/proc/%d/maps" % self.process.pid) as maps:
                assert "libasan" in maps.read()

    def client(self, **options):
        return redis.Redis(unix_socket_path=self.socket, socket_timeout=BUSY * 20, **options)

    def log_tail(self):
        try:
            with open(os.path.join(self.folder, "log")) as log:
                return log.read()[-3000:]
        except OSError:
            return ""

    def alive(self):
        return self.process.poll() is None

    def stop(self, how=signal.SIGTERM):
        """Ends the server. Fails if it had ended before, or if a sanitizer found something."""
        if self.process is None:
            return
        crashed = not self.alive()
        if not crashed:
            self.process.send_signal(how)
        try:
            self.process.wait(BUSY * 20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            crashed = True
        self.process = None
        findings = findings_in(self.folder)
        assert not findings, findings[:6000]
        assert not crashed, "the server ended by itself:\n" + self.log_tail()

    def restart(self, how=signal.SIGTERM):
        self.stop(how)
        self.start()

    def drop(self):
        try:
            self.stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def digest(self, *keys, **where):
        return self.client(**where).execute_command("DEBUG", "DIGEST-VALUE", *keys)

    def raw(self, *words, resp=2):
        """The bytes of the reply to one command."""
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(self.socket)
            s.settimeout(BUSY * 20)
            end = b"$8\r\nThe-end.\r\n"
            s.sendall(encode("HELLO", str(resp)) + encode("ECHO", "The-end."))
            read_until(s, end)
            s.sendall(encode(*words) + encode("ECHO", "The-end."))
            return read_until(s, end)[:-len(end)]


def encode(*words):
    parts = [w if isinstance(w, bytes) else str(w).encode() for w in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts)


def read_until(s, end):
    data = b""
    while not data.endswith(end):
        piece = s.recv(1 << 16)
        assert piece, "the server closed the connection after %r" % data[:200]
        data += piece
    return data


def wait(done, seconds=20, why="it did not happen in time"):
    """Waits until done() is true; an exception counts as not yet. `seconds` is enough on a quiet machine."""
    limit = time.monotonic() + BUSY * seconds
    while True:
        try:
            if done():
                return
        except (redis.RedisError, OSError):
            pass
        assert time.monotonic() < limit, why
        time.sleep(0.01)


@pytest.fixture
def servers():
    """Creates servers, which are all stopped after the test."""
    made = []

    def make(*args, **options):
        made.append(Server(*args, **options))
        return made[-1]
    yield make
    problems = []
    for server in made:
        try:
            server.drop()
        except AssertionError as problem:
            problems.append(str(problem))
    assert not problems, "\n".join(problems)


@pytest.fixture(scope="module")
def shared():
    server = Server()
    yield server
    server.drop()


@pytest.fixture
def server(shared):
    """One server for all tests of a file, emptied before each."""
    shared.r.flushall()
    assert shared.r.config_resetstat()
    yield shared
    assert shared.alive(), shared.log_tail()


@pytest.fixture
def r(server):
    return server.r
