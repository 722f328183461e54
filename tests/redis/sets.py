"""Values of every sort, a stream of changes to them, and what must be the same wherever they go."""
import random

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


def answers(r, key, n, step=5000, prefix="ask"):
    """The answers for n keys, members or not."""
    return [r.execute_command("TAMIS.MEXISTS", key, *["%s%d" % (prefix, j) for j in
                                                      range(i, min(n, i + step))])
            for i in range(0, n, step)]
