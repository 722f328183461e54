"""What an operator sees: users, documentation, configuration, INFO, events, other modules."""
import base64
import glob
import os
import re
import subprocess
import time

import pytest
import redis

from conftest import MODULE, ROOT, SERVER, environment, free_port, wait
from sets import Load
from test_foreign import SAID as FOREIGN
from test_foreign_cuckoo import SAID as CUCKOO
from test_keys import info, refused, reserve

READS = ["EXISTS", "MEXISTS", "CARD", "INFO", "XQUERY", "XINFO", "DUMP", "SCANDUMP"]
WRITES = ["RESERVE", "ADD", "MADD", "INSERT", "DEL", "MDEL", "REMOVE", "CLEAR", "FORGET", "MERGE",
          "INTERSECT", "FOLD", "XRESERVE", "XADD", "XDEL", "PUBLISH",
          "UNPUBLISH", "LOAD", "LOADCHUNK"]
ALIASES = ["RESERVE", "ADD", "MADD", "INSERT", "EXISTS", "MEXISTS", "CARD", "INFO", "SCANDUMP",
           "LOADCHUNK"]


def test_users(server, r):
    """A reader with %R may read and no more; keys outside the pattern are out of reach."""
    r.execute_command("TAMIS.RESERVE", "app:f", 0.01, 100, "DELETABLE")
    r.execute_command("TAMIS.MADD", "app:f", "x", "y")
    reads = ["+tamis." + c.lower() for c in READS] + ["+bf.exists", "+bf.info"]
    r.execute_command("ACL", "SETUSER", "reader", "reset", "on", ">pw", "%R~app:*", *reads)
    r.execute_command("ACL", "SETUSER", "writer", "reset", "on", ">pw", "~app:*", "+@all")
    r.execute_command("ACL", "SETUSER", "eyes", "reset", "on", ">pw", "%R~app:*", "+@all")
    reader, writer, eyes = (server.client(username=u, password="pw")
                            for u in ("reader", "writer", "eyes"))
    assert reader.execute_command("TAMIS.EXISTS", "app:f", "x") == 1
    assert reader.execute_command("TAMIS.MEXISTS", "app:f", "x", "z") == [1, 0]
    assert reader.execute_command("TAMIS.CARD", "app:f") == 2
    assert reader.execute_command("BF.EXISTS", "app:f", "x") == 1
    assert info(reader, "app:f")["items"] == 2
    assert reader.execute_command("TAMIS.DUMP", "app:f", 0)[0] == 0
    denied = redis.exceptions.NoPermissionError
    for client, words in ((reader, ["TAMIS.ADD", "app:f", "z"]), (reader, ["TAMIS.DEL", "app:f", "x"]),
                          (eyes, ["TAMIS.ADD", "app:f", "z"]), (eyes, ["BF.ADD", "app:f", "z"]),
                          (eyes, ["TAMIS.CLEAR", "app:f"]), (eyes, ["TAMIS.MERGE", "app:g", 1, "app:f"]),
                          (eyes, ["TAMIS.LOAD", "app:g", 0, "x"]), (eyes, ["TAMIS.FOLD", "app:f"]),
                          (writer, ["TAMIS.EXISTS", "f", "x"]), (writer, ["TAMIS.ADD", "f", "x"]),
                          (writer, ["TAMIS.MERGE", "app:g", 2, "app:f", "other"]),
                          (writer, ["TAMIS.INTERSECT", "app:g", "app:f", "other"]),
                          (writer, ["TAMIS.RESERVE", "app:g", "LIKE", "other"]),
                          (writer, ["TAMIS.RESERVE", "app:g", 0.1, 5, "LIKE", "other"])):
        with pytest.raises(denied):
            client.execute_command(*words)
    assert eyes.execute_command("TAMIS.EXISTS", "app:f", "x") == 1
    assert writer.execute_command("TAMIS.ADD", "app:f", "z") == 1
    r.execute_command("ACL", "DELUSER", "reader", "writer", "eyes")


