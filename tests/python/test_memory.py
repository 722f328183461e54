"""The memory of tamis index, and of tamis verify of a catalog, is bounded: more data, no more memory. The
bounds are those of the manual (docs/man, MEMORY), and peaks are of all pages in memory, those of mapped
files too."""
import functools
import gzip
import json
import os
import random
import re
import shutil
import subprocess
import sys

import pytest

ROOT = os.environ.get("TAMIS_ROOT", os.path.join(os.path.dirname(__file__), "../.."))
TAMIS = os.path.join(ROOT, os.environ.get("TAMIS", "build/release/tamis"))
LONG = os.environ.get("TAMIS_LONG") == "1"
MIB = 1 << 20
THREADS = 2
SEGMENT = 8 * MIB if LONG else MIB // 2
POOL = 64 * MIB if LONG else 24 * MIB   # past what the writer holds to plan from
ROUNDS = 50 if LONG else 11
RELATIONS = 3
SLACK = 12 * MIB                        # the program, and what the allocator keeps

# A process counts the pages of the one it was forked from: so from a small one.
SMALL = ("import os, sys\n"
         "child = os.fork()\n"
         "if child == 0: os.execv(sys.argv[1], sys.argv[1:])\n"
         "_, status, usage = os.wait4(child, 0)\n"
         "print(usage.ru_maxrss)\n"
         "sys.exit(os.waitstatus_to_exitcode(status))\n")


def peak(cwd, *words):
    """Bytes in memory, at most, and what the program said with --json."""
    ran = subprocess.run([sys.executable, "-IS", "-c", SMALL, TAMIS, *words, "--json"], cwd=cwd,
                         stdout=subprocess.PIPE, check=True, text=True)
    said, _, kib = ran.stdout.rstrip("\n").rpartition("\n")
    return int(kib) * 1024, json.loads(said)


def manual(name="tamis-index.1"):
    """The bytes that a page of the manual states, in its order."""
    with open(os.path.join(ROOT, "docs/man", name), encoding="utf-8") as page:
        section = page.read().split(".SH MEMORY", 1)[1].split(".SH", 1)[0]
    units = {"bytes": 1, "KiB": 1 << 10, "MiB": MIB}
    return [int(n) * units[unit] for n, unit in re.findall(r"(\d+) (bytes|KiB|MiB)", section)]


def bound(said, segment_size, update=False):
    """As the manual has it, for what was told of making the catalog."""
    segments, catalog = said["segments_added"], said["catalog_bytes"]
    values = RELATIONS * 1.1 * said["records_read"] / segments  # new ones, in a segment
    new, old, value, recent, _, entry, _, segment, relation, page = manual()[:10]
    thread = 2.5 * segment_size + value * values + recent
    return ((old if update else new) + THREADS * thread + 2 * (entry + 2 * 16) +
            segments * (segment + relation * RELATIONS) + catalog / MIB * page + SLACK)


def verify(folder, name):
    """Its peak, within the bound, and the bytes of the catalog."""
    used, said = peak(folder, "verify", name)
    whole, page = manual("tamis-info.1")
    print("verify of %d MB: %d MB" % (said["bytes"] / 1e6, used / 1e6))
    assert said["ok"] and used <= whole + said["bytes"] / MIB * page
    return said["bytes"]


@functools.lru_cache
def lines_of(size):
    """Records of two columns, nearly all values new."""
    rng = random.Random(21)
    lines, total = [], 0
    while total < size:
        line = b"%x,%x\n" % (rng.randrange(1 << 20), rng.randrange(1 << 24))
        lines.append(line)
        total += len(line)
    return lines


def fill(path, lines, rounds, seed):
    """The lines so many times, each time from another one on."""
    rng = random.Random(seed)
    with open(path, "wb") as out:
        out.write(b"a,b\n")
        for _ in range(rounds):
            cut = rng.randrange(len(lines))
            out.write(b"".join(lines[cut:]))
            out.write(b"".join(lines[:cut]))


def index(folder, name, inputs, segment=SEGMENT, fpp="0.0001"):
    return peak(folder, "index", "-o", name, "--attrs", "a,b", "--fpp", fpp, "-j",
                str(THREADS), "--segment", str(segment), inputs)


