#!/usr/bin/python3
"""The module's tests on other servers, one after the other: make check-servers SERVERS="PATH..."

    tests/redis/servers.py PATH... [-- ARGUMENTS of pytest]

Says of each which version it is, what passed and failed, and what was skipped and why. The tests of a
server's own surroundings (Debian's unit file, for one) run with Debian's server only. Status 1 if anything
failed.
"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def tested(server, arguments):
    """Runs them; true if none failed."""
    try:
        version = subprocess.run([server, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print("%s: cannot be run: %s" % (server, error))
        return False
    print("%s: %s" % (server, version.stdout.strip()), flush=True)
    done = subprocess.run(["/usr/bin/python3", "-m", "pytest", "-q", "-rsfE", "-p", "no:cacheprovider"] +
                          (arguments or [HERE]), capture_output=True, text=True,
                          env=dict(os.environ, REDIS_SERVER=os.path.abspath(server)))
    for line in done.stdout.split("\n"):
        if re.match(r"SKIPPED|FAILED|ERROR|.*(passed|failed)", line):
            print("  " + line)
    return done.returncode == 0


def main():
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    if not words[:cut]:
        sys.exit("check-servers: say which: make check-servers SERVERS=\"/usr/bin/valkey-server ...\"")
    results = [tested(server, words[cut + 1:]) for server in words[:cut]]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
