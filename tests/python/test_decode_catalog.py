"""tools/decode.py, written from docs/format.md alone, and the library agree on every golden catalog:
what is in it, what it answers, and what is refused."""
import os

import pytest

from decoding import ROOT, decode, golden, name_of, read, run

GOOD, BAD = golden("catalog"), golden("catalog-bad")


def test_there_are_golden_files():
    assert len(GOOD) >= 6 and len(BAD) >= 20


@pytest.mark.parametrize("path", GOOD, ids=name_of)
def test_good_files_answer_alike(path):
    x = decode.open_structure(path)
    family, some = x.family(), 0
    for line in read(path[:-len(".tamis")] + ".txt").splitlines():
        answer, asked = line.split(b"\t", 1)
        found = [b"%d" % i for i in x.locate(family, decode.question_of(asked))]
        assert (b",".join(found) or b"-") == answer, line
        some += bool(found)
    assert some or "empty" in path


@pytest.mark.parametrize("path", BAD, ids=name_of)
def test_bad_files_are_refused(path):
    status, _, said = run("info", path)
    assert status == 2 and said.startswith(b"decode.py: ")


@pytest.mark.parametrize("path", GOOD, ids=name_of)
def test_flipped_bits_are_noticed(path):
    data = bytearray(read(path))
    for i in range(0, len(data), 1 + len(data) // 60):
        data[i] ^= 1 << i % 8
        with pytest.raises(decode.Bad):
            decode.structure_of(bytes(data))
        data[i] ^= 1 << i % 8
    decode.structure_of(bytes(data))


def test_the_program_tells_and_locates():
    path = os.path.join(ROOT, "tests/golden/catalog/three.tamis")
    status, out, _ = run("info", path)
    assert status == 0 and b'"kind": "catalog"' in out and b'"segments": 14' in out
    status, out, _ = run("check", path, "ip=never stored")
    assert status in (0, 1) and out.split()[0] in (b"no", b"maybe")
