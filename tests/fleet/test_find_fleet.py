"""find --fleet prints what a scan of all hosts would print, or says which host it did not reach."""
import collections
import csv
import io
import json
import os
import random
import signal
import subprocess

import pytest

from fleet import LONG, TAMIS, WAIT, Clocks, Host, Question
from test_where import grow

QUESTIONS = 500 if LONG else 60


@pytest.fixture
def hosts(fleet):
    """A command that runs on a host: away is a file there, and then nobody answers."""
    fleet.env["PATH"] = os.path.dirname(os.path.abspath(TAMIS)) + ":" + fleet.env["PATH"]
    (fleet.folder / "run").write_text(
        '#!/bin/sh\nhost=$1; shift\ncd "$(dirname "$0")/$host" || exit 255\n'
        '[ -e away ] && exit 255\n[ -e slow ] && sleep 1000\n[ -e cut ] && { "$@" | head -c 40; exit; }\n'
        '[ -e loud ] && echo loud >&2\nexec "$@"\n')
    return fleet


VIA = "sh ./run {host}"


def find(fleet, *words, status=(0, 1), via=VIA, **more):
    return fleet.run("find", "--fleet", fleet.url, "--via", via, *words, status=status, **more)


def scan(fleet, q):
    return sorted("%s:%s" % (h.name, raw) for h in fleet.hosts for raw in q.scan(h.records))


@pytest.mark.parametrize("carrier", ["folder", "redis"])
def test_across_is_a_scan_across(hosts, carrier):
    fleet = hosts
    if carrier == "redis":
        fleet.start_redis()
    grow(fleet, 3, killed=True)
    for _ in range(QUESTIONS if carrier == "folder" else 15):
        q = Question(random.choice(fleet.hosts).records)
        done = find(fleet, *q.words)
        expected = scan(fleet, q)
        assert sorted(done.stdout.splitlines()) == expected, (q.words, done.stderr)
        assert done.returncode == (0 if expected else 1)


def test_other_forms(hosts):
    fleet = hosts
    grow(fleet, 2)
    q = Question([])
    q.words, q.tests = ["ip=10.1.0.0/16"], [lambda r: r["ip"].startswith("10.1.")]
    matches = [(h.name, r) for h in fleet.hosts for _, r, _ in h.records if q.matches(r)]
    assert find(fleet, *q.words, "--count").stdout == "%d\n" % len(matches)
    assert json.loads(find(fleet, *q.words, "--count", "--json").stdout) == {"matches": len(matches)}
    counted = dict(reversed(line.split("\t")) for line in
                   find(fleet, *q.words, "--count-by", "user").stdout.splitlines())
    assert {user: int(n) for user, n in counted.items()} == collections.Counter(r["user"] for _, r in matches)
    first = find(fleet, *q.words, "--count-by", "user", "--limit", "1").stdout.split("\t")
    assert int(first[0]) == max(map(int, counted.values()))
    rows = list(csv.reader(io.StringIO(find(fleet, *q.words, "--fields", "ip,msg").stdout)))
    assert rows[0] == ["host", "ip", "msg"]
    assert sorted(map(tuple, rows[1:])) == sorted((host, r["ip"], r["msg"]) for host, r in matches)
    lines = [json.loads(line) for line in find(fleet, *q.words, "--json").stdout.splitlines()]
    assert collections.Counter(line["host"] for line in lines) == collections.Counter(host for host, _ in matches)
    assert len(find(fleet, *q.words, "--limit", "7").stdout.splitlines()) == 7
    values = fleet.folder / "list"
    values.write_text("\n".join(sorted({r["ip"] for _, r in matches})) + "\n")
    assert find(fleet, "ip=@list", "--count").stdout == "%d\n" % len(matches)
    assert find(fleet, "ip!=@list", "ip=10.1.0.0/16", status=(1,)).stdout == ""
    named = find(fleet, *q.words, "-H", "-n", "--tag").stdout.splitlines()[0].split(":")
    assert named[0] in {h.name for h in fleet.hosts} and len(named) > 3


def test_records_that_came_after_the_watermark(hosts):
    fleet = hosts
    grow(fleet, 1)
    late = fleet.hosts[3]
    with open(late.folder / "logs" / ("late.%s" % late.kind), "w") as f:
        f.write("time,ip,user,status,msg\n2026-11-02T00:00:00Z,10.50.0.1,zoe,200,late\n")
    assert find(fleet, "user=zoe", status=(1,)).stdout == ""
    assert "zoe" in find(fleet, "user=zoe", "--fresh").stdout


