"""What the COST tests of tests/unit do grows with the number of things, not with its square. Four
times as many cost 4 times the instructions, with sorting and tables that double up to 5 times, and 16
times where every one looks at every other."""
import glob
import os
import re

import pytest

from costs import BUILD, ROOT, instructions


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
