"""Messages of replicas: tools/decode.py, written from docs/format.md alone, makes the same copies of
them as the library, byte by byte, and notices every byte that is damaged."""
import importlib.util
import os
import random
import struct
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TAMIS = os.environ.get("TAMIS", os.path.join(ROOT, "build/release/tamis"))

spec = importlib.util.spec_from_file_location("decode", os.path.join(ROOT, "tools/decode.py"))
decode = importlib.util.module_from_spec(spec)
spec.loader.exec_module(decode)


def run(folder, *arguments, **more):
    done = subprocess.run([TAMIS, *arguments], cwd=folder, capture_output=True, text=True, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def unpacked(data):
    if data[:4] != b"\x28\xb5\x2f\xfd":
        return data
    return subprocess.run(["zstd", "-dcq"], input=data, capture_output=True, check=True).stdout


def messages(folder):
    """All that is in a folder of one owner: the parts of the snapshot, then the messages."""
    data = (folder / "snapshot").read_bytes()
    found, at = [], 16
    while at < len(data):
        length = struct.unpack_from("<Q", data, at)[0]
        found.append(unpacked(data[at + 8:at + 8 + length]))
        at += 8 + length
    names = sorted(p.name for p in folder.iterdir() if p.name.isdigit())
    assert struct.unpack_from("<Q", data, 8)[0] < int(names[0])
    return found + [(folder / name).read_bytes() for name in names]


KINDS = {
    "plain": [], "deletable": ["--deletable"], "dynamic": ["--growth", "dynamic", "--capacity", "4k"],
    "fixed": ["--growth", "fixed", "--capacity", "3k", "--layout", "spread"],
    "sip": ["--hash", "sip", "--deletable"],
}


@pytest.mark.parametrize("kind,size", [(kind, "1Mi") for kind in KINDS] + [("deletable", "1Ki")])
def test_copies_agree(tmp_path, kind, size):
    rng = random.Random(kind + size)
    run(tmp_path, "create", "f.tamis", *KINDS[kind])
    lines = ["+%d" % i for i in range(700)]
    if "--deletable" in KINDS[kind]:
        for i in range(400):
            lines.insert(rng.randrange(600, len(lines)), "-%d" % i)
    run(tmp_path, "publish", "f.tamis", "--to", "file:x", "--as", "host a", "--message", size,
        "--min-gap", "none",
        input="".join(line + "\n" for line in lines))
    run(tmp_path, "follow", "file:x", "-o", "d", "--once", "--for", "120s")
    found = messages(tmp_path / "x" / "host%20a")
    follower = decode.Follower()
    for data in found:
        follower.take(decode.Message(data))
    assert decode.Message(found[0]).owner == b"host a"
    assert size == "1Mi" or max(len(data) for data in found) <= 1024
    file = decode.Message((tmp_path / "d" / "host%20a.replica").read_bytes())
    assert (file.body["epoch"], file.body["version"]) == (follower.epoch, follower.version)
    assert follower.version > 5
    assert file.part == follower.encode()
    copy = decode.Filter(decode.Container(follower.encode()))
    family = copy.family(None)
    assert all(copy.has(family, b"%d" % i) for i in range(400, 700))


def test_every_damaged_byte_is_noticed(tmp_path):
    rng = random.Random(5)
    run(tmp_path, "create", "f.tamis")
    run(tmp_path, "publish", "f.tamis", "--to", "file:x", "--as", "a", input="+1\n+2\n")
    for data in messages(tmp_path / "x" / "a"):
        for at in range(len(data)):
            broken = bytearray(data)
            broken[at] ^= 1 << rng.randrange(8)
            with pytest.raises(decode.Bad):
                decode.Message(bytes(broken))


def test_something_missing_is_noticed(tmp_path):
    run(tmp_path, "create", "f.tamis")
    run(tmp_path, "publish", "f.tamis", "--to", "file:x", "--as", "a", "--min-gap", "none",
        input="".join("+%d\n" % i for i in range(500)))
    found = [decode.Message(data) for data in messages(tmp_path / "x" / "a")]
    deltas = [m for m in found if m.body["type"] == decode.DELTA]
    follower = decode.Follower()
    follower.take(found[0])
    with pytest.raises(decode.Bad):
        follower.take(deltas[1])
    follower.take(deltas[0])
    follower.take(deltas[0])
    follower.take(deltas[1])


def test_seals_agree(tmp_path):
    key = bytes(range(16))
    (tmp_path / "key").write_bytes(key)
    run(tmp_path, "create", "f.tamis", "--key-file", "key")
    run(tmp_path, "publish", "f.tamis", "--to", "file:x", "--as", "a", "--no-key", input="+1\n+2\n")
    found = messages(tmp_path / "x" / "a")
    assert len(found) > 2
    for data in found:
        assert decode.Message(data, key).sealed
        with pytest.raises(decode.Bad):
            decode.Message(data, bytes(16))