def test_a_key_out_of_reach_is_so_for_every_command(server, r):
    """In every place where a command takes a key; said twice, LIKE would be asked for once only."""
    more = {"RESERVE": "0.1 10", "ADD": "x", "MADD": "x", "INSERT": "ITEMS x", "EXISTS": "x",
            "MEXISTS": "x", "DEL": "x", "MDEL": "x", "REMOVE": "ITEMS x", "MERGE": "1 app:f",
            "INTERSECT": "app:f app:f", "XRESERVE": "0.1 10 ATTRIBUTES 1 a", "XADD": "a=1",
            "XDEL": "a=1", "XQUERY": "a=1", "PUBLISH": "app:s me", "DUMP": "0", "LOAD": "0 x",
            "SCANDUMP": "0", "LOADCHUNK": "1 x"}
    r.execute_command("TAMIS.ADD", "app:f", "x")
    r.execute_command("TAMIS.RESERVE", "secret", 0.01, 100, "KEY", "00" * 16)
    r.execute_command("ACL", "SETUSER", "app", "reset", "on", ">pw", "~app:*", "+@all")
    user = server.client(username="app", password="pw")
    calls = [["TAMIS." + c, "secret"] + more.get(c, "").split() for c in READS + WRITES]
    calls += [["BF." + c, "secret"] + more.get(c, "").split() for c in ALIASES]
    calls += [words.split() for words in (
        "TAMIS.MERGE app:g 1 secret", "TAMIS.MERGE app:g 2 app:f secret",
        "TAMIS.INTERSECT app:g app:f secret", "TAMIS.INTERSECT app:g secret app:f",
        "TAMIS.PUBLISH app:f secret me", "TAMIS.RESERVE app:g LIKE secret",
        "TAMIS.RESERVE app:g 0.1 5 DELETABLE like secret")]
    for call in calls:
        with pytest.raises(redis.exceptions.NoPermissionError):
            user.execute_command(*call)
        assert "secret" in r.execute_command("COMMAND GETKEYS", *call), call
    with pytest.raises(redis.ResponseError, match="LIKE may be given only once"):
        user.execute_command("TAMIS.RESERVE", "app:g", 0.1, 5, "LIKE", "app:f", "LIKE", "secret")
    assert r.exists("app:g") == 0
    r.execute_command("ACL", "DELUSER", "app")


def test_complexity_on_the_page(r):
    """Every command is in the table, with the order of growth that COMMAND DOCS states."""
    with open(os.path.join(ROOT, "docs/redis-operations.md")) as page:
        rows = re.findall(r"^\| (`.*?) \| .*?(O\([^)]*\))", page.read().split("## Complexity")[1], re.M)
    orders = {name.split()[0]: order for names, order in rows[::-1] for name in re.findall("`([^`]*)`", names)}
    docs = r.execute_command("COMMAND DOCS", *r.execute_command("COMMAND LIST", "FILTERBY", "MODULE", "tamis"))
    assert len(docs) > 100
    for name, entry in zip(docs[::2], docs[1::2]):
        name = name.decode().upper()
        stated = dict(zip(entry[::2], entry[1::2]))[b"complexity"].decode()
        assert (orders.get(name) or orders.get(name.split(".")[1], "?")) in stated, (name, stated)


def test_documentation(r):
    docs = r.execute_command("COMMAND DOCS", *["TAMIS." + c for c in READS + WRITES])
    assert len(docs) == 2 * len(READS + WRITES)
    for entry in docs[1::2]:
        fields = dict(zip(entry[::2], entry[1::2]))
        assert len(fields[b"summary"]) > 10 and fields[b"since"] == b"0.1.0"
        assert fields[b"complexity"].startswith(b"O(") and fields[b"arguments"]
    described = r.execute_command("COMMAND INFO", *["TAMIS." + c for c in READS + WRITES])
    for name, entry in zip(READS + WRITES, described):
        assert (b"readonly" in entry[2]) == (name in READS), name
        assert (b"write" in entry[2]) == (name in WRITES), name
        assert (b"denyoom" in entry[2]) == (name in "RESERVE ADD MADD INSERT MERGE INTERSECT XRESERVE XADD PUBLISH LOAD "
                                            "LOADCHUNK".split()), name
    assert None not in r.execute_command("COMMAND INFO", *["BF." + c for c in ALIASES])
    keys = {"TAMIS.MERGE to 2 a b RESTATE": "to a b", "TAMIS.INTERSECT to a b": "to a b",
            "TAMIS.RESERVE k LIKE model": "k model", "TAMIS.RESERVE k 0.1 10 LIKE model": "k model",
            "TAMIS.RESERVE LIKE 0.1 10": "LIKE", "TAMIS.MADD k a b": "k",
            "TAMIS.INSERT k ITEMS LIKE b": "k", "TAMIS.PUBLISH k stream owner MISS 1": "k stream", "BF.RESERVE k 0.1 10": "k"}
    for command, names in keys.items():
        said = r.execute_command("COMMAND GETKEYS", *command.split())
        assert said == names.split(), command


