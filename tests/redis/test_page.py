"""What docs/redis.md shows is what the server says; the examples run."""
import os
import re
import shlex
import subprocess
import sys

import pytest

from conftest import MODULE, ROOT

with open(os.path.join(ROOT, "docs", "redis.md")) as page:
    PAGE = page.read()


@pytest.mark.parametrize("block", re.findall(r"^```redis\n(.*?)^```", PAGE, re.M | re.S))
def test_a_block(server, block):
    steps = re.findall(r"^> (.*)\n((?:(?!> ).*\n)*)", block, re.M)
    assert steps
    for command, expected in steps:
        said = subprocess.run(["redis-cli", "-s", server.socket, "--no-raw"] + shlex.split(command),
                              capture_output=True, text=True).stdout
        assert said.strip() == expected.strip(), command


def test_save_and_load(r, tmp_path):
    block = re.search(r"^```python\n(.*?)^```", PAGE, re.M | re.S).group(1)
    names = {}
    exec(block, names)
    r.execute_command("TAMIS.RESERVE", "f", 0.0001, 1000000)
    r.execute_command("TAMIS.MADD", "f", *range(1000))
    names["save"](r, "f", tmp_path / "f.tamis")
    names["load"](r, "g", tmp_path / "f.tamis", 100000)
    assert r.execute_command("DEBUG", "DIGEST-VALUE", "f") == \
        r.execute_command("DEBUG", "DIGEST-VALUE", "g")


def test_the_example(server):
    done = subprocess.run([sys.executable, os.path.join(ROOT, "examples", "redis_client.py"), server.socket],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "seen before: 2" in done.stdout


def test_every_command_is_described(r):
    for name in r.execute_command("COMMAND LIST", "FILTERBY", "MODULE", "tamis"):
        name = name.decode().upper()
        assert name in PAGE or "`%s`" % name.split(".")[1] in PAGE, name
    for name in r.config_get("tamis.*"):
        assert "`%s`" % name in PAGE
    assert os.path.exists(MODULE)
