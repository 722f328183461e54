"""What strangers may put where summaries are exchanged."""
import hashlib
import os
import random
import shutil
import subprocess

from fleet import Clocks, Host, quoted


def snapshot(fleet, owner, *parts):
    folder = fleet.folder / "exchange" / quoted(owner)
    folder.mkdir(parents=True, exist_ok=True)
    data = bytes(16) + b"".join(len(p).to_bytes(8, "little") + p for p in parts)
    (folder / "snapshot").write_bytes(data)
    owners = fleet.folder / "exchange" / "owners"
    if quoted(owner) not in owners.read_text().splitlines():
        owners.write_text(owners.read_text() + quoted(owner) + "\n")


def start(fleet, *options):
    for name in ("web1", "web2"):
        host = Host(fleet, name, "csv")
        fleet.hosts.append(host)
        host.write(200, 0)
        host.index(0, *options)
    return fleet.hosts


def test_forged_names_are_left_out(fleet):
    start(fleet)
    for name in ("-oProxyCommand=x", "a b", "$(reboot)", "a;b", "..", ".x", "a\nb", "%", "x" * 201, "é"):
        snapshot(fleet, name, b"tamis fleet 1\n")
    done = fleet.run("where", fleet.url, "ip=10.0.0.0/8")
    assert {line.split("\t")[0] for line in done.stdout.splitlines()} == {"web1", "web2"}
    assert "not valid host names" in done.stderr


def test_a_forged_or_damaged_manifest_is_doubt(fleet):
    start(fleet)
    path = fleet.folder / "exchange" / "web1" / "snapshot"
    real = path.read_bytes()
    text = subprocess.run(["zstd", "-dc"], input=real[24:], capture_output=True, check=True).stdout
    assert text.startswith(b"tamis fleet 1\nhost web1")
    for forged in (b"", b"tamis fleet 1\n", text[:-5], text.replace(b"host web1", b"host web2"),
                   text.replace(b"piece 1", b"piece 9"), b"\xff" * 300, text + b"x", b"\0" * 100,
                   bytes(random.randrange(256) for _ in range(500))):
        snapshot(fleet, "web1", forged)
        found, doubt = fleet.where("ip=10.0.0.0/8")
        assert "web1" in doubt | set(found) and "web2" in found, forged
        assert "web1" in fleet.where("ip=10.99.0.1", "user=nobody", status=(2,))[1], forged
    path.write_bytes(real)
    assert fleet.where("ip=10.99.0.1", "user=nobody") == ({}, set())