def test_configuration(servers):
    server = servers(**{"tamis.capacity": 500, "tamis.error-rate": "0.001", "tamis.expansion": 3})
    r = server.r
    r.execute_command("BF.ADD", "f", "x")
    i = info(r, "f")
    assert i["capacity"] == 500 and float(i["fpp"]) == 0.001
    assert r.execute_command("BF.INFO", "f", "EXPANSION") == [3]
    r.config_set("tamis.capacity", 50)
    r.config_set("tamis.error-rate", 0.02)
    r.config_set("tamis.expansion", 0)
    r.config_set("tamis.value-limit", "1mb")
    r.execute_command("BF.ADD", "g", "x")
    i = info(r, "g")
    assert (i["capacity"], float(i["fpp"]), i["memory_limit"]) == (50, 0.02, 1 << 20)
    for name, value in (("capacity", 0), ("error-rate", 1), ("error-rate", "x"),
                        ("expansion", 40000), ("value-limit", 1000), ("family-key", "12"),
                        ("work-limit", "1")):
        with pytest.raises(redis.ResponseError):
            r.config_set("tamis." + name, value)
    for rate in ("0.99999999999", "1e-100", "0.02"):  # what CONFIG REWRITE writes, the server must start with
        r.config_set("tamis.error-rate", rate)
        assert r.config_get("tamis.error-rate") == {"tamis.error-rate": rate}
    # The family is written down by CONFIG REWRITE, and two servers may share one.
    r.config_rewrite()
    key = r.config_get("tamis.family-key")["tamis.family-key"]
    other = servers(**{"tamis.family-key": key})
    assert other.r.info("tamis")["tamis_family"] == "given"
    other.r.execute_command("BF.ADD", "h", "y")
    r.restore("h", 0, other.r.dump("h"))
    r.execute_command("TAMIS.MERGE", "all", 2, "g", "h", "RESTATE")
    assert r.execute_command("TAMIS.MEXISTS", "all", "x", "y") == [1, 1]
    with open(os.path.join(server.folder, "conf")) as conf:
        assert key in conf.read()


def test_loaded_with_a_configuration(servers):
    server = servers(load=False)
    assert server.r.execute_command("MODULE", "LOADEX", MODULE, "CONFIG", "tamis.capacity", 7,
                                    "ARGS", "bf=no") == b"OK"
    server.r.execute_command("TAMIS.ADD", "f", "x")
    assert info(server.r, "f")["capacity"] == 7
    assert refused(server.r, "BF.ADD", "f", "x").startswith("unknown command")


def test_info_section(r):
    before = int(r.info("tamis")["tamis_values"])
    r.execute_command("TAMIS.ADD", "f", "x")
    section = r.info("tamis")
    assert int(section["tamis_values"]) == before + 1
    assert section["tamis_version"] == "0.1.0"
    assert section["tamis_bf_aliases"] == "yes" and section["tamis_dumps"] == 0
    r.execute_command("TAMIS.RESERVE", "fixed", 0.01, 8, "GROWTH", "fixed")
    taken = int(r.info("tamis")["tamis_bytes"])
    assert taken > int(section["tamis_bytes"])
    r.execute_command("TAMIS.MADD", "fixed", *range(100))
    assert r.info("tamis")["tamis_refused_adds"] == section["tamis_refused_adds"] + 1
    r.delete("fixed")
    assert int(r.info("tamis")["tamis_bytes"]) == int(section["tamis_bytes"])


def totals(r):
    section = r.info("tamis")
    return section["tamis_items"], section["tamis_parts"]


