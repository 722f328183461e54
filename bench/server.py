#!/usr/bin/python3
"""The module in a server of its own, against the server's GET in the same run.

    bench/server.py         BENCH_FULL=1: more requests, more rounds

redis-benchmark with 50 clients and pipelines of 64, over a socket, on a private server without
persistence. GET reads one of 100,000 strings of 16 bytes. Filters hold 4 million keys of 13 bytes;
`grown` began with a capacity of 100, `reserved` was made for 4 million. Half of the keys asked for are
there. Rounds take turns, and the median is shown. Prints a table, and JSON to build/bench/server.json
(or to BENCH_JSON).
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import redis
except ImportError:
    sys.exit("bench/server.py: needs Debian's python3-redis")

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODULE = os.environ.get("TAMIS_MODULE", os.path.join(ROOT, "build/release/tamis.so"))
FULL = os.environ.get("BENCH_FULL") == "1"
KEYS = 4_000_000
REQUESTS = 3_000_000 if FULL else 800_000
ROUNDS = 7 if FULL else 3
ITEMS = 100


def start(folder):
    process = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", folder + "/s", "--save",
                                "", "--dir", folder, "--logfile", folder + "/log", "--loadmodule",
                                MODULE], stdout=subprocess.DEVNULL)
    r = redis.Redis(unix_socket_path=folder + "/s")
    for _ in range(200):
        try:
            if r.ping():
                return process, r
        except redis.RedisError:
            time.sleep(0.02)
    process.kill()
    sys.exit("bench/server.py: the server did not start")


def rate(folder, requests, random, *command):
    """Requests a second."""
    out = subprocess.run(["redis-benchmark", "-s", folder + "/s", "-P", "64", "-c", "50", "-n",
                          str(requests), "-r", str(random), "--csv"] + list(command),
                         capture_output=True, text=True, check=True).stdout
    return float(out.strip().split("\n")[-1].split(",")[1].strip('"'))


def fill(r):
    for i in range(0, 100_000, 10_000):
        r.mset({"key:%012d" % j: "v" * 16 for j in range(i, i + 10_000)})
    r.execute_command("BF.RESERVE", "grown", 0.01, 100)
    r.execute_command("BF.RESERVE", "reserved", 0.01, KEYS)
    r.execute_command("TAMIS.RESERVE", "deletable", 0.01, 100, "DELETABLE")
    pipe = r.pipeline(transaction=False)
    for i in range(0, KEYS, 10_000):
        keys = ["k%012d" % j for j in range(i, i + 10_000)]
        for name in ("grown", "reserved", "deletable"):
            pipe.execute_command("TAMIS.MADD", name, *keys)
        pipe.execute()


def measure(folder):
    items = ["k__rand_int__"] * ITEMS
    few = REQUESTS // ITEMS * 4
    runs = {
        "GET": (1, lambda: rate(folder, REQUESTS, 100_000, "GET", "key:__rand_int__")),
        "EXISTS grown": (1, lambda: rate(folder, REQUESTS, 2 * KEYS, "BF.EXISTS", "grown", items[0])),
        "EXISTS reserved": (1, lambda: rate(folder, REQUESTS, 2 * KEYS, "BF.EXISTS", "reserved",
                                            items[0])),
        "EXISTS deletable": (1, lambda: rate(folder, REQUESTS, 2 * KEYS, "BF.EXISTS", "deletable",
                                             items[0])),
        "MEXISTS of 100, grown": (ITEMS, lambda: rate(folder, few, 2 * KEYS, "BF.MEXISTS", "grown",
                                                      *items)),
        "MEXISTS of 100, reserved": (ITEMS, lambda: rate(folder, few, 2 * KEYS, "BF.MEXISTS",
                                                         "reserved", *items)),
        "SET": (1, lambda: rate(folder, REQUESTS, 100_000, "SET", "key:__rand_int__", "v" * 16)),
        "ADD": (1, lambda: rate(folder, REQUESTS, KEYS, "BF.ADD", "adding", "k__rand_int__")),
        "MADD of 100": (ITEMS, lambda: rate(folder, few, KEYS, "BF.MADD", "adding", *items)),
    }
    seen = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, (each, run) in runs.items():
            seen[name].append(each * run())
    return {name: statistics.median(rates) for name, rates in seen.items()}


def main():
    folder = tempfile.mkdtemp(prefix="tamis-bench-")
    process = None
    try:
        process, r = start(folder)
        fill(r)
        layers = r.execute_command("BF.INFO", "grown", "FILTERS")[0]
        rates = measure(folder)
    finally:
        if process:
            process.terminate()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)
    for name, each in rates.items():
        print("%-28s %8.3f million items a second" % (name, each / 1e6))
    grown = rates["EXISTS grown"] / rates["EXISTS reserved"]
    many = rates["MEXISTS of 100, grown"] / rates["GET"]
    print("EXISTS on a filter grown to %d vectors / on one reserved: %.2f" % (layers, grown))
    print("items of MEXISTS / GET: %.1f" % many)
    path = os.environ.get("BENCH_JSON", os.path.join(ROOT, "build/bench/server.json"))
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w") as out:
        json.dump({"rates": rates, "layers": layers, "grown_to_reserved": grown,
                   "mexists_to_get": many}, out, indent=1)


if __name__ == "__main__":
    main()