def test_a_host_that_is_away_is_told(hosts):
    fleet = hosts
    grow(fleet, 1)
    away = fleet.hosts[2]
    ip = random.choice(away.records)[1]["ip"]
    q = Question([])
    q.words, q.tests = ["ip=" + ip], [lambda r: r["ip"] == ip]
    (away.folder / "away").touch()
    done = find(fleet, *q.words, status=(2,))
    assert "not reached: %s" % away.name in done.stderr
    assert sorted(done.stdout.splitlines()) == [line for line in scan(fleet, q)
                                                if not line.startswith(away.name)]
    other = next(r for h in fleet.hosts if h is not away for _, r, _ in h.records
                 if not any(x["ip"] == r["ip"] for _, x, _ in away.records))
    assert find(fleet, "ip=" + other["ip"], status=(0,)).stdout   # it was not asked
    (away.folder / "away").unlink()
    (away.folder / "cut").touch()
    assert "was cut short" in find(fleet, *q.words, status=(2,)).stderr
    (away.folder / "cut").unlink()
    (away.folder / "slow").touch()
    done = find(fleet, *q.words, "--timeout", "2s", status=(2,))
    assert "no answer in time" in done.stderr
    (away.folder / "slow").unlink()
    (away.folder / "loud").touch()
    done = find(fleet, *q.words)
    assert "%s: loud" % away.name in done.stderr and sorted(done.stdout.splitlines()) == scan(fleet, q)


def test_fields_that_only_some_hosts_have(hosts):
    fleet = hosts
    grow(fleet, 1)
    shop = Host(fleet, "shop", "csv")
    (shop.folder / "logs" / "x.csv").write_text("time,ip,user,cart\n2026-11-01T00:00:00Z,10.0.0.1,u1,c7\n")
    shop.index(0)
    assert find(fleet, "cart=c7").stdout == "shop:2026-11-01T00:00:00Z,10.0.0.1,u1,c7\n"
    assert find(fleet, "cart=c8", status=(1,)).stdout == ""
    rare = next(h for h in fleet.hosts if h.kind == "jsonl")
    rare.write(5000, 0)
    with open(rare.folder / "logs" / "z.jsonl", "w") as f:
        f.write('{"ip": "10.0.0.1"}\n' * 300000 + '{"ip": "10.0.0.1", "odd": "yes"}\n')
    rare.index(0)
    assert find(fleet, "odd=yes").stdout == rare.name + ':{"ip": "10.0.0.1", "odd": "yes"}\n'


def acting(fleet, script):
    """Hosts that run a script of their own instead of tamis."""
    for host in fleet.add(2):
        host.write(5, 0)
        host.index(0)
    (fleet.folder / "act").write_text("host=$1\n" + script)
    return [h.name for h in fleet.hosts]


def test_a_host_that_waits_for_its_turn_is_not_late(hosts):
    """It has more to say than is kept for it. The other one, whose turn it is, goes on for ten minutes."""
    names = acting(hosts, 'echo tamis answer 1\n'
                   'wait_for() { while [ ! -e $1 ]; do sleep 0.05; done; }\n'
                   'if [ $host = db-00.x ]; then\n'
                   '    echo 0; touch begun; wait_for held\n'
                   '    for i in 1 2 3 4 5 6 7 8 9 10; do python3 ./minute $i; echo $i; done\n'
                   'else\n'
                   '    wait_for begun; yes 0123456789abcde | head -n 526000; touch held\n'
                   '    yes 0123456789abcde | head -n 174000\n'
                   'fi\necho tamis end 0\n')
    clocks = Clocks(hosts.folder, "asker")
    (hosts.folder / "minute").write_text(
        "import struct, sys\n"
        "with open(%r, 'r+b') as file:\n"
        "    file.write(struct.pack('=qq', 0, int(sys.argv[1]) * 60 * 10**9))\n" % clocks.path)
    hosts.env.update(clocks.env, XDG_CACHE_HOME=hosts.env["XDG_CACHE_HOME"])
    done = find(hosts, "ip=10.0.0.1", "--fresh", "--timeout", "100s", "--parallel", "2", via="sh ./act {host}")
    printed = collections.Counter(line.split(":")[0] for line in done.stdout.splitlines())
    assert printed == {name: 11 if name == "db-00.x" else 700000 for name in names}, done.stderr


def test_what_is_no_answer_is_not_read_to_its_end(hosts):
    names = acting(hosts, 'yes $host\n')
    done = find(hosts, "ip=10.0.0.1", "--fresh", via="sh ./act {host}", status=(2,))
    assert done.stdout == "" and done.stderr.count("not reached: ") == len(names)
    assert done.stderr.count("something other than an answer") == len(names)


def test_a_number_that_was_cut_off_is_not_counted(hosts):
    names = acting(hosts, 'echo tamis answer 1\necho 100\nprintf 17\n')
    done = find(hosts, "ip=10.0.0.1", "--fresh", "--count", via="sh ./act {host}", status=(2,))
    assert done.stdout == "%d\n" % (100 * len(names)) and done.stderr.count("was cut short") == len(names)