def test_totals(servers):
    """The sums over all values of what each of them says, whatever was done to them."""
    server = servers(port=free_port())
    replica = servers(port=free_port(), replicaof="127.0.0.1 %d" % server.port)
    r, do = server.r, server.r.execute_command
    load = Load(r)
    load.create()
    load.run(300)
    do("CF.ADD", "c", "x")
    for cursor, data in FOREIGN["grown"]["chunks"]:
        do("BF.LOADCHUNK", "foreign", cursor, base64.b64decode(data))
    for cursor, data in CUCKOO["grown"]["chunks"]:
        do("CF.LOADCHUNK", "cuckoo", cursor, base64.b64decode(data))
    do("CF.ADD", "cuckoo", "one more")
    do("TAMIS.CONVERT", "foreign", "ITEMS", *range(500))
    do("TAMIS.RESERVE", "w", 0.01, 10, "GROWTH", "window", "WINDOW", 0.05)
    do("TAMIS.MADD", "w", *range(1000))
    do("TAMIS.MADD", "stack", *range(10))
    do("TAMIS.RESERVE", "stack2", 0.01, 10, "GROWTH", "scalable")
    do("TAMIS.MADD", "stack2", *range(2000))
    do("TAMIS.MERGE", "sum", 1, "stack")
    do("TAMIS.RESERVE", "alike", "LIKE", "stack2")
    do("TAMIS.RESERVE", "fold", 0.01, 10000, "GROWTH", "fixed")
    do("TAMIS.FOLD", "fold")
    do("TAMIS.CLEAR", "sum")
    do("TAMIS.LOAD", "half", 0, do("TAMIS.DUMP", "stack2", 0)[1][:300])
    do("TAMIS.DEL", "c", "x")
    do("TAMIS.CONVERT", "foreign", "FORCE")
    do("COPY", "stack2", "copy")
    do("COPY", "cuckoo", "cuckoo2")
    do("RENAME", "stack", "stack3")
    time.sleep(0.06)
    do("TAMIS.FORGET", "w")

    do("TAMIS.XRESERVE", "x", 0.01, 10, "ATTRIBUTES", 2, "a", "b", "DELETABLE")
    for i in range(50):
        do("TAMIS.XADD", "x", "a=%d" % i, "b=7")
    do("TAMIS.XDEL", "x", "a=1", "b=7")
    filters = [key for key in r.keys() if key not in (b"half", b"x")]
    assert totals(r)[0] == 49 + sum(do("TAMIS.CARD", key) for key in filters) > 3000
    before = totals(r)[1]
    do("TAMIS.RESERVE", "stack4", 0.01, 10, "GROWTH", "scalable")
    do("TAMIS.MADD", "stack4", *range(3000))
    assert totals(r)[1] - before == info(r, "stack4")["vectors"] > 3
    assert do("WAIT", 1, 20000) == 1
    assert totals(replica.r) == totals(r)
    before = totals(r)
    assert r.save()
    server.restart()
    assert totals(server.r) == before
    server.r.execute_command("DEBUG", "RELOAD")
    wait(lambda: totals(server.r) == before)  # the old values are freed beside the server
    server.r.flushall(asynchronous=True)
    wait(lambda: totals(server.r) == (0, 0))


def test_categories(server, r):
    """From 7.4 on: @bloom has what RedisBloom has in it, @cuckoo the rest. Some servers leave the commands of modules
    out of ACL CAT name."""
    if "bloom" not in r.acl_cat():
        assert "@bloom" not in str(r.execute_command("COMMAND", "INFO", "tamis.add"))
        return
    for name, category in (("bf.add", b"@bloom"), ("tamis.merge", b"@bloom"), ("cf.add", b"@cuckoo"),
                           ("cf.del", b"@cuckoo")):
        said = server.raw("COMMAND", "INFO", name)
        assert category in said and b"@write" in said, name
    r.execute_command("ACL", "SETUSER", "u", "on", ">p", "~*", "+@bloom", "-@write")
    u = server.client(username="u", password="p")
    assert u.execute_command("BF.EXISTS", "f", "x") == 0
    assert "no permissions" in refused(u, "BF.ADD", "f", "x")
    assert "no permissions" in refused(u, "CF.EXISTS", "f", "x")


def value_limit(r):
    return int(r.info("tamis")["tamis_value_limit"])


def test_the_limit_of_a_value_is_half_of_what_the_server_may_take(servers):
    r = servers(maxmemory="300mb").r
    assert value_limit(r) == 150 << 20
    r.execute_command("BF.ADD", "f", "x")
    assert info(r, "f")["memory_limit"] == 150 << 20
    r.config_set("maxmemory", "2gb")
    assert value_limit(r) == 1 << 30
    r.config_set("maxmemory", 0)
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    assert value_limit(r) == pages * page // 2
    r.config_set("tamis.value-limit", "7mb")
    assert value_limit(r) == 7 << 20
    r.config_set("tamis.value-limit", 0)
    r.config_set("maxmemory", "50kb")
    assert value_limit(r) == 1 << 16  # not so little that nothing fits


