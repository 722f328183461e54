"""Which hosts and days may have a record: never missing one, and seldom naming one too many."""
import datetime
import json
import random
import re
import shutil
import subprocess

import pytest

from fleet import LONG, Host, Question, day, quoted

QUESTIONS = 500 if LONG else 60


def grow(fleet, days, killed=False):
    """Ten hosts over some days, several updates a day."""
    fleet.add(10)
    for at in range(days):
        for host in fleet.hosts:
            for _ in range(random.randrange(1, 4)):
                host.write(random.randrange(5, 60), at)
                if killed and host.made and random.random() < 0.3:
                    host.index_killed(at)
                host.index(at)


def check(fleet, n, simple=False, at=None):
    """Every host that has a match is named; returns how many were named for nothing, and asked."""
    vain = asked = 0
    for _ in range(n):
        host = random.choice([h for h in fleet.hosts if h.records])
        q = Question(host.records, simple)
        found, doubt = fleet.where(*q.words, at=at, status=(0, 1, 2))
        for h in fleet.hosts:
            there = bool(q.scan(h.records[:h.covered]))
            assert not there or h.name in found or h.name in doubt, (q.words, h.name)
            vain += h.name in found and not there
            asked += 1
    return vain, asked


@pytest.mark.parametrize("carrier", ["folder", "redis"])
def test_ten_hosts_never_miss(fleet, carrier):
    if carrier == "redis":
        fleet.start_redis()
    grow(fleet, 3 if carrier == "redis" else 4, killed=True)
    found, _ = fleet.where("ip=10.0.0.0/8")
    assert set(found) == {h.name for h in fleet.hosts}
    check(fleet, QUESTIONS)
    vain, asked = check(fleet, 30, simple=True)
    assert vain <= 10 + asked / 50   # --since looks at whole days
    found, _ = fleet.where("ip=10.77.0.1", "user=u1")
    assert not found


def test_hosts_with_the_same_attributes_are_asked_as_one(fleet):
    grow(fleet, 2)
    fleet.where("ip=10.0.0.1")
    files = list((fleet.folder / "cache").rglob("[0-9]*.tamis"))
    assert len(files) <= 4   # two kinds of hosts, some in a second file


def test_copies_of_new_pieces_leave_a_large_file_alone(fleet):
    """A file is written anew once the new pieces have a quarter of its bytes."""
    for i in range(8):
        host = Host(fleet, "host%d" % i, "csv")
        fleet.hosts.append(host)
        host.write(20 if i else 30000, 0)
        host.index(0)
        found, _ = fleet.where("ip=10.0.0.0/8")
        assert set(found) == {h.name for h in fleet.hosts}
        files = {f.name: f.stat() for f in (fleet.folder / "cache").rglob("[0-9]*.tamis")}
        if i == 0:
            (name, large), = files.items()
        assert len(files) == 1 + (i > 0) and files[name].st_ino == large.st_ino, i
    check(fleet, 20)


def test_a_closed_day_is_sent_once_and_today_costs_what_changed(fleet):
    host = Host(fleet, "web", "csv")
    fleet.hosts.append(host)
    host.write(3000, 0)
    host.index(0)
    for _ in range(12):
        host.write(20, 0)
        host.index(0)
    sent = host.bytes_sent()
    assert len(sent) <= 1 + 6            # the manifest, and a handful of pieces
    host.write(50, 1)
    host.index(1)
    sealed = host.bytes_sent()
    whole = max(sealed.items(), key=lambda item: item[1][0])
    for _ in range(5):
        host.write(20, 1)
        host.index(1)
        now = host.bytes_sent()
        assert now[whole[0]] == whole[1]   # the same file
        assert sum(size for name, (size, _) in now.items() if name != whole[0]) < whole[1][0] / 2
    found, _ = fleet.where("ip=10.0.0.0/8")
    assert found == {"web": {day(0), day(1)}}
    check(fleet, 20)


def test_an_attribute_that_no_host_has_is_told(fleet):
    host = fleet.add(1)[0]
    host.write(100, 0)
    host.index(0)
    told = "no host is known to have an attribute 'nowhere': it rules nothing out"
    done = fleet.run("where", fleet.url, "nowhere=1", "ip=10.0.0.0/8", status=(0,))
    assert told in done.stderr and done.stdout.startswith(host.name)
    done = fleet.run("where", fleet.url, "ip=10.0.0.0/8", status=(0,))
    assert told not in done.stderr


def test_an_update_of_nothing_moves_the_watermark_alone(fleet):
    host = fleet.add(1)[0]
    host.write(100, 0)
    host.index(0)
    before = host.bytes_sent()
    host.index(0)
    after = host.bytes_sent()
    changed = {name for name in before if before[name] != after[name]}
    assert set(before) == set(after) and changed == {quoted(host.name)}


def test_an_update_without_publishing_is_made_up_for(fleet):
    host = fleet.add(1)[0]
    host.write(50, 0)
    host.index(0)
    host.write(50, 0)
    host.index(0, publish=False)
    host.covered = 50
    check(fleet, 5)
    host.write(50, 1)
    host.index(1)
    check(fleet, 40)


def test_nothing_is_lost_with_the_state_or_the_exchange(fleet):
    host = fleet.add(1)[0]
    for at in range(3):
        host.write(40, at)
        host.index(at)
    shutil.rmtree(fleet.folder / "exchange")
    host.index(3)
    check(fleet, 20)
    shutil.rmtree(host.folder / "logs.tamis.fleet")
    host.write(40, 3)
    host.index(3)
    check(fleet, 20)


