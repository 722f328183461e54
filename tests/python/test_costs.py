"""What things cost. What the COST tests of tests/unit do grows with the number of things, not with its square. Four
times as many cost 4 times the instructions, with sorting and tables that double up to 5 times, and 16
times where every one looks at every other."""
import glob
import os
import re
import subprocess

import pytest

from costs import BUILD, ROOT, TAMIS, instructions


def costs():
    for path in sorted(glob.glob(os.path.join(ROOT, "tests/unit/test_*.c"))):
        with open(path) as source:
            for name, most in re.findall(r"^COST\((\w+), ([\d<< ]+)\)", source.read(), re.M):
                yield os.path.splitext(os.path.basename(path))[0], name, eval(most)


def test_there_are_costs():
    assert len(list(costs())) > 5


@pytest.mark.parametrize("program,name,most", costs())
def test_costs_grow_as_the_work(tmp_path, program, name, most):
    path = os.path.join(BUILD, "tests/unit", program)
    some, all_ = (instructions([path, name, "--size=%d" % n], tmp_path) for n in (most // 4, most))
    print("%s: %d instructions each" % (name, all_ / most))
    assert all_ < 6 * some


@pytest.mark.parametrize("kind,some,more", [("", 1 << 17, 1 << 21), ("of_lines_", 70000, 900000)])
def test_a_small_change_costs_what_changed(tmp_path, kind, some, more):
    """To publish and to diff 4 adds in a filter of 13 to 16 times the keys. The difference between them are 2 MB,
    which are 3.5 million instructions for every pass over them. Lines have 16 parts at both sizes."""
    path = os.path.join(BUILD, "tests/unit/test_patch")

    def cost(n):
        made, prepared = (instructions([path, "small_changes_%sare_" % kind + what, "--size=%d" % n], tmp_path)
                          for what in ("published", "prepared"))
        return (made - prepared) / 8

    few, many = cost(some), cost(more)
    print("%d and %d instructions" % (few, many))
    assert 0 < many < 1.5 * few


def test_facts_cost_no_more_for_more_keys(tmp_path):
    """Those of a deletable smooth filter, which counts its distinct keys, of ten times the keys."""
    path = os.path.join(BUILD, "tests/unit/test_smooth")
    few, many = ((asked - prepared) / 3 for asked, prepared in (
        (instructions([path, "facts_of_a_multiset_are_" + what, "--size=%d" % n], tmp_path)
         for what in ("asked", "prepared")) for n in (300000, 3000000)))
    print("%d and %d instructions" % (few, many))
    assert 0 < many < 1.5 * few


def test_a_record_is_not_compared_with_every_value(tmp_path):
    """Records times values would be 8 times the instructions."""
    with open(tmp_path / "data.csv", "w") as data:
        data.write("k,v\n" + "".join("%d,%d,padding\n" % (i % 3, i) for i in range(30000)))
    subprocess.run([TAMIS, "index", "-o", "c.tamis", "--attrs", "k,v", "--segment", "50k", "data.csv"],
                   cwd=tmp_path, check=True)
    few, many = (instructions([TAMIS, "find", "--trust", "-j", "1", "c.tamis"] +
                              ["v=%d" % i for i in range(0, 30000, step)], tmp_path)
                 for step in (80, 10))
    assert many < 3 * few


@pytest.mark.parametrize("options", [[], ["--deletable"], ["--growth", "scalable"]])
def test_a_source_of_a_union_costs_what_it_holds(tmp_path, options):
    """Sixteen sources more are fewer instructions than a copy of the first for each of them would take."""
    def made(name, options, keys):
        family = ["--like", "a"] if name != "a" else []
        subprocess.run([TAMIS, "create", *options, *family, name], cwd=tmp_path, check=True)
        subprocess.run([TAMIS, "add", name], cwd=tmp_path, check=True, input=keys, text=True, stdout=subprocess.DEVNULL)

    made("a", options, "".join("%d\n" % i for i in range(1000000)))
    for i in range(17):
        made("b%d" % i, options, "x%d\n" % i)
    one, many = (instructions([TAMIS, "merge", "-o", "c%d" % n, "--restate", "a"] +
                              ["b%d" % i for i in range(n)], tmp_path) for n in (1, 17))
    print("%d and %d instructions" % (one, many))
    assert many < 1.2 * one


def test_a_plan_near_a_rate_of_1_is_made_at_once(tmp_path):
    """A billion instructions are a fifth of a second; step by step it would be 10^12 items."""
    assert instructions([TAMIS, "plan", "fixed", "--items", "1e12", "--fpp", "0.9999999999999999"],
                        tmp_path) < 10 ** 9


def test_a_small_file_and_a_first_plan_cost_little(tmp_path):
    """Wiping a buffer of 1 MiB after a small file was read took another 10^6 instructions; blocks with so few keys
    that there is hardly one took 5 * 10^7 in the first plan of a process."""
    subprocess.run([TAMIS, "create", "--capacity", "100", "small"], cwd=tmp_path, check=True)
    assert instructions([TAMIS, "add", "small", "key"], tmp_path) < 1.6e6
    for rate in ("0.01", "0.001"):
        assert instructions([TAMIS, "create", "--growth", "fixed", "--capacity", "1e6", "--fpp", rate, rate],
                            tmp_path) < 2e7
