"""Hosts of a fleet as folders and processes, and an independent reader of what they have."""
import datetime
import ipaddress
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../replica"))
from troubles import Clocks     # noqa: E402,F401

TAMIS = os.environ.get("TAMIS", "tamis")
LONG = os.environ.get("TAMIS_LONG") == "1"
WAIT = 600
START = datetime.datetime(2026, 11, 1, tzinfo=datetime.timezone.utc)


def day(n):
    return (START + datetime.timedelta(days=n)).strftime("%Y-%m-%d")


def quoted(name):
    """An owner as the name of a folder."""
    return "".join(c if c.isalnum() and c.isascii() or c in "-_" else
                   "".join("%%%02X" % byte for byte in c.encode()) for c in name)


class Host:
    """One host: a folder of CSV and JSON lines, and the records that were written to them."""

    def __init__(self, fleet, name, kind):
        self.fleet, self.name, self.kind = fleet, name, kind
        self.folder = fleet.folder / name
        (self.folder / "logs").mkdir(parents=True)
        self.records = []      # (file, record, raw line)
        self.covered = 0       # of them, by the last index that went well
        self.made = False

    def write(self, n, at, file=None):
        """n records of day `at`, some of an earlier one, appended to a file of that day."""
        name = file or "logs/%s.%s" % (day(at), self.kind)
        path = self.folder / name
        lines = [] if path.exists() or self.kind != "csv" else ["time,ip,user,status,msg"]
        for _ in range(n):
            when = START + datetime.timedelta(days=at, seconds=random.randrange(86400))
            if random.random() < 0.05:
                when -= datetime.timedelta(days=random.randrange(1, 4))
            record = {"time": when, "ip": "10.%d.%d.%d" % (random.randrange(3), random.randrange(8),
                                                           random.randrange(40)),
                      "user": "u%d" % int(random.paretovariate(0.6)), "status": random.choice([200, 404, 500]),
                      "msg": random.choice(["login ok", "login failed", "page not found", "disk full"])}
            if len(record["user"]) > 8:
                record["user"] = "rare%d" % random.randrange(1000)
            stamp = when.strftime("%Y-%m-%dT%H:%M:%SZ")
            if self.kind == "csv":
                raw = "%s,%s,%s,%d,%s" % (stamp, record["ip"], record["user"], record["status"], record["msg"])
            else:
                raw = json.dumps({**record, "time": stamp})
            lines.append(raw)
            self.records.append((name, record, raw))
        with open(path, "a") as f:
            f.write("".join(line + "\n" for line in lines))

    def remove(self, at):
        """Rotated away."""
        name = "logs/%s.%s" % (day(at), self.kind)
        (self.folder / name).unlink()
        self.records = [r for r in self.records if r[0] != name]
        self.covered = min(self.covered, len(self.records))

    def index(self, at, *options, status=(0,), publish=True):
        words = ["index"] + (["--update", "logs.tamis"] if self.made else
                             ["logs", "--attrs", "ip:ip,user,status:int", "--combo", "ip+user"])
        if publish:
            words += ["--publish", self.fleet.url, "--as=" + self.name, "--day", day(at)]
        done = self.fleet.run(*words, *options, cwd=self.folder, status=status)
        if done.returncode == 0:
            self.made = True
            self.covered = len(self.records)
        return done

    def index_killed(self, at):
        """Killed somewhere on its way."""
        words = ["index", "--update", "logs.tamis", "--publish", self.fleet.url, "--as", self.name, "--day",
                 day(at)]
        process = subprocess.Popen([TAMIS, *words], cwd=self.folder, stderr=subprocess.DEVNULL,
                                   env=self.fleet.env)
        time.sleep(random.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def bytes_sent(self):
        exchange = self.fleet.folder / "exchange"
        return {p.parent.name: (p.stat().st_size, p.stat().st_ino)
                for p in exchange.glob(quoted(self.name) + "*/snapshot")}


class Fleet:
    def __init__(self, folder, url=None):
        self.folder = folder
        self.url = url or "file:%s/exchange" % folder
        self.env = dict(os.environ, XDG_CACHE_HOME=str(folder / "cache"))
        self.hosts = []
        self.processes = []

    def start_redis(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.processes.append(subprocess.Popen(
            ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", str(self.folder), "--save", "",
             "--appendonly", "no"], stdout=subprocess.DEVNULL))
        self.url = "redis://127.0.0.1:%d/fleet" % port
        end = time.monotonic() + WAIT
        while subprocess.run(["redis-cli", "-p", str(port), "PING"], capture_output=True).stdout != b"PONG\n":
            assert time.monotonic() < end, "the server does not start"
            time.sleep(0.05)

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()

    def add(self, n):
        for i in range(n):
            self.hosts.append(Host(self, "%s-%02d.x" % ("web" if i % 3 else "db", i), "csv" if i % 4 else "jsonl"))
        return self.hosts

    def run(self, *words, status=(0,), cwd=None, **more):
        done = subprocess.run([TAMIS, *words], cwd=cwd or self.folder, env=self.env, capture_output=True, text=True,
                              timeout=WAIT, **more)
        assert done.returncode in status, (words, done.returncode, done.stdout, done.stderr)
        return done

    def where(self, *question, status=(0, 1), at=None):
        """Hosts that may have it with their days, and those in doubt. Tests ask for absent pairs: an absent value is a
        false candidate of one of ten hosts in 1 of 100 runs, a pair in 1 of 10^5."""
        done = self.run("where", at or self.url, *question, status=status)
        found, doubt = {}, set()
        for line in done.stdout.splitlines():
            if line.startswith("?"):
                doubt.add(line[1:])
            else:
                host, date = line.split("\t")
                found.setdefault(host, set()).add(date)
        assert done.returncode == (0 if found else 2 if doubt else 1), done.stderr
        return found, doubt


class Question:
    """Random, as words for tamis and as a test of a record."""

    def __init__(self, records, simple=False):
        self.words, self.tests, self.hopeless = [], [], False
        shapes = ["ip", "pair", "pair", "user", "absent", "list"] + ([] if simple else ["net", "word", "status", "not"])
        r = random.choice(records)[1] if records else {"ip": "10.0.0.1", "user": "u1", "status": 200, "msg": "x"}
        other = random.choice(records)[1] if records else r
        shape = random.choice(shapes)
        if shape in ("ip", "pair", "word", "not"):
            self.equal("ip", r["ip"])
        if shape == "pair":
            self.equal("user", random.choice([r, other])["user"])
        if shape == "user":
            self.equal("user", r["user"])
        if shape == "absent":
            self.equal("ip", "10.99.%d.%d" % (random.randrange(200), random.randrange(200)))
        if shape == "list":
            self.words += ["ip=" + r["ip"], "ip=" + other["ip"]]
            ips = (r["ip"], other["ip"])
            self.tests.append(lambda x: x["ip"] in ips)
        if shape == "net":
            net = ipaddress.ip_network(r["ip"] + "/28", strict=False)
            self.words.append("ip=%s" % net)
            self.tests.append(lambda x: ipaddress.ip_address(x["ip"]) in net)
        if shape == "word":
            self.words.append("msg~login")
            self.tests.append(lambda x: "login" in x["msg"].split())
        if shape == "status":
            self.words += ["status=404..", "user=" + r["user"]]
            self.tests += [lambda x: x["status"] >= 404, lambda x: x["user"] == r["user"]]
        if shape == "not":
            self.words.append("user!=" + r["user"])
            self.tests.append(lambda x: x["user"] != r["user"])
        if random.random() < 0.4:
            since = START + datetime.timedelta(days=random.randrange(5), hours=random.randrange(24))
            self.words += ["--since", since.strftime("%Y-%m-%dT%H:%M:%SZ")]
            self.tests.append(lambda x: x["time"] >= since)
        if random.random() < 0.2:
            until = START + datetime.timedelta(days=random.randrange(5), hours=random.randrange(24))
            self.words += ["--until", until.strftime("%Y-%m-%dT%H:%M:%SZ")]
            self.tests.append(lambda x: x["time"] <= until)

    def equal(self, name, value):
        self.words.append("%s=%s" % (name, value))
        self.tests.append(lambda x: x[name] == value)

    def matches(self, record):
        return all(test(record) for test in self.tests)

    def scan(self, records):
        return [raw for _, record, raw in records if self.matches(record)]
