"""Four clients at once, against a server that is killed, stopped and started again with a replica
attached: what was answered holds, there and on the replica, and both have the same bytes."""
import random
import signal
import threading
import time

import redis

from conftest import ASAN, LONG, free_port, wait
from sets import KINDS, Load
from test_replica import synced

CLIENTS = 4
ROUNDS = 200 if LONG else 6
VERIFIERS = ("none", "table", "filter")


class Records:
    """As Load: what is to be removed leaves the model first, and what is added comes after the reply, so
    that whatever became of a call without a reply, the model has members only."""

    def __init__(self, r, seed, prefix):
        self.r, self.random, self.prefix = r, random.Random(seed), prefix
        self.there = {v: [] for v in VERIFIERS}

    def create(self):
        for v in VERIFIERS:
            self.r.execute_command("TAMIS.XRESERVE", self.prefix + v, 0.01, 100, "ATTRIBUTES", 3, "a",
                                   "b:int", "c", "VERIFIER", v, "DELETABLE")

    def step(self):
        v = self.random.choice(VERIFIERS)
        key, there = self.prefix + v, self.there[v]
        if there and self.random.random() < 0.4:
            gone = there.pop(self.random.randrange(len(there)))
            assert self.r.execute_command("TAMIS.XDEL", key, *gone) != 0, (key, gone)
        else:
            record = ["a=%d" % self.random.randrange(50), "b=%d" % self.random.randrange(1000),
                      "c=%d" % self.random.randrange(5)][:self.random.choice([2, 3])]
            self.r.execute_command("TAMIS.XADD", key, *record)
            there.append(record)

    def check(self, r):
        for v, there in self.there.items():
            for record in there:
                assert r.execute_command("TAMIS.XQUERY", self.prefix + v, *record)[0], (v, record)


class Client(threading.Thread):
    """Works while it may; a server that is away is waited for."""

    def __init__(self, server, number, may):
        super().__init__(daemon=True)
        r, prefix = server.client(), "{c%d}" % number
        self.loads = [Load(r, number, prefix), Records(r, number, prefix + "x")]
        self.random, self.may, self.steps, self.problem = random.Random(number), may, 0, None
        self.rests, self.over = threading.Event(), False
        for load in self.loads:
            load.create()

    def step(self):
        if self.random.random() < 0.3:
            self.loads[1].step()
        else:
            self.loads[0].step(self.random.choice(list(KINDS)))
        self.steps += 1

    def run(self):
        while not self.over and not self.problem:
            if not self.may.is_set():
                self.rests.set()
                self.may.wait()
                self.rests.clear()
            try:
                self.step()
            except (redis.ConnectionError, redis.TimeoutError):
                time.sleep(0.02)
            except redis.ResponseError as error:  # BusyLoadingError is a ConnectionError
                self.problem = repr(error)
            except AssertionError as error:
                self.problem = "refused: %s" % error
        self.rests.set()


def shutdown(server):
    """SHUTDOWN SAVE, and a start."""
    before = server.r.execute_command("DEBUG", "DIGEST")
    try:
        server.r.execute_command("SHUTDOWN", "SAVE")
    except redis.ConnectionError:
        pass
    server.process.wait(60)
    server.process = None
    server.start()
    assert server.r.execute_command("DEBUG", "DIGEST") == before


def disturb(what, master, replica):
    if what == "kill":
        master.restart(signal.SIGKILL)
    elif what == "kill the replica":
        replica.restart(signal.SIGKILL)
    elif what == "cut":
        master.r.execute_command("CLIENT", "KILL", "TYPE", "replica")
    elif what in ("yes", "no"):
        master.r.config_set("aof-use-rdb-preamble", what)
        master.r.bgrewriteaof()


def test_what_was_answered_holds(servers):
    master = servers(port=free_port(), appendonly="yes", appendfsync="always", repl_backlog_size="64mb")
    replica = servers(port=free_port(), replicaof="127.0.0.1 %d" % master.port)
    may, rng = threading.Event(), random.Random(11)
    clients = [Client(master, i, may) for i in range(CLIENTS)]
    plans = ["kill", "no", "cut", "kill the replica", "stop", "kill"]
    for client in clients:
        client.start()
    try:
        for turn in range(ROUNDS):
            what = plans[turn] if turn < len(plans) else rng.choice(plans + ["yes"])
            may.set()
            time.sleep(1.5 if ASAN else 0.6)
            if what != "stop":
                disturb(what, master, replica)
                time.sleep(0.2)
            may.clear()
            for client in clients:
                assert client.rests.wait(60) and not client.problem, client.problem
            if what == "stop":
                shutdown(master)
            synced(master, replica)
            assert master.r.execute_command("DEBUG", "DIGEST") == \
                replica.r.execute_command("DEBUG", "DIGEST"), what
            for client in clients:
                for load in client.loads:
                    load.check(master.r)
                    load.check(replica.r)
    finally:
        for client in clients:
            client.over = True
        may.set()
    assert sum(client.steps for client in clients) > 100 * ROUNDS
