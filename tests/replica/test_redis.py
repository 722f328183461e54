"""Ways to a Redis server: passwords, TLS, the nodes of a Cluster."""
import os
import shutil
import socket
import subprocess

import pytest

from hosts import TAMIS, WAIT, follow, locate, wait_for

pytestmark = pytest.mark.skipif(not shutil.which("redis-server"), reason="no redis-server")


def refused(world, url, text, **more):
    world.run("create", "x.tamis", "--force")
    done = subprocess.run([TAMIS, "publish", "x.tamis", "--to", url, "--as", "x", "--linger", "1s"], input="",
                          cwd=world.folder, capture_output=True, text=True, timeout=WAIT, **more)
    assert done.returncode == 2 and text in done.stderr, done.stderr


def test_a_password_is_taken_from_the_environment_or_a_file(world):
    world.start_server()
    world.redis("CONFIG", "SET", "requirepass", "s3cret/x")
    world.run("create", "a.tamis")
    (world.folder / "password").write_text("s3cret/x\n")
    for i, env in enumerate([{"TAMIS_REDIS_PASSWORD": "s3cret/x"}, {"TAMIS_REDIS_PASSWORD_FILE": "password"}]):
        url = "redis://%s127.0.0.1:%d/some%%20name?db=3" % ("default@" if i else "", world.port)
        env = dict(os.environ, **env)
        world.run("publish", "a.tamis", "--to", url, "--as", "host 1/β", input="+ann\n", env=env)
        world.run("follow", url, "-o", "copies%d" % i, "--once", "--for", "120s", env=env)
        assert world.run("locate", "copies%d" % i, "ann") == "ann\thost 1/β\n"
    url = "redis://127.0.0.1:%d/n" % world.port
    refused(world, url, "NOAUTH")
    refused(world, url, "WRONGPASS", env=dict(os.environ, TAMIS_REDIS_PASSWORD="wrong"))
    refused(world, url, "no password in it", env=dict(os.environ, TAMIS_REDIS_PASSWORD_FILE="none"))
    for login in (":s3cret%2Fx@", "default:s3cret%2Fx@"):  # where everybody could read it
        refused(world, url.replace("//", "//" + login), "TAMIS_REDIS_PASSWORD")


# ---- TLS -------------------------------------------------------------------------------------------