def started_with(servers, arguments):
    """What the settings are, and what the log says."""
    server = servers(arguments)
    return {name: value for name, value in server.r.config_get("tamis.*").items()}, server.log_tail()


def test_arguments_of_other_modules(servers):
    """What a line for RedisBloom or valkey-bloom says is understood."""
    settings, log = started_with(servers, "ERROR_RATE 0.002 INITIAL_SIZE 333 CF_MAX_EXPANSIONS 16")
    assert settings["tamis.error-rate"] == "0.002" and settings["tamis.capacity"] == "333"
    assert "the argument ERROR_RATE sets tamis.error-rate" in log
    assert "the argument CF_MAX_EXPANSIONS has no effect in tamis and is ignored" in log
    settings, log = started_with(
        servers, "bf-error-rate 0.003 bf=yes bf-initial-size 50 bf-expansion-factor 4 "
        "cf-initial-size 2048 cf-bucket-size 4 cf-max-iterations 9 cf-expansion-factor 2")
    assert [settings["tamis." + name] for name in ("error-rate", "capacity", "expansion", "cf-capacity",
                                                   "cf-bucket-size")] == ["0.003", "50", "4", "2048", "4"]
    settings, log = started_with(
        servers, "bf.bloom-fp-rate 0.01 bf.bloom-capacity 70 bf.bloom-expansion 2 "
        "bf.bloom-memory-usage-limit 1048576 bf.bloom-tightening-ratio 0.5")
    assert settings["tamis.expansion"] == "0" and settings["tamis.capacity"] == "70"
    assert settings["tamis.value-limit"] == "1048576"
    settings, log = started_with(servers, "bloom-fp-rate 0.02 bloom-capacity 80 bloom-use-random-seed yes")
    assert settings["tamis.error-rate"] == "0.02" and settings["tamis.capacity"] == "80"
    assert "the argument bloom-fp-rate sets tamis.error-rate" in log
    # What the configuration says comes before the argument.
    server = servers("INITIAL_SIZE 333", **{"tamis.capacity": 44})
    assert server.r.config_get("tamis.capacity") == {"tamis.capacity": "44"}


BARE = subprocess.run([SERVER, "--version"], capture_output=True, text=True, check=True).stdout
BARE = BARE.startswith("Redis") and int(BARE.split("v=")[1].split(".")[0]) >= 8  # RedisBloom's names; else valkey-bloom's
RATE, CAPACITY, EXPANSION, IGNORED = \
    ("bf-error-rate", "bf-initial-size", "bf-expansion-factor", "cf-max-iterations") if BARE else \
    ("bf.bloom-fp-rate", "bf.bloom-capacity", "bf.bloom-expansion", "bf.bloom-tightening-ratio")


@pytest.mark.parametrize("first", [False, True])
def test_lines_of_other_modules(servers, first):
    """In the configuration file, whichever of the two lines comes first; and once it is rewritten."""
    once_more = MODULE + " settings=bf"
    server = servers(load=False, loadmodule=[once_more, MODULE] if first else [MODULE, once_more],
                     **{RATE: "0.02", CAPACITY: 70, EXPANSION: 4, IGNORED: "0.5"})
    r = server.r
    for _ in range(2):
        settings = r.config_get("tamis.*")
        assert [settings["tamis." + name] for name in ("error-rate", "capacity", "expansion")] == ["0.02", "70", "4"]
        assert r.config_get(CAPACITY) == {CAPACITY: "70"} and r.config_get(EXPANSION) == {EXPANSION: "4"}
        assert r.execute_command("BF.ADD", "f", "x") in (0, 1)
        assert IGNORED + " has no effect in tamis and is ignored" in server.log_tail()
        r.config_rewrite()
        server.stop()
        server.process = subprocess.Popen([SERVER, os.path.join(server.folder, "conf")],
                                          env=environment(server.folder), stdout=subprocess.DEVNULL)
        wait(r.ping)
    r.config_set(CAPACITY, 80)
    r.config_set(RATE, "0.005")
    assert r.config_get("tamis.capacity") == {"tamis.capacity": "80"}
    assert r.config_get("tamis.error-rate") == {"tamis.error-rate": "0.005"}
    for name, value in ((CAPACITY, 0), (RATE, 1), (EXPANSION, 0)):
        with pytest.raises(redis.ResponseError, match="cannot be '%s'; see tamis" % value):
            r.config_set(name, value)
    assert {b"tamis", b"bf"} <= {m[b"name"] for m in r.module_list()}