def test_a_damaged_swapped_or_missing_summary_is_doubt(fleet):
    start(fleet)
    one = fleet.folder / "exchange" / quoted("web1/1") / "snapshot"
    two = fleet.folder / "exchange" / quoted("web2/1") / "snapshot"
    real = one.read_bytes()
    flipped = bytearray(real)
    flipped[len(flipped) // 2] ^= 1
    for forged in (bytes(flipped), real[:100], b"", two.read_bytes(), real[:-1]):
        one.write_bytes(forged)
        for copy in list((fleet.folder / "cache").rglob("status")):
            copy.unlink()   # a host that asks for the first time
        assert "web1" in fleet.where("ip=10.99.0.1", "user=nobody", status=(2,))[1]
        assert "web2" in fleet.where("ip=10.0.0.0/8")[0]
    os.unlink(one)
    assert "web1" in fleet.where("ip=10.99.0.1", "user=nobody", status=(2,))[1]
    one.write_bytes(real)
    assert fleet.where("ip=10.99.0.1", "user=nobody") == ({}, set())


def test_wrong_names_are_refused(fleet):
    host = Host(fleet, "x", "csv")
    host.write(5, 0)
    for name in ("-x", "a b", "a/b", "", "x;y", "$x", "x" * 201):
        host.name = name
        assert "not a name of a host" in host.index(0, status=(2,)).stderr


def test_a_seal_keeps_strangers_from_speaking_for_a_host(fleet):
    for name in ("key", "other"):
        (fleet.folder / name).write_bytes(os.urandom(16))
    key = str(fleet.folder / "key")
    start(fleet, "--seal", key)
    absent, there = ["ip=10.99.0.1", "user=nobody", "--seal", key], ["ip=10.0.0.0/8", "--seal", key]
    assert fleet.where(*absent) == ({}, set()) and set(fleet.where(*there)[0]) == {"web1", "web2"}
    assert set(fleet.where("ip=10.0.0.0/8")[0]) == {"web1", "web2"}   # whoever does not ask for a seal
    assert fleet.where("ip=10.99.0.1", "user=nobody", "--seal", "other", status=(2,))[1] == {"web1", "web2"}
    real = (fleet.folder / "exchange/web1/snapshot").read_bytes()
    text = subprocess.run(["zstd", "-dc"], input=real[24:], capture_output=True, check=True).stdout
    lines = text.decode().splitlines(keepends=True)
    assert lines[-1].startswith("seal ") and lines[-2].startswith("end ")
    emptied = "".join(line for line in lines[:-2] if not line.startswith("piece ")).encode()
    sum_ = hashlib.blake2b(emptied, digest_size=16).digest()
    emptied += b"end %x %x\n" % (int.from_bytes(sum_[:8], "little"), int.from_bytes(sum_[8:], "little"))
    for forged in (emptied, emptied + lines[-1].encode(), emptied + b"seal " + b"0" * 32 + b"\n"):
        snapshot(fleet, "web1", forged)
        assert fleet.where(*absent, status=(2,))[1] == {"web1"}
        assert set(fleet.where("ip=10.0.0.0/8")[0]) == {"web2"}       # what a seal is for
    (fleet.folder / "exchange/web1/snapshot").write_bytes(real)
    assert fleet.where(*absent) == ({}, set())
    index = fleet.folder / "exchange/web2/index"              # nor does it let them forget one
    index.write_text(index.read_text() + "forgotten\n")
    os.remove(fleet.folder / "exchange/web2/snapshot")
    assert fleet.where(*absent, status=(2,))[1] == {"web2"}


def test_a_manifest_that_was_put_back_is_doubt(fleet):
    (fleet.folder / "key").write_bytes(os.urandom(16))
    seal = ["--seal", str(fleet.folder / "key")]
    web1 = start(fleet, *seal)[0]
    exchange, kept = fleet.folder / "exchange", fleet.folder / "kept"
    fleet.where("ip=10.99.0.1", "user=nobody", *seal)
    shutil.copytree(exchange, kept)
    with open(web1.folder / "logs" / "new.csv", "w") as file:
        file.write("time,ip,user,status,msg\n2026-11-01T00:00:00Z,10.77.0.1,zoe,200,new\n")
    web1.index(0, *seal)
    assert set(fleet.where("user=zoe", *seal)[0]) == {"web1"}
    for name in os.listdir(kept):       # sealed, and all of it fits together: its pieces too
        if name.startswith("web1"):
            shutil.rmtree(exchange / name)
            shutil.copytree(kept / name, exchange / name)
    for _ in range(2):
        assert fleet.where("ip=10.99.0.1", "user=nobody", *seal, status=(2,)) == ({}, {"web1"})
    assert set(fleet.where("user=zoe", *seal)[0]) == {"web1"}       # what was known of it is still
    web1.index(0, *seal)
    assert fleet.where("ip=10.99.0.1", "user=nobody", *seal) == ({}, set())
    clocks = Clocks(fleet.folder, "web1")
    fleet.env.update(clocks.env, XDG_CACHE_HOME=fleet.env["XDG_CACHE_HOME"])
    clocks.set(-3600)                   # of the host: that is no reason to doubt it
    web1.index(0, *seal)
    assert fleet.where("ip=10.99.0.1", "user=nobody", *seal) == ({}, set())
    assert set(fleet.where("user=zoe", *seal)[0]) == {"web1"}


def test_a_sealed_host_is_forgotten_by_each_who_has_copies(fleet):
    (fleet.folder / "key").write_bytes(os.urandom(16))
    seal = ["--seal", str(fleet.folder / "key")]
    start(fleet, *seal)
    copies, absent = str(fleet.folder / "copies"), ["ip=10.99.0.1", "user=nobody", *seal]
    assert fleet.where(*absent, "-o", copies) == ({}, set())
    fleet.run("forget", fleet.url, "web1")
    for _ in range(2):                  # anybody could have written that
        assert fleet.where(*absent, "-o", copies, status=(2,)) == ({}, {"web1"})
    fleet.run("forget", copies, "web1")
    fleet.run("forget", copies, "web1", status=(1,))
    for at in (fleet.url, copies):
        more = ["-o", copies] if at == fleet.url else []
        assert fleet.where(*absent, *more, at=at) == ({}, set())
        assert set(fleet.where("ip=10.0.0.0/8", *seal, *more, at=at)[0]) == {"web2"}


def test_a_host_that_vanished_is_in_doubt_until_it_is_forgotten(fleet):
    start(fleet)
    assert fleet.where("ip=10.99.0.1", "user=nobody") == ({}, set())
    shutil.rmtree(fleet.folder / "exchange" / "web1")
    owners = fleet.folder / "exchange" / "owners"
    owners.write_text("".join(line for line in owners.read_text().splitlines(keepends=True)
                              if not line.startswith("web1")))
    for _ in range(2):
        assert fleet.where("ip=10.99.0.1", "user=nobody", status=(2,)) == ({}, {"web1"})
    fleet.hosts[0].index(0)
    assert fleet.where("ip=10.99.0.1", "user=nobody") == ({}, set())
