"""What docs/redis.md and docs/redis-operations.md show is what the server says; the examples run."""
import glob
import os
import re
import shlex
import subprocess
import sys

import pytest
import redis

from conftest import ASAN, MODULE, ROOT, wait
from test_keys import info, refused

PAGE = ""
for name in ("redis.md", "redis-operations.md"):
    with open(os.path.join(ROOT, "docs", name)) as page:
        PAGE += page.read()


@pytest.mark.parametrize("block", re.findall(r"^```redis\n(.*?)^```", PAGE, re.M | re.S))
def test_a_block(server, block):
    steps = re.findall(r"^> (.*)\n((?:(?!> ).*\n)*)", block, re.M)
    assert steps
    for command, expected in steps:
        said = subprocess.run(["redis-cli", "-s", server.socket, "--no-raw"] + shlex.split(command),
                              capture_output=True, text=True).stdout
        assert said.strip() == expected.strip(), command


def tokens(arguments):
    """Every word that the arguments of a command, as COMMAND DOCS lists them, are given with."""
    found = set()
    for one in arguments:
        one = {one[i]: one[i + 1] for i in range(0, len(one), 2)}
        found |= {one[b"token"].decode()} if b"token" in one else set()
        found |= tokens(one.get(b"arguments", []))
    return found


def test_the_options_of_the_page(r):
    """COMMAND DOCS lists every option that the page has, for the commands that take it."""
    named = set(re.findall(r"^\| `([A-Z]+)[^`]*` \|", PAGE[PAGE.index("Options of `RESERVE`"):PAGE.index("## Removal")], re.M))
    assert {"GROWTH", "NX", "COMPACT", "LIKE"} <= named
    valkeys = set(re.findall(r"[A-Z]{4,}", re.search(r"`BF.INSERT … (TIGHTENING [^`]*)`", PAGE).group(1)))
    wanted = {"TAMIS.RESERVE": named - {"NX", "FAMILY"}, "TAMIS.INSERT": named - {"LIKE", "FAMILY"},
              "BF.INSERT": valkeys}
    docs = r.execute_command("COMMAND DOCS", *wanted)
    for name, words in zip(docs[::2], docs[1::2]):
        facts = {words[i]: words[i + 1] for i in range(0, len(words), 2)}
        lacks = wanted[name.decode().upper()] - tokens(facts[b"arguments"])
        assert not lacks, name


def test_save_and_load(r, tmp_path):
    block = re.search(r"^```python\n(.*?)^```", PAGE, re.M | re.S).group(1)
    names = {}
    exec(block, names)
    r.execute_command("TAMIS.RESERVE", "f", 0.0001, 1000000)
    r.execute_command("TAMIS.MADD", "f", *range(1000))
    names["save"](r, "f", tmp_path / "f.tamis")
    names["load"](r, "g", tmp_path / "f.tamis", 100000)
    assert r.execute_command("DEBUG", "DIGEST-VALUE", "f") == \
        r.execute_command("DEBUG", "DIGEST-VALUE", "g")


def test_the_tenant_of_the_page(server, r):
    """He works with his filters, and nothing that he may run tells the family key."""
    line = re.search(r"^> (ACL SETUSER tenant .*)", PAGE, re.M).group(1)
    r.execute_command(*shlex.split(line))
    secret = bytes.fromhex(r.config_get("tamis.family-key")["tamis.family-key"])
    user = server.client(username="tenant", password="secret")
    user.execute_command("TAMIS.MADD", "tenant:f", *range(100))
    user.execute_command("TAMIS.PUBLISH", "tenant:f", "tenant:{s}", "me")
    assert secret not in user.execute_command("TAMIS.DUMP", "tenant:f", 0)[1]
    for words in ("DUMP tenant:f", "MIGRATE 127.0.0.1 1 tenant:f 0 1000", "SYNC", "PSYNC ? -1", "MONITOR",
                  "CONFIG GET tamis.family-key", "CONFIG REWRITE", "SLOWLOG GET", "SAVE", "BGSAVE",
                  "DEBUG RELOAD", "REPLICAOF 127.0.0.1 1", "BGREWRITEAOF", "ACL SETUSER tenant +dump",
                  "TAMIS.DUMP tenant:f 0 WITHKEY", "BF.SCANDUMP tenant:f 0 WITHKEY",
                  "TAMIS.PUBLISH tenant:f tenant:{s} me WITHKEY", "MODULE LIST", "FAILOVER",
                  "EVAL redis.call('DUMP',KEYS[1]) 1 tenant:f",
                  "EVAL redis.call('CONFIG','GET','tamis.family-key') 0"):
        with pytest.raises(redis.ResponseError, match="(?i)permission|WITHKEY needs|can't run this command|not allowed"):
            user.execute_command(*words.split())
    r.config_set("rdbcompression", "no")  # it may cut the key in two
    assert secret in r.dump("tenant:f") and secret in r.execute_command("TAMIS.DUMP", "tenant:f", 0,
                                                                        "WITHKEY")[1]
    r.config_set("rdbcompression", "yes")
    r.execute_command("ACL", "DELUSER", "tenant")