def certificate(folder, name, subject, *more):
    """NAME.key, NAME.pem: signed by ca, or by itself."""
    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", name + ".key",
            "-subj", "/CN=" + subject, *(["-x509", "-days", "2", "-out", name + ".pem"] if name == "ca" else
                                         ["-out", name + ".csr"]))
    if name != "ca":
        (folder / (name + ".ext")).write_text("".join(more) + "\n")
        openssl("x509", "-req", "-in", name + ".csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                "-days", "2", "-extfile", name + ".ext", "-out", name + ".pem")


@pytest.fixture
def tls(world):
    """The world's server with TLS, which can be stopped and started again."""
    certificate(world.folder, "ca", "authority")
    certificate(world.folder, "server", "server", "subjectAltName=IP:127.0.0.1")
    certificate(world.folder, "client", "client")
    world.redis = lambda *command: subprocess.run(
        ["redis-cli", "-p", str(world.port), "--tls", "--cacert", "ca.pem", "--cert", "client.pem", "--key",
         "client.key", *command], cwd=world.folder, capture_output=True, text=True, timeout=60).stdout.strip()

    def start(clients="no"):
        world.server = world.start(
            "redis-server", "--port", "0", "--tls-port", str(world.port), "--bind", "127.0.0.1", "--dir",
            str(world.folder), "--save", "", "--tls-cert-file", "server.pem", "--tls-key-file", "server.key",
            "--tls-ca-cert-file", "ca.pem", "--tls-auth-clients", clients, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True)
        wait_for(lambda: world.redis("PING") == "PONG" or world.server.poll() is not None, "the server")
        if world.server.poll() is not None:
            why = world.server.stderr.read()
            if "'tls-port" in why.replace('"', "'") and "Bad directive" in why:
                pytest.skip("this redis-server has no TLS")
            raise AssertionError("the server does not start: " + why)
    world.start_tls = start
    world.run("create", "a.tamis")
    return world


def test_tls_with_a_certificate_that_is_verified(tls):
    tls.start_tls()
    base = "rediss://127.0.0.1:%d/hosts" % tls.port
    url = base + "?ca=%2E/ca.pem"
    origin = tls.start(TAMIS, "publish", "a.tamis", "--to", url, "--as", "a", "--stay", "--beat", "300ms",
                       "--max-age", "100ms", stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def feed(text):
        origin.stdin.write(text.encode())
        origin.stdin.flush()
    feed("".join("+%d\n" % i for i in range(200000)))  # messages longer than one record of TLS
    follower = follow(tls, "copies", url)
    found = lambda key: "a" in locate(tls, "copies", [key])[key][0]
    wait_for(lambda: os.path.exists(tls.folder / "copies/status") and found("199999"), "the copy")
    tls.server.kill()
    tls.server.wait()
    wait_for(lambda: locate(tls, "copies", ["no"])["no"][1] == {"a"}, "doubt")
    feed("+new\n")
    tls.start_tls()
    wait_for(lambda: found("new"), "after it was there again")
    assert origin.poll() is None and follower.poll() is None
    refused(tls, base, "certificate")                                           # unknown authority
    refused(tls, url.replace("127.0.0.1", "localhost"), "ostname mismatch")     # not for this name
    refused(tls, base + "?ca=a.tamis", "a.tamis")
    refused(tls, "redis://127.0.0.1:%d/hosts" % tls.port, "127.0.0.1")          # without TLS
    refused(tls, base + "?ca=ca.pem&cert=client.pem", "not an address")         # and its key


def test_tls_with_a_certificate_of_the_client(tls):
    tls.start_tls("yes")
    url = "rediss://127.0.0.1:%d/hosts?ca=ca.pem" % tls.port
    refused(tls, url, "127.0.0.1")
    url += "&cert=client.pem&key=client.key"
    tls.run("publish", "a.tamis", "--to", url, "--as", "a", input="+ann\n")
    tls.run("follow", url, "-o", "copies", "--once", "--for", "120s")
    assert tls.run("locate", "copies", "ann") == "ann\ta\n"


# ---- a Cluster -------------------------------------------------------------------------------------

class Node:
    def __init__(self, world, first, last):
        with socket.socket() as one, socket.socket() as two:
            one.bind(("127.0.0.1", 0))
            two.bind(("127.0.0.1", 0))
            self.port, bus = one.getsockname()[1], two.getsockname()[1]
        folder = world.folder / ("node%d" % first)
        folder.mkdir()
        self.bus = bus
        self.process = world.start("redis-server", "--port", str(self.port), "--cluster-enabled", "yes",
                                   "--cluster-port", str(bus), "--bind", "127.0.0.1", "--dir", str(folder),
                                   "--save", "", stdout=subprocess.DEVNULL)
        wait_for(lambda: self("PING") == "PONG", "a node")
        self("CLUSTER", "ADDSLOTSRANGE", str(first), str(last))
        self.id = self("CLUSTER", "MYID")

    def __call__(self, *command):
        return subprocess.run(["redis-cli", "-p", str(self.port), *command], capture_output=True, text=True,
                              timeout=60).stdout.strip()

    def url(self):
        return "redis://127.0.0.1:%d/hosts" % self.port


@pytest.fixture
def cluster(world):
    nodes = [Node(world, first, last) for first, last in [(0, 5461), (5462, 10922), (10923, 16383)]]
    for node in nodes[1:]:
        nodes[0]("CLUSTER", "MEET", "127.0.0.1", str(node.port), str(node.bus))
    wait_for(lambda: all("cluster_state:ok" in node("CLUSTER", "INFO") and
                         "cluster_known_nodes:3" in node("CLUSTER", "INFO") for node in nodes), "the cluster")
    return nodes


def test_the_node_of_a_cluster_is_found_and_found_again(world, cluster):
    slot = cluster[0]("CLUSTER", "KEYSLOT", "hosts")
    home = cluster[int(slot) // 5462]
    away, other = [node for node in cluster if node is not home]
    world.run("create", "a.tamis")
    for i, node in enumerate(cluster):  # from whichever node
        world.run("publish", "a.tamis", "--to", node.url(), "--as", "a", input="+first%d\n" % i)
        world.run("follow", node.url(), "-o", "once%d" % i, "--once", "--for", "120s")
        assert world.run("locate", "once%d" % i, "first%d" % i) == "first%d\ta\n" % i
    origin = world.start(TAMIS, "publish", "a.tamis", "--to", other.url(), "--as", "a", "--stay", "--beat", "300ms",
                         "--max-age", "100ms", stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    follow(world, "copies", away.url())

    def arrives(key):
        origin.stdin.write(b"+%s\n" % key.encode())
        origin.stdin.flush()
        wait_for(lambda: os.path.exists(world.folder / "copies/status") and
                 "a" in locate(world, "copies", [key])[key][0], key)
    arrives("before")
    # The slot moves: keys that are away already are asked for there.
    away("CLUSTER", "SETSLOT", slot, "IMPORTING", home.id)
    home("CLUSTER", "SETSLOT", slot, "MIGRATING", away.id)
    for key in ("hosts", "{hosts}:owners"):
        assert home("MIGRATE", "127.0.0.1", str(away.port), key, "0", "5000") == "OK"
    arrives("meanwhile")
    for key in home("CLUSTER", "GETKEYSINSLOT", slot, "1000").split():
        home("MIGRATE", "127.0.0.1", str(away.port), key, "0", "5000")
    for node in (away, home, other):
        assert node("CLUSTER", "SETSLOT", slot, "NODE", away.id) == "OK"
    arrives("after")
    assert away("EXISTS", "hosts") == "1" and home("CLUSTER", "COUNTKEYSINSLOT", slot) == "0"