def second_of_two(fleet, days):
    """A host with an update each day, beside one without any."""
    host = fleet.add(2)[1]
    for at in range(days):
        host.write(60, at)
        host.index(at)
    return host


def test_summaries_go_with_their_inputs(fleet):
    host = second_of_two(fleet, 4)
    host.remove(0)
    host.remove(1)
    host.index(4)
    found, doubt = fleet.where("ip=10.0.0.0/8")
    assert not doubt and found[host.name] <= {day(2), day(3), day(4)}
    check(fleet, 30)


def test_days_past_keep_leave_doubt_where_records_are_left(fleet):
    host = second_of_two(fleet, 6)
    host.index(6, "--keep", "3")
    found, doubt = fleet.where("ip=10.0.0.0/8", "--since", day(5))
    assert host.name in found and min(found[host.name]) >= day(4) and not doubt
    assert host.name in fleet.where("ip=10.99.0.1", "user=nobody", status=(2,))[1]
    check(fleet, 40)
    for at in range(5):
        host.remove(at)
    host.index(7, "--keep", "3")
    assert fleet.where("ip=10.99.0.1", "user=nobody") == ({}, set())
    check(fleet, 20)


def test_json_has_the_same_hosts_and_days(fleet):
    host = second_of_two(fleet, 6)
    host.index(6, "--keep", "3")
    for words in (["ip=10.0.0.0/8", "--since", day(5)], ["ip=10.99.0.1", "user=nobody"]):
        found, doubt = fleet.where(*words, status=(0, 2))
        lines = fleet.run("where", fleet.url, *words, "--json", status=(0, 2)).stdout.splitlines()
        hosts = [json.loads(line) for line in lines]
        assert {h["host"]: set(h["days"]) for h in hosts if h["days"]} == found
        assert {h["host"] for h in hosts if h["in_doubt"] and not h["days"]} == doubt
        for h in hosts:
            assert ("why" in h) == h["in_doubt"] and re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", h["as_of"])


def test_a_question_that_rules_nothing_out_asks_all_in_range(fleet):
    grow(fleet, 2)
    for words in (["msg~login"], ["disk"], ["msg~/l.g/"], ["status!=1"]):
        found, doubt = fleet.where(*words)
        assert set(found) == {h.name for h in fleet.hosts} and not doubt
        assert fleet.where(*words, "--since", day(9)) == ({}, set())


def test_watermarks_and_rates_are_told(fleet):
    host = fleet.add(1)[0]
    host.write(2000, 0)
    host.index(0)
    data = (fleet.folder / "exchange" / quoted(host.name) / "snapshot").read_bytes()[24:]
    if data[:4] == b"\x28\xb5\x2f\xfd":
        data = subprocess.run(["zstd", "-dc"], input=data, capture_output=True, check=True).stdout
    covered = [int(line.split()[1]) for line in data.decode().splitlines() if line.startswith("input ")]
    assert covered == [p.stat().st_size for p in (host.folder / "logs").iterdir()]
    as_of = int(re.search(r"^host \S+ \d+ \d+ (\d+) 0$", data.decode(), re.M).group(1))
    assert abs(as_of - (host.folder / "logs.tamis").stat().st_mtime) < 3600
    done = fleet.run("where", fleet.url, "ip=10.99.0.1", "user=nobody", "-v", status=(1,))
    stamp = datetime.datetime.fromtimestamp(as_of, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert "none as of %s" % stamp in done.stderr
    value, pair = map(float, re.search(r"false candidates: (\S+) per value and host-day, (\S+) per combination",
                                       done.stderr).groups())
    assert 0 < value < 0.002 and 0 < pair < 1e-6


def test_fresh_asks_every_host(fleet):
    grow(fleet, 1)
    found, doubt = fleet.where("ip=10.99.0.1", "user=nobody", "--fresh", status=(2,))
    assert not found and doubt == {h.name for h in fleet.hosts}


def test_a_host_that_is_forgotten_is_gone(fleet):
    grow(fleet, 1)
    fleet.run("forget", fleet.url, fleet.hosts[0].name)
    found, doubt = fleet.where("ip=10.0.0.0/8")
    assert fleet.hosts[0].name not in found and not doubt
    left = [p.name for p in (fleet.folder / "exchange").iterdir() if (p / "snapshot").exists()]
    assert not [name for name in left if name.startswith(quoted(fleet.hosts[0].name))]
    fleet.hosts[0].index(0)
    assert fleet.hosts[0].name in fleet.where("ip=10.0.0.0/8")[0]


def test_of_two_with_one_name_the_first_stops(fleet):
    first, second = Host(fleet, "web", "csv"), Host(fleet, "other", "csv")
    second.name = "web"
    first.write(10, 0)
    second.write(10, 0)
    first.index(0)
    second.index(0)
    first.write(10, 0)
    assert "another host now publishes as web" in first.index(0, status=(2,)).stderr


def test_a_folder_of_copies_answers_by_itself(fleet):
    grow(fleet, 1)
    copies = str(fleet.folder / "copies")
    fleet.run("where", fleet.url, "ip=10.0.0.1", "-o", copies, status=(0, 1))
    shutil.rmtree(fleet.folder / "exchange")
    check(fleet, 10, at=copies)