def test_where_it_is_installed(tmp_path):
    """make puts it where the page loads it from, and Debian's service may run it there."""
    path = re.search(r"^loadmodule (/\S+)$", PAGE, re.M).group(1)
    words = re.search(r"^sudo (make install .*)$", PAGE, re.M).group(1).split()
    build = ["VARIANT=" + os.environ.get("TAMIS_VARIANT", "release"), "DESTDIR=" + str(tmp_path)]
    done = subprocess.run(words + build, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert os.access(str(tmp_path) + path, os.X_OK)
    with open("/lib/systemd/system/redis-server.service") as unit:
        allowed = re.search(r"^ExecPaths=(.*)$", unit.read(), re.M).group(1).split()
    assert any(path.startswith(folder + "/") for folder in allowed)


@pytest.mark.skipif(ASAN, reason="the sanitized module has libraries of its own")
def test_the_packages_of_the_image():
    """The image of the page has the libraries that the module is linked with, and no others."""
    installed = re.search(r"apt-get install -y (.*)$", PAGE, re.M).group(1).split()
    linked = subprocess.run(["readelf", "-d", MODULE], capture_output=True, text=True, check=True).stdout
    found = subprocess.run(["dpkg", "-S", *["*/" + name for name in re.findall(r"NEEDED.*\[(.*)\]", linked)]],
                           capture_output=True, text=True).stdout
    needed = {line.split(":")[0] for line in found.splitlines() if not line.startswith("libc6")}
    assert needed and {name for name in installed if name.startswith("lib")} == needed


def test_options_of_records(r):
    """All but those that the page leaves out."""
    r.execute_command("TAMIS.ADD", "f", "x")
    for words in (["LIKE", "f"], ["UNIQUE"], ["WINDOW", 5]):
        assert "unknown option" in refused(r, "TAMIS.XRESERVE", "x", 0.01, 10, "ATTRIBUTES", 1, "a", *words)
    assert "unknown option" in refused(r, "TAMIS.INSERT", "g", "LIKE", "f", "ITEMS", "x")
    for words in (["EXPANSION", 2], ["NONSCALING"], ["GROWTH", "dynamic"], ["DELETABLE"], ["HASH", "xxh3"],
                  ["LAYOUT", "spread"], ["MAXMEM", 100000], ["KEY", "ab" * 16]):
        r.delete("x")
        r.execute_command("TAMIS.XRESERVE", "x", 0.01, 10, "ATTRIBUTES", 1, "a", *words)


def test_it_is_not_unloaded(servers):
    server = servers()
    assert server.r.keys() == []
    assert "can't unload" in refused(server.r, "MODULE", "UNLOAD", "tamis")


def resident(server):
    with open("/proc/%d/statm" % server.process.pid) as statm:
        return int(statm.read().split()[1]) * 4096


@pytest.mark.skipif(ASAN, reason="the sanitizer's allocator is not the server's")
def test_large_filters_are_made_untouched(servers):
    """Making and growing take memory, and no page of it."""
    server = servers()
    r = server.r
    r.execute_command("TAMIS.RESERVE", "small", 0.01, 1000)
    before = resident(server)
    r.execute_command("TAMIS.RESERVE", "f", 0.01, 300000000, "GROWTH", "fixed")
    r.execute_command("TAMIS.RESERVE", "g", 0.01, 1000, "EXPANSION", 32768)
    r.execute_command("TAMIS.MADD", "g", *range(2000))
    assert r.memory_usage("f") > 300 << 20 and r.memory_usage("g") > 30 << 20
    assert info(r, "g")["vectors"] == 2
    assert resident(server) - before < 12 << 20  # the pages of 2,000 items, and their command


def test_who_frees_in_the_background(servers):
    server = servers(lazyfree_lazy_user_del="no")
    r = server.r

    def freed(command, capacity):
        r.config_resetstat()
        r.execute_command("TAMIS.RESERVE", "f", 0.01, capacity, "GROWTH", "fixed")
        r.execute_command(command, "f")
        wait(lambda: r.info("memory")["lazyfree_pending_objects"] == 0)
        return r.info("memory")["lazyfreed_objects"]
    assert freed("UNLINK", 5000000) == 1 and freed("UNLINK", 1000000) == 0
    assert freed("DEL", 5000000) == 0
    r.config_set("lazyfree-lazy-user-del", "yes")
    assert freed("DEL", 5000000) == 1


def test_the_example(server):
    done = subprocess.run([sys.executable, os.path.join(ROOT, "examples", "redis_client.py"), server.socket],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "seen before: 2" in done.stdout


def test_messages_of_the_page():
    """Those of tamis in the table of what can be wrong are in its sources, or whoever searches for one does not find it."""
    table = re.search(r"^## When something is wrong\n(.*?)^## ", PAGE, re.M | re.S).group(1)
    server = ("Bad directive", "Module Configuration", "Unknown command", "This replica is")
    said = [text for row in re.findall(r"^\| (.*?) \|", table, re.M)[2:] for text in re.findall(r"`([^`]*)`", row)
            if " " in text and not text.startswith(server)]
    sources = ""
    for path in sorted(glob.glob(os.path.join(ROOT, "redis", "*.c"))):
        with open(path) as source:
            sources += re.sub(r'"\s*"', "", source.read())
    sources = sources.replace("the %s is full", "the filter is full")
    assert len(said) > 10
    for text in said:
        assert text in sources, text


def test_every_command_is_described(r):
    for name in r.execute_command("COMMAND LIST", "FILTERBY", "MODULE", "tamis"):
        name = name.decode().upper()
        assert name in PAGE or "`%s`" % name.split(".")[1] in PAGE, name
    for name in r.config_get("tamis.*"):
        assert "`%s`" % name in PAGE
    assert os.path.exists(MODULE)
