"""What a command costs, in instructions that the server executes for it: counted, not timed."""
import os
import sys

import pytest

from conftest import ASAN, MODULE, ROOT, SERVER

sys.path.insert(0, os.path.join(ROOT, "bench"))
from server import Counted  # noqa: E402

N = 2000


def cost(server, command, form):
    return server.per_command([[command, "f", form % i] for i in range(N)])[0]


@pytest.mark.skipif(ASAN or SERVER != "redis-server", reason="the bounds are those of Debian's server")
def test_instructions():
    """RedisBloom's BF.EXISTS takes 2,095 to 2,220 of them, its BF.ADD 2,350 to 2,460. RM_Replicate would take 2,300."""
    server = Counted(MODULE, "call", SERVER)  # the server's function that runs a command
    try:
        server.r.execute_command("BF.RESERVE", "f", 0.01, 100000)
        server.r.execute_command("BF.MADD", "f", *["k%012d" % i for i in range(N)])
        costs = {"EXISTS, present": (cost(server, "BF.EXISTS", "k%012d"), 1780),
                 "EXISTS, absent": (cost(server, "BF.EXISTS", "n%012d"), 1780),
                 "ADD, present": (cost(server, "BF.ADD", "k%012d"), 1950),
                 "ADD, absent": (cost(server, "BF.ADD", "a%012d"), 2060)}
        assert server.r.execute_command("BF.EXISTS", "f", "a%012d" % 7) == 1
    finally:
        server.drop()
    for name, (each, most) in costs.items():
        assert 500 < each <= most, (name, costs)