@pytest.mark.skipif(BARE, reason="Redis 8 has RedisBloom's names in its configuration, not valkey-bloom's")
def test_totals_of_valkey_bloom(servers):
    """With its lines come its limit and its section of INFO."""
    server = servers(load=False, loadmodule=[MODULE, MODULE + " settings=bf"],
                     **{"bf.bloom-memory-usage-limit": 1 << 20})
    r = server.r
    assert r.config_get("tamis.value-limit") == {"tamis.value-limit": str(1 << 20)}
    r.execute_command("BF.MADD", "g", *range(3000))
    theirs, ours = r.info("bf"), r.info("tamis")
    assert [theirs["bf_bloom_" + name] for name in ("total_memory_bytes", "num_objects", "num_filters_across_objects",
                                                    "num_items_across_objects")] == \
        [ours["tamis_" + name] for name in ("bytes", "values", "parts", "items")]
    assert ours["tamis_items"] > 2900


@pytest.mark.parametrize("arguments, says", [
    ("ERROR_RATE 2", "the argument ERROR_RATE cannot be '2'; see tamis.error-rate"),
    ("INITIAL_SIZE", "the argument INITIAL_SIZE cannot be 'INITIAL_SIZE'"),
    ("bf-expansion-factor 0", "the argument bf-expansion-factor cannot be '0'"),
    ("bloom-memory-usage-limit 1000", "the argument bloom-memory-usage-limit cannot be '1000'"),
    ("bf.bloom-capacity 0", "the argument bf.bloom-capacity cannot be '0'"),
    ("COLOUR blue", "unknown argument 'COLOUR': tamis knows bf=auto|yes|no, settings=bf alone, and"),
    ("bf=maybe", "unknown argument 'bf=maybe'"),
])
def test_arguments_that_are_wrong(servers, arguments, says):
    server = servers(load=False)
    assert "Error loading the extension" in refused(server.r, "MODULE", "LOAD", MODULE, *arguments.split())
    assert says in server.log_tail()
    assert server.r.ping()


def test_events(server, r):
    r.config_set("notify-keyspace-events", "KEd")
    watch = server.client().pubsub()
    watch.psubscribe("__keyspace@0__:*")
    assert watch.get_message(timeout=60)["type"] == "psubscribe"
    reserve(r, "f", 0.01, 100, "DELETABLE")
    for words in (["ADD", "f", "x"], ["EXISTS", "f", "x"], ["DEL", "f", "x"], ["DEL", "f", "x"],
                  ["MERGE", "f", 1, "f"], ["CLEAR", "f"]):
        r.execute_command("TAMIS." + words[0], *words[1:])
    seen = []
    r.execute_command("TAMIS.ADD", "last", "x")
    while not seen or seen[-1][0] != "last":
        message = watch.get_message(timeout=60)
        seen.append((message["channel"].decode().split(":")[1], message["data"].decode()))
    assert seen[:-1] == [("f", "tamis." + e) for e in ("reserve", "add", "del", "merge", "clear")]
    r.config_set("notify-keyspace-events", "")


@pytest.fixture(scope="module")
def bf_module(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("bf") / "bf.so")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bf_module.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", path, source], check=True)
    return path


def test_beside_a_module_called_bf(servers, bf_module):
    """The other was first: its commands stay, ours are there, the server runs."""
    server = servers(load=False, loadmodule=[bf_module, MODULE])
    assert server.r.execute_command("BF.ADD", "f", "x") == b"theirs"
    assert server.r.execute_command("TAMIS.ADD", "f", "x") == 1
    assert refused(server.r, "BF.EXISTS", "f", "x").startswith("unknown command")
    assert server.r.info("tamis")["tamis_bf_aliases"] == "no"
    assert "Error loading" in refused(server.r, "MODULE", "LOAD", MODULE, "settings=bf")
    assert "another module is called bf and has these settings" in server.log_tail()
    late = servers(load=False)
    assert late.r.execute_command("MODULE", "LOAD", bf_module) == b"OK"
    assert late.r.execute_command("MODULE", "LOAD", MODULE, "bf=auto") == b"OK"
    assert late.r.execute_command("BF.ADD", "f", "x") == b"theirs"
    insists = servers(load=False, loadmodule=[bf_module])
    with pytest.raises(redis.ResponseError, match="Error loading the extension"):
        insists.r.execute_command("MODULE", "LOAD", MODULE, "bf=yes")
    assert insists.r.ping() and insists.r.set("still", "there")
    with pytest.raises(redis.ResponseError, match="Error loading the extension"):
        insists.r.execute_command("MODULE", "LOAD", MODULE, "what=ever")
    assert insists.r.ping()


