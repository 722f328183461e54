"""What tamis find reads and does depends on the candidates, not on the data: one record with a pair of
values, each of which is in every segment, among more and more gigabytes."""
import json
import os
import random
import shutil
import subprocess
import time

import pytest

from costs import instructions

ROOT = os.environ.get("TAMIS_ROOT", os.path.join(os.path.dirname(__file__), "../.."))
TAMIS = os.path.join(ROOT, os.environ.get("TAMIS", "build/release/tamis"))
LONG = os.environ.get("TAMIS_LONG") == "1"
SIZES = [10 ** 9, 10 ** 10, 5 * 10 ** 10] if LONG else [10 ** 7, 10 ** 8]
FILE, SEGMENT = (256 << 20, 8 << 20) if LONG else (4 << 20, 1 << 20)
IP, USER = "10.3.7.1", "user-42"        # both in the pool, not together


def pool(size):
    """Lines of a CSV file, about so many bytes."""
    rng = random.Random(11)
    lines = ["%s,other,/a" % IP, "10.200.0.1,%s,/b" % USER]
    total = 0
    while total < size:
        line = "10.%d.%d.%d,user-%d,/item/%d" % (
            rng.random() ** 2 * 8, rng.random() ** 2 * 200, rng.randrange(250),
            100 + int(rng.random() ** 3 * 100000), rng.randrange(5000))
        lines.append(line)
        total += len(line) + 1
    return [(line + "\n").encode() for line in lines]


def fill(folder, size, lines):
    """Files of the pool's lines, each round from another one on, and the one record wanted."""
    wanted = ("%s,%s,/wanted\n" % (IP, USER)).encode()
    rng = random.Random(12)
    whole = b"".join(lines)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    files = max(2, size // FILE)
    os.mkdir(folder)
    for number in range(files):
        with open(os.path.join(folder, "%05d.csv" % number), "wb") as out:
            out.write(b"ip,user,path\n")
            rounds = max(1, FILE // len(whole))
            for turn in range(rounds):
                cut = starts[rng.randrange(len(lines))]
                out.write(whole[cut:])
                if number == files // 2 and turn == rounds // 2:
                    out.write(wanted)
                out.write(whole[:cut])
    return wanted.decode().rstrip("\n")


def test_the_data_grows_and_find_does_not(tmp_path):
    lines = pool(FILE // 32)
    told = []
    for size in SIZES:
        if shutil.disk_usage(tmp_path).free < size * 1.15:
            pytest.skip("not enough room on the disk for %d bytes" % size)
        data = tmp_path / "data"
        wanted = fill(data, size, lines)
        time.sleep(2.1)  # what is indexed as it is written is compared by its sums, byte by byte
        subprocess.run([TAMIS, "index", "-o", "c.tamis", "--attrs", "ip,user", "--segment",
                        str(SEGMENT), "data"], cwd=tmp_path, check=True)
        ask = [TAMIS, "find", "c.tamis", "ip=" + IP, "user=" + USER]
        found = subprocess.run(ask, cwd=tmp_path, stdout=subprocess.PIPE, check=True, text=True)
        assert found.stdout == wanted + "\n"
        facts = json.loads(subprocess.run(ask + ["--explain", "--json"], cwd=tmp_path, check=True,
                                          stdout=subprocess.PIPE).stdout)
        assert facts["matches"] == 1 and facts["bytes_total"] >= 0.6 * size
        assert facts["segments"] >= 0.5 * size / SEGMENT
        assert facts["candidates"] <= 2 and facts["bytes_read"] <= 2.5 * SEGMENT
        told.append((facts["inputs"], facts["segments"], instructions(ask, tmp_path)))
        print("%.2f GB, %d files, %d segments: %d instructions" % (facts["bytes_total"] / 1e9, *told[-1]))
        shutil.rmtree(data)
    (_, _, few), (inputs, _, many) = told[0], told[-1]
    assert many < 1.5 * few + 10000 * inputs
