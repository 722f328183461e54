"""A follower that serves, asked over its socket as any client would."""
import http.client
import json
import socket
import subprocess

from hosts import TAMIS, wait_for


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=120)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(120)
        self.sock.connect(self.path)


class Follower:
    """tamis follow --serve unix:NAME.sock -o NAME"""

    def __init__(self, world, name, url=None, more=(), every="100ms", **process):
        self.world, self.name, self.path = world, name, str(world.folder / (name + ".sock"))
        self.process = world.start(TAMIS, "follow", url or world.url, "-o", name, "--every", every,
                                   "--serve", "unix:%s.sock" % name, *more,
                                   stderr=subprocess.PIPE, text=True, **process)
        wait_for(self.listens, "the follower to listen")

    def listens(self):
        assert self.process.poll() is None, self.process.stderr.read()
        try:
            self.ask("/healthz")
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        return True

    def ask(self, path, body=None, method=None, headers=None):
        """(status, text, headers)"""
        connection = Connection(self.path)
        connection.request(method or ("POST" if body is not None else "GET"), path, body=body,
                           headers=headers or {})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, text, answer.headers

    def json(self, path, body=None, status=200):
        got, text, headers = self.ask(path, json.dumps(body) if body is not None else None)
        assert got == status, text
        assert headers["Content-Type"] == "application/json"
        return json.loads(text)

    def owners(self):
        return {owner["owner"]: owner for owner in self.json("/owners")["owners"]}

    def health(self):
        status, text, _ = self.ask("/healthz")
        health = json.loads(text)
        assert status == (503 if health["status"] == "unavailable" else 200)
        return health

    def locate(self, keys):
        """key -> (owners, owners in doubt), as hosts.locate"""
        got = self.json("/locate", {"keys": keys})
        assert [answer["key"] for answer in got["answers"]] == keys
        return {answer["key"]: (set(answer["owners"]), set(got["maybe"]))
                for answer in got["answers"]}

    def metrics(self):
        """(name, labels as text) -> value; fails on what is not the text format of Prometheus"""
        status, text, headers = self.ask("/metrics")
        assert status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return parse_metrics(text.decode())


def parse_metrics(text):
    assert text.endswith("\n")
    series, kind, helped, seen = {}, None, None, set()
    for line in text.splitlines():
        if line.startswith("# HELP "):
            helped = line.split(" ")[2]
            assert helped not in seen, "the series of a metric stand together"
            seen.add(helped)
            continue
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == helped and kind in ("gauge", "counter", "histogram")
            assert kind != "counter" or name.endswith("_total")
            continue
        before, _, value = line.rpartition(" ")
        name, brace, labels = before.partition("{")
        assert not brace or labels.endswith("}")
        base = name
        if kind == "histogram":
            base = name.rsplit("_", 1)[0]
        assert base == helped, line
        assert (name, labels) not in series
        series[name, labels.rstrip("}")] = float(value)
    return series
