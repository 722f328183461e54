"""Instructions of a run, counted by valgrind: they do not depend on what else the machine does."""
import os
import re
import shutil
import subprocess

import pytest

ROOT = os.path.abspath(os.environ.get("TAMIS_ROOT", os.path.join(os.path.dirname(__file__), "../..")))
BUILD = os.path.join(ROOT, "build/release")
TAMIS = os.path.join(BUILD, "tamis")
COUNTER = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null",
           "--log-file=counted"]


def instructions(command, cwd, status=0):
    """So many were executed by the command, which ends with that status."""
    if not shutil.which("valgrind"):
        pytest.skip("no valgrind")
    run = subprocess.run(COUNTER + command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         env={**os.environ, "TAMIS_ISA": "avx2"})
    assert run.returncode == status, run.stdout[-2000:]
    with open(os.path.join(cwd, "counted")) as log:
        return int(re.search(r"I +refs: +([\d,]+)", log.read()).group(1).replace(",", ""))