def test_what_is_replicated(servers):
    """A command without options as it came, which is the cheapest; else what it came to."""
    master = servers(port=free_port(), appendonly="yes", appendfsync="always")
    replica = servers(port=free_port(), replicaof="127.0.0.1 %d" % master.port)
    wait(lambda: replica.r.info("replication")["master_link_status"] == "up")
    r = master.r
    r.execute_command("BF.RESERVE", "f", 0.01, 10)
    r.execute_command("BF.ADD", "f", "one")
    r.execute_command("BF.MADD", "f", *range(100))
    r.execute_command("BF.ADD", "f", "one")  # changes nothing
    r.execute_command("BF.INSERT", "g", "ITEMS", "x")
    r.execute_command("BF.RESERVE", "full", 0.01, 3, "NONSCALING")
    assert "full" in str(r.execute_command("BF.MADD", "full", *range(1000))[-1])
    r.execute_command("CF.ADD", "c", "y")
    assert r.execute_command("CF.ADDNX", "c", "y") == 0 and r.execute_command("CF.ADDNX", "c", "z") == 1
    r.execute_command("TAMIS.RESERVE", "w", 0.01, 100, "GROWTH", "window", "WINDOW", 60)
    r.execute_command("BF.ADD", "w", "timed")
    assert r.execute_command("WAIT", 1, 20000) == 1
    keys = ("f", "g", "full", "c", "w")
    assert replica.digest(*keys) == master.digest(*keys)
    [path] = glob.glob(os.path.join(master.folder, "appendonlydir", "*.incr.aof"))
    words = open(path, "rb").read().split(b"\r\n")
    names = [w.decode().upper() for w in words if w.upper().startswith((b"BF.", b"CF.", b"TAMIS."))]
    assert names == ["TAMIS.RESERVE", "BF.ADD", "BF.MADD", "TAMIS.RESERVE", "TAMIS.ADD", "TAMIS.RESERVE",
                     "TAMIS.MADD", "TAMIS.RESERVE", "CF.ADD", "CF.ADDNX", "TAMIS.RESERVE", "TAMIS.INSERT"]
    r.execute_command("DEBUG", "LOADAOF")
    assert replica.digest(*keys) == master.digest(*keys)


def test_a_server_without_the_commands_says_what_it_cannot_follow(servers, bf_module):
    """A file with BF commands; and a master with them, where the names belong to another module."""
    assert "An append-only file with BF and CF commands cannot be loaded" in servers("bf=no").log_tail()
    assert "append-only" not in servers().log_tail()
    master = servers(port=free_port())
    replica = servers(port=free_port(), load=False, loadmodule=[bf_module, MODULE],
                      replicaof="127.0.0.1 %d" % master.port)
    assert "A master that uses tamis through them cannot be followed" in replica.log_tail()
    wait(lambda: replica.r.info("replication")["master_link_status"] == "up")
    master.r.execute_command("CF.ADD", "f", "x")
    wait(lambda: replica.r.info("stats")["unexpected_error_replies"] > 0)


def test_symbols_stay_inside():
    """Nothing but the entrance is visible, so other modules cannot meddle."""
    out = subprocess.run(["nm", "-D", "--defined-only", MODULE], capture_output=True, text=True,
                         check=True).stdout.split("\n")
    names = [line.split()[-1] for line in out if line]
    assert [n for n in names if not n.startswith(("__asan", "__ubsan", "__odr"))] == \
        ["RedisModule_OnLoad"]


def test_a_server_without_the_module_loads_files_without_its_values(servers):
    server = servers()
    server.r.set("plain", "x")
    server.r.save()
    server.stop()
    server.load = False
    server.start()
    assert server.r.get("plain") == b"x"
