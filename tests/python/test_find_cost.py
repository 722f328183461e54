"""What looking at thousands of inputs costs, in instructions counted by valgrind: twice the inputs,
twice the cost, whatever became of them."""
import json
import os
import subprocess

import pytest

from costs import TAMIS, instructions


def fill(folder, n, same):
    folder.mkdir()
    for i in range(n):
        (folder / ("%05d.csv" % i)).write_text("k\n%d\n" % (7 if same else i))


def leave(folder, n):
    pass


def rotate(folder, n):
    for i in reversed(range(n)):
        (folder / ("%05d.csv" % i)).rename(folder / ("%05d.csv" % (i + 1)))


def copy(folder, n):
    for i in range(n):
        path = folder / ("%05d.csv" % i)
        (folder / ("copy%05d.csv" % i)).write_bytes(path.read_bytes())
        path.unlink()


def link(folder, n):
    """One inode by all names, and none of the old ones."""
    for i in range(1, n):
        (folder / ("%05d.csv" % i)).unlink()
        os.link(folder / "00000.csv", folder / ("link%05d.csv" % i))


# What becomes of the inputs, whether all have the same bytes, and what find says of it.
LIVES = {
    "as they were": (leave, False, {"renamed": 0, "new": 0}),
    "rotated": (rotate, False, {"renamed": 1, "new": 0}),
    "rotated, all alike": (rotate, True, {"renamed": 1, "new": 0}),
    "copied": (copy, False, {"renamed": 1, "new": 0}),
    "copied, all alike": (copy, True, {"renamed": 1, "new": 0}),
    "links to one": (link, True, {"new": 0}),
}


@pytest.mark.parametrize("name", LIVES)
def test_looking_is_linear(name, tmp_path):
    live, same, wanted = LIVES[name]
    counts = []
    for n in (300, 600, 1200):
        folder = tmp_path / str(n)
        fill(folder, n, same)
        subprocess.run([TAMIS, "index", "-o", "c.tamis", "--attrs", "k", "--fpp", "1e-9", str(n)],
                       cwd=tmp_path, check=True)  # a false candidate would be read, and count
        live(folder, n)
        words = ["find", "c.tamis", "k=nosuch", "--explain", "--json", "-j", "1"]
        facts = json.loads(subprocess.run([TAMIS, *words], cwd=tmp_path,
                                          stdout=subprocess.PIPE).stdout)
        assert {key: facts[key] // n for key in wanted} == wanted
        counts.append(instructions([TAMIS, *words], tmp_path, status=1))
    first, second = counts[1] - counts[0], counts[2] - counts[1]
    assert second < 2.6 * first, counts