def test_what_a_command_leaves_behind_is_not_waited_for(hosts):
    names = acting(hosts, 'echo tamis answer 1\nsetsid sleep 1000 &\necho $! >>left\n')
    done = find(hosts, "ip=10.0.0.1", "--fresh", "--timeout", "1s", via="sh ./act {host}", status=(2,))
    for pid in (hosts.folder / "left").read_text().split():
        os.kill(int(pid), signal.SIGKILL)
    assert done.stderr.count("not reached: ") == len(names)


def test_a_field_that_no_host_has(hosts):
    fleet = hosts
    host = Host(fleet, "web", "csv")
    host.write(10, 0)
    host.index(0)
    assert "no input has an attribute 'cost'" in find(fleet, "cost=3", status=(2,)).stderr


def test_few_at_a_time_and_much_output(hosts):
    fleet = hosts
    fleet.add(3)
    for h in fleet.hosts:
        h.write(30000, 0)
        h.index(0)
    done = find(fleet, "ip=10.0.0.0/8", "--parallel", "1")
    assert len(done.stdout.splitlines()) == 90000
    done = find(fleet, "ip=10.0.0.0/8")
    names = [line.split(":")[0] for line in done.stdout.splitlines()]
    assert sum(a != b for a, b in zip(names, names[1:])) == 2   # host by host


def test_what_cannot_be_asked_of_all(hosts):
    fleet = hosts
    grow(fleet, 1)
    for words in (["--explain", "ip=1.2.3.4"], ["--segments", "ip=1.2.3.4"], []):
        find(fleet, *words, status=(2,))
    assert "{host}" in find(fleet, "ip=1.2.3.4", via="ssh", status=(2,)).stderr
    assert "not UTF-8" in find(fleet, b"user=\xff", status=(2,)).stderr


def question(fleet, data, *words, cwd=None):
    done = subprocess.run([TAMIS, "find", "--question", "-", *words], input=data, capture_output=True,
                          cwd=cwd or fleet.hosts[0].folder, timeout=WAIT, env=fleet.env)
    assert done.returncode in (0, 1, 2), done
    lines = done.stdout.splitlines()
    assert lines[0] == b"tamis answer 1" and lines[-1] == b"tamis end %d" % done.returncode
    return done


def test_a_question_with_odd_content(fleet):
    host = fleet.add(1)[0]
    host.write(50, 0)
    host.index(0)
    user = host.records[0][1]["user"]
    good = {"tamis_question": 1, "catalog": "logs.tamis", "words": ["user=" + user]}
    assert question(fleet, json.dumps(good).encode()).returncode == 0
    assert question(fleet, json.dumps({**good, "catalog": "/none"}).encode(), "logs.tamis").returncode == 0
    for odd in (b"", b"{}", b"[]", b"null", b"{", b"x" * 100000, b"\0" * 1000, b"\xff\xfe", b'"tamis_question"',
                json.dumps({**good, "tamis_question": 2}).encode(),
                json.dumps({**good, "words": ["user=\0x"]}).encode(),
                json.dumps({**good, "words": ["user=@/etc/passwd"]}).encode(),
                json.dumps({**good, "words": ["user!=@/etc/passwd"]}).encode(),
                json.dumps({**good, "words": ["user=@0"]}).encode(),
                json.dumps({**good, "words": ["user=@0"], "lists": ["x"]}).encode(),
                json.dumps({**good, "words": ["user=@-1"], "lists": ["", "x"]}).encode(),
                json.dumps({**good, "words": ["user=@99999999999999999999"], "lists": ["", "x"]}).encode(),
                json.dumps({**good, "limit": "no"}).encode(), json.dumps({**good, "limit": "0"}).encode(),
                json.dumps({**good, "since": ["a", "b"]}).encode(),
                json.dumps({**good, "known": ["a", "b"], "types": ["int"]}).encode(),
                json.dumps({**good, "known": ["a"], "types": ["none"]}).encode(),
                json.dumps({**good, "count_by": "a,b"}).encode(),
                json.dumps({**good, "catalog": None}).encode(),
                json.dumps({**good, "catalog": "/etc/passwd"}).encode(),
                b"[" * 100000, b'{"tamis_question":' * 10000):
        done = question(fleet, odd)
        assert done.returncode == 2 and b"root:" not in done.stdout + done.stderr, odd[:100]
    for words in ({"a": 1}, [["user=x"]], 7, [None], "user=x"):   # text, as the reader of JSON takes it
        question(fleet, json.dumps({**good, "words": words}).encode())
    for _ in range(60):   # damaged somewhere: an answer, or an error
        data = bytearray(json.dumps({**good, "lists": ["", "a", "b"], "known": ["z"], "types": ["ip"]}).encode())
        for _ in range(random.randrange(1, 4)):
            data[random.randrange(len(data))] = random.randrange(256)
        question(fleet, bytes(data))
