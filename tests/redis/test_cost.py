"""What a command costs, in instructions that the server executes for it: counted, not timed."""
import os
import re
import shutil
import subprocess
import tempfile

import pytest
import redis

from conftest import ASAN, MODULE, SERVER, wait

N = 2000


class Counted:
    """A server under callgrind, which counts what is executed inside of call(), the server's function that
    runs a command."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="tamis-redis-")
        path = os.path.join(self.folder, "s")
        self.process = subprocess.Popen(
            ["valgrind", "-q", "--tool=callgrind", "--toggle-collect=call", "--callgrind-out-file=%s/out" % self.folder,
             SERVER, "--port", "0", "--unixsocket", path, "--save", "", "--dir", self.folder, "--loadmodule", MODULE],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.r = redis.Redis(unix_socket_path=path, socket_timeout=120)
        wait(self.r.ping, 120, "the server did not start")

    def dump(self):
        """Instructions since the last time."""
        subprocess.run(["callgrind_control", "--dump", str(self.process.pid)], capture_output=True, check=True)
        files = [f for f in os.listdir(self.folder) if f.startswith("out.")]
        last = max(files, key=lambda f: int(f.split(".")[1]))
        with open(os.path.join(self.folder, last)) as file:
            return int(re.search(r"^(?:summary|totals): (\d+)", file.read(), re.M).group(1))

    def per_command(self, *words):
        """The last word has a number in it."""
        pipe = self.r.pipeline(transaction=False)
        for i in range(N):
            pipe.execute_command(*words[:-1], words[-1] % i)
        self.dump()
        pipe.execute()
        return self.dump() / N

    def drop(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.mark.skipif(ASAN or SERVER != "redis-server", reason="the bounds are those of Debian's server")
def test_instructions():
    """RedisBloom's BF.EXISTS takes 2,100 to 2,220 of them, its BF.ADD 2,360 to 2,470. RM_Replicate would take 2,300."""
    server = Counted()
    try:
        server.r.execute_command("BF.RESERVE", "f", 0.01, 100000)
        server.r.execute_command("BF.MADD", "f", *["k%012d" % i for i in range(N)])
        costs = {"EXISTS, present": (server.per_command("BF.EXISTS", "f", "k%012d"), 1850),
                 "EXISTS, absent": (server.per_command("BF.EXISTS", "f", "n%012d"), 1850),
                 "ADD, present": (server.per_command("BF.ADD", "f", "k%012d"), 2080),
                 "ADD, absent": (server.per_command("BF.ADD", "f", "a%012d"), 2240)}
        assert server.r.execute_command("BF.EXISTS", "f", "a%012d" % 7) == 1
    finally:
        server.drop()
    for name, (cost, most) in costs.items():
        assert 500 < cost <= most, (name, costs)
