"""Values of every sort, a stream of changes to them, and what must be the same wherever they go."""
import functools
import random
import socket

from conftest import ASAN, encode

KINDS = {
    "fixed": ["0.01", "40000", "GROWTH", "fixed"],
    "scalable": ["0.01", "300"],
    "expanding": ["0.001", "200", "EXPANSION", "2"],
    "spread": ["0.02", "1000", "LAYOUT", "spread"],
    "flexible": ["0.01", "300", "GROWTH", "flexible"],
    "window": ["0.01", "5000", "GROWTH", "window", "WINDOW", "0.5"],
    "dynamic": ["0.01", "40000", "GROWTH", "dynamic"],
    "deletable": ["0.01", "500", "DELETABLE"],
    "unique": ["0.05", "200", "DELETABLE", "UNIQUE", "EXPANSION", "1"],
    "both": ["0.01", "300", "GROWTH", "flexible", "DELETABLE"],
    "dynamic-deletable": ["0.01", "40000", "GROWTH", "dynamic", "DELETABLE"],
    "smooth": ["0.01", "300", "GROWTH", "smooth"],
    "compact": ["0.01", "600", "COMPACT"],
    "smooth-deletable": ["0.01", "300", "GROWTH", "smooth", "DELETABLE"],
    "xxh3": ["0.01", "300", "HASH", "xxh3"],
    "h3": ["0.01", "300", "HASH", "h3"],
}
DELETABLE = [name for name, options in KINDS.items() if "DELETABLE" in options]


def names(prefix="{v}"):
    return [prefix + name for name in KINDS]


class Load:
    """Adds and removes, seeded; knows what must be in each value. Windows forget: no one checks."""

    def __init__(self, r, seed=1, prefix="{v}"):
        self.r, self.random, self.prefix = r, random.Random(seed), prefix
        self.there = {name: [] for name in KINDS}
        self.next = 0

    def create(self):
        for name, options in KINDS.items():
            assert self.r.execute_command("TAMIS.RESERVE", self.prefix + name, *options) == b"OK"

    def step(self, name):
        n = self.random.choice([1, 1, 5, 40])
        keys = ["%s%d" % (name, self.next + i) for i in range(n)]
        self.next += n
        key, there = self.prefix + name, self.there[name]
        if name in DELETABLE and there and self.random.random() < 0.4:
            gone = [there.pop(self.random.randrange(len(there))) for _ in range(min(n, len(there)))]
            assert 0 not in self.r.execute_command("TAMIS.MDEL", key, *gone)
        elif n == 1:
            self.r.execute_command(self.random.choice(["TAMIS.ADD", "BF.ADD"]), key, keys[0])
            there += keys
        else:
            self.r.execute_command(self.random.choice(["TAMIS.MADD", "BF.MADD"]), key, *keys)
            there += keys

    def run(self, steps):
        for _ in range(steps):
            self.step(self.random.choice(list(KINDS)))

    def check(self, r):
        """No member is denied."""
        for name, keys in self.there.items():
            for i in range(0, len(keys) if name != "window" else 0, 5000):
                assert all(r.execute_command("TAMIS.MEXISTS", self.prefix + name,
                                             *keys[i:i + 5000])), name


# ---- a million keys ------------------------------------------------------------------------------

MANY = 200000 if ASAN else 1000000  # keys that must be answered alike; the first half are members
STEP = 5000


@functools.lru_cache(maxsize=8)
def batches(command, key, n):
    """Commands for keys 0 to n - 1, as they go over the wire."""
    return [encode(command, key, *["key%d" % j for j in range(i, i + STEP)])
            for i in range(0, n, STEP)]


def exchange(server, commands):
    """The replies, as bytes; each is an array of STEP numbers of one digit."""
    want = len(b"*%d\r\n" % STEP) + STEP * len(b":1\r\n")
    said = []
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(server.socket)
        s.settimeout(240)
        s.sendall(commands[0])
        for i in range(len(commands)):
            if i + 1 < len(commands):
                s.sendall(commands[i + 1])
            reply = b""
            while len(reply) < want:
                piece = s.recv(want - len(reply))
                assert piece and (reply + piece)[:1] == b"*", reply + piece
                reply += piece
            said.append(reply)
    return b"".join(said)


def fill(server, key, *options):
    """A filter with half a million keys, which has grown several times. What it answers."""
    server.r.execute_command("TAMIS.RESERVE", key, *(options or ("0.01", "50000")))
    exchange(server, batches("TAMIS.MADD", key, MANY // 2))
    said = answers(server, key)
    half = said[:len(said) // 2]
    assert half.count(b":1") == MANY // 2
    assert said.count(b":1") < (MANY // 2) * 1.02
    return said


def answers(server, key):
    return exchange(server, batches("TAMIS.MEXISTS", key, MANY))
