"""tools/decode.py, written from docs/format.md alone, and the library agree on every golden catalog and
directory: what is in it, what it answers, and what is refused."""
import glob
import importlib.util
import os
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DECODE = os.path.join(ROOT, "tools/decode.py")
GOOD = sorted(glob.glob(os.path.join(ROOT, "tests/golden/catalog/*.tamis")))
BAD = sorted(glob.glob(os.path.join(ROOT, "tests/golden/catalog-bad/*.tamis")))

spec = importlib.util.spec_from_file_location("decode", DECODE)
decode = importlib.util.module_from_spec(spec)
spec.loader.exec_module(decode)


def name_of(path):
    return os.path.basename(path)


def test_there_are_golden_files():
    assert len(GOOD) >= 8 and len(BAD) >= 20


@pytest.mark.parametrize("path", GOOD, ids=name_of)
def test_good_files_answer_alike(path):
    x = decode.open_structure(path)
    family, some = x.family(), 0
    with open(path[:-len(".tamis")] + ".txt", "rb") as file:
        for line in file.read().splitlines():
            answer, asked = line.split(b"\t", 1)
            if isinstance(x, decode.Catalog):
                found = [b"%d" % i for i in x.locate(family, decode.question_of(asked))]
            else:
                found = x.locate(family, asked)
            assert (b",".join(found) or b"-") == answer, line
            some += bool(found)
    assert some or "empty" in path


@pytest.mark.parametrize("path", BAD, ids=name_of)
def test_bad_files_are_refused(path):
    done = subprocess.run([sys.executable, DECODE, "info", path], capture_output=True)
    assert done.returncode == 2 and done.stderr.startswith(b"decode.py: ")


@pytest.mark.parametrize("path", GOOD, ids=name_of)
def test_flipped_bits_are_noticed(path):
    with open(path, "rb") as file:
        data = bytearray(file.read())
    for i in range(0, len(data), 1 + len(data) // 60):
        data[i] ^= 1 << i % 8
        with pytest.raises(decode.Bad):
            decode.structure_of(bytes(data))
        data[i] ^= 1 << i % 8
    decode.structure_of(bytes(data))


def test_the_program_tells_and_locates():
    path = os.path.join(ROOT, "tests/golden/catalog/three.tamis")
    done = subprocess.run([sys.executable, DECODE, "info", path], capture_output=True, check=True)
    assert b'"kind": "catalog"' in done.stdout and b'"segments": 14' in done.stdout
    done = subprocess.run([sys.executable, DECODE, "check", path, "ip=never stored"],
                          capture_output=True)
    assert done.returncode in (0, 1) and done.stdout.split()[0] in (b"no", b"maybe")