def test_more_data_takes_no_more_memory(tmp_path):
    if shutil.disk_usage(tmp_path).free < 1.6 * POOL * ROUNDS:
        pytest.skip("not enough room on the disk")
    lines = lines_of(POOL)
    for name, rounds in (("few", 1), ("many", ROUNDS)):
        os.mkdir(tmp_path / name)
        fill(tmp_path / name / "1.csv", lines, rounds, 1)
    few, _ = index(tmp_path, "few.tamis", "few")
    many, said = index(tmp_path, "many.tamis", "many")
    catalog, segments = said["catalog_bytes"], said["segments_added"]
    most = bound(said, SEGMENT)
    print("%d MB: %d MB, %d MB: %d MB of %d; catalog %d MB" % (
        POOL / 1e6, few / 1e6, POOL * ROUNDS / 1e6, many / 1e6, most / 1e6, catalog / 1e6))
    assert many <= most
    assert many <= few + SLACK + 400 * segments
    assert catalog > 1.3 * most         # else nothing would be seen

    # The old catalog passes through memory; its last strips are made anew with the new columns.
    fill(tmp_path / "many" / "2.csv", lines[:100000], 1, 2)
    update, now = peak(tmp_path, "index", "--update", "many.tamis", "-j", str(THREADS))
    print("update: %d MB" % (update / 1e6))
    assert now["new"] == 1 and now["catalog_bytes"] > catalog
    assert update <= bound(said, SEGMENT, update=True) < 0.5 * catalog
    assert verify(tmp_path, "many.tamis") == now["catalog_bytes"]
    for line in lines[::len(lines) // 20] + lines[:100000:5000]:
        a, b = line.decode().rstrip("\n").split(",")
        count = subprocess.run([TAMIS, "find", "many.tamis", "a=" + a, "b=" + b, "--count"],
                               cwd=tmp_path, stdout=subprocess.PIPE, check=True, text=True)
        assert int(count.stdout) >= ROUNDS


def test_verify_of_few_columns(tmp_path):
    """Strips of 5 equal columns have 3 that are not there, which are looked at bit by bit."""
    os.mkdir(tmp_path / "data")
    fill(tmp_path / "data" / "1.csv", lines_of(POOL), 3, 3)
    _, said = index(tmp_path, "c.tamis", "data", 3 * POOL // 5 + 4096, "1e-14")
    assert said["segments_added"] == 5
    assert verify(tmp_path, "c.tamis") > 6 * manual("tamis-info.1")[0]


def test_restarts_of_gzip_files_wait_in_files(tmp_path):
    """10 KiB for each segment, in its tag: neither making nor updating has them all in memory."""
    segment = 4 << 10
    text = b"a,b\n" + b"".join(lines_of(POOL)[:1500000])
    os.mkdir(tmp_path / "data")
    with gzip.open(tmp_path / "data" / "1.csv.gz", "wb", compresslevel=1) as out:
        out.write(text)
    made, said = index(tmp_path, "c.tamis", "data", segment)
    tags = 10 * 1024 * said["segments_added"]
    with open(tmp_path / "data" / "2.csv", "wb") as out:
        out.write(text[:100000])
    update, now = peak(tmp_path, "index", "--update", "c.tamis", "-j", str(THREADS))
    print("made %d MB, update %d MB, tags %d MB" % (made / 1e6, update / 1e6, tags / 1e6))
    assert now["new"] == 1
    assert made <= bound(said, segment)
    assert update <= bound(said, segment, update=True) and update < tags


def test_words_and_find_take_no_more_memory_for_more_text(tmp_path):
    """Ten times the text of log lines with many new words: index stays within what the manual states, find where it was."""
    rng = random.Random(5)
    used = {}
    for name, rounds in (("few", 20), ("many", 200)):
        os.mkdir(tmp_path / name)
        for part in range(rounds):
            with open(tmp_path / name / ("%02d.log" % part), "w") as out:
                for i in range(12000):
                    out.write("2024-05-01 10:%02d:%02d worker refused %x from node%d with token %x\n" % (
                        i // 200 % 60, i % 60, rng.randrange(1 << 40), i % 50, rng.randrange(1 << 40)))
        made, said = peak(tmp_path, "index", "-o", name + ".tamis", "--attrs", "line:words,time:time", "-j",
                          str(THREADS), "--segment", str(1 << 20), name)
        asked, found = peak(tmp_path, "find", name + ".tamis", "--explain", "-j", str(THREADS), "refused", "node7")
        assert found["matches"] == 240 * rounds and found["text_read"] > 0.9 * said["bytes_read"]
        used[name] = made, asked, said
    print("index %d and %d MB, find %d and %d MB" % tuple(used[n][i] / 1e6 for i in (0, 1) for n in ("few", "many")))
    said, new, value = used["many"][2], manual()[0], manual()[2]
    words = 8 * said["records_read"] / said["segments_added"]  # new ones in a segment: tokens and compounds
    assert used["many"][0] <= new + THREADS * (2.5 * (1 << 20) + value * words) + SLACK < 0.8 * said["bytes_read"]
    assert used["many"][1] <= used["few"][1] + SLACK
