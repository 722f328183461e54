#!/usr/bin/python3
"""The module in a server of its own, against the server's GET in the same run: throughput, memory, stalls.

    bench/server.py         BENCH_FULL=1: more requests, more rounds, stalls at 10^8 keys, a million small filters
                            TAMIS_PEER=redisbloom.so: the same of another module with BF.*, beside it
                            BENCH_COUNT=1: instead, instructions of the server per command (valgrind), and those
                            of the module's own code, which is all that a module can save
                            BENCH_TIME=1: instead, the processor time of the server per command, of the modules in turns

redis-benchmark with 50 clients and pipelines of 64, over a socket, on a private server without
persistence. GET reads one of 100,000 strings of 16 bytes. Filters hold 4 million keys of 13 bytes;
`grown` began with a capacity of 100, `reserved` was made for 4 million. Half of the keys asked for are
there. Rounds take turns, also with the other module, and the median is shown. Rates are shown by the clock, which only a
quiet machine makes comparable, and by the processor time of the server's main thread. Memory is what MEMORY USAGE says;
of many small filters, what the server takes more. A stall is the longest time that one command of the kind kept
the server: by the clock (SLOWLOG), and the processor time of its main thread, which leaves out what other programs
take. Prints a table, and JSON to build/bench/server.json (or to BENCH_JSON).
"""
import json
import os
import re
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
PEER = os.environ.get("TAMIS_PEER")
KEYS = 4_000_000
LARGE = 100_000_000 if FULL else 10_000_000
SMALL = 1_000_000 if FULL else 100_000
REQUESTS = 3_000_000 if FULL else 800_000
ROUNDS = 7 if FULL else 3
ITEMS = 100


def start(folder, module, before=(), server="redis-server"):
    process = subprocess.Popen([*before, server, "--port", "0", "--unixsocket", folder + "/s", "--save",
                                "", "--dir", folder, "--logfile", folder + "/log", "--loadmodule",
                                module], stdout=subprocess.DEVNULL)
    r = redis.Redis(unix_socket_path=folder + "/s")
    r.set_response_callback("BF.INFO", list)
    for _ in range(1000):
        try:
            if r.ping():
                return process, r
        except redis.RedisError:
            time.sleep(0.02)
    process.kill()
    sys.exit("bench/server.py: the server did not start")


def worked(process):
    """Seconds for which the processor ran the main thread of the server."""
    with open("/proc/%d/schedstat" % process.pid) as file:
        return int(file.read().split()[0]) / 1e9


def rate(folder, process, requests, random, *command):
    """Requests a second: by the clock, and by the processor time of the server."""
    before = worked(process)
    out = subprocess.run(["redis-benchmark", "-s", folder + "/s", "-P", "64", "-c", "50", "-n",
                          str(requests), "-r", str(random), "--csv"] + list(command),
                         capture_output=True, text=True, check=True).stdout
    return float(out.strip().split("\n")[-1].split(",")[1].strip('"')), requests / (worked(process) - before)


def fill(r, ours):
    for i in range(0, 100_000, 10_000):
        r.mset({"key:%012d" % j: "v" * 16 for j in range(i, i + 10_000)})
    r.execute_command("BF.RESERVE", "grown", 0.01, 100)
    r.execute_command("BF.RESERVE", "reserved", 0.01, KEYS)
    names = ["grown", "reserved"]
    if ours:
        r.execute_command("TAMIS.RESERVE", "deletable", 0.01, 100, "DELETABLE")
        names.append("deletable")
    pipe = r.pipeline(transaction=False)
    for i in range(0, KEYS, 10_000):
        keys = ["k%012d" % j for j in range(i, i + 10_000)]
        for name in names:
            pipe.execute_command("BF.MADD", name, *keys)
        pipe.execute()


def runs_of(folder, process, ours):
    """What is timed: how many items one request has, and a function that sends the requests."""
    items = ["k__rand_int__"] * ITEMS
    few = REQUESTS // ITEMS * 4

    def run(requests, random, *command):
        return lambda: rate(folder, process, requests, random, *command)
    runs = {
        "GET": (1, run(REQUESTS, 100_000, "GET", "key:__rand_int__")),
        "EXISTS grown": (1, run(REQUESTS, 2 * KEYS, "BF.EXISTS", "grown", items[0])),
        "EXISTS reserved": (1, run(REQUESTS, 2 * KEYS, "BF.EXISTS", "reserved", items[0])),
        "EXISTS deletable": (1, run(REQUESTS, 2 * KEYS, "BF.EXISTS", "deletable", items[0])),
        "MEXISTS of 100, grown": (ITEMS, run(few, 2 * KEYS, "BF.MEXISTS", "grown", *items)),
        "MEXISTS of 100, reserved": (ITEMS, run(few, 2 * KEYS, "BF.MEXISTS", "reserved", *items)),
        "SET": (1, run(REQUESTS, 100_000, "SET", "key:__rand_int__", "v" * 16)),
        "ADD": (1, run(REQUESTS, KEYS, "BF.ADD", "adding", "k__rand_int__")),
        "MADD of 100": (ITEMS, run(few, KEYS, "BF.MADD", "adding", *items)),
    }
    if not ours:
        del runs["EXISTS deletable"]
    return runs


def measure(runs):
    """Medians of rounds in which the modules take turns: for each module, items a second by clock and processor."""
    seen = [{name: [] for name in each} for each in runs]
    for _ in range(ROUNDS):
        for name in runs[0]:
            for module, rows in zip(runs, seen):
                if name in module:
                    items, run = module[name]
                    rows[name].append([items * each for each in run()])
    return [{name: [statistics.median(each) for each in zip(*rates)] for name, rates in rows.items()}
            for rows in seen]


def memory(r):
    """Bytes at 1 %: what a filter of this history takes."""
    r.flushall()
    rows = {}
    for name, reserve, n in (("new key, one item", None, 1), ("reserved 1,000", (1000,), 0),
                             ("reserved 1,000, NONSCALING", (1000, "NONSCALING"), 0),
                             ("reserved 1,000, EXPANSION 4", (1000, "EXPANSION", 4), 0),
                             ("reserved 10^7", (10**7,), 0), ("grown to 10^4", None, 10**4),
                             ("grown to 10^6", None, 10**6)):
        if reserve:
            r.execute_command("BF.RESERVE", "f", 0.01, *reserve)
        for i in range(0, n, 1000):
            r.execute_command("BF.MADD", "f", *range(i, min(n, i + 1000)))
        rows["bytes, " + name] = r.memory_usage("f")
        r.delete("f")
    before = r.info("memory")["used_memory"]
    pipe = r.pipeline(transaction=False)
    for i in range(SMALL):
        pipe.execute_command("BF.MADD", "s%d" % i, *range(10))
        if i % 1000 == 999:
            pipe.execute()
    rows["bytes, each of %d with ten items" % SMALL] = (r.info("memory")["used_memory"] - before) // SMALL
    r.flushall()
    return rows


def kept(r, process, *words):
    """Milliseconds for which a command kept the server: by the clock, and of the processor."""
    r.slowlog_reset()
    before = worked(process)
    r.execute_command(*words)
    taken = (worked(process) - before) * 1e3
    return max([entry["duration"] for entry in r.slowlog_get(10)
                if entry["command"].split()[0].upper() == words[0].encode()] or [0]) / 1e3, taken


def stalls(r, process):
    r.config_set("slowlog-log-slower-than", 0)
    r.config_set("proto-max-bulk-len", "8gb")
    r.execute_command("BF.RESERVE", "f", 0.01, LARGE)
    for i in range(0, LARGE, 10_000):
        r.execute_command("BF.MADD", "f", *range(i, i + 10_000))
    rows = {}

    def row(name, said):
        for kind, each in zip(("ms", "ms of the processor"), said):
            rows["%s, %s" % (kind, name)] = round(each, 3)
    for command, running in (("BGSAVE", "rdb_bgsave"), ("BGREWRITEAOF", "aof_rewrite")):
        row("%s at %d keys" % (command, LARGE), kept(r, process, command))
        while r.info("persistence")[running + "_in_progress"]:
            time.sleep(0.1)
    for words in (["COPY", "f", "g"], ["DUMP", "f"], ["DEL", "f"]):
        try:
            row("%s at %d keys" % (words[0], LARGE), kept(r, process, *words))
        except redis.ResponseError:  # RedisBloom has no COPY
            pass
    r.execute_command("BF.RESERVE", "h", 0.01, 100)
    grew = [kept(r, process, "BF.MADD", "h", *range(i, i + 100)) for i in range(0, LARGE // 10, 100)]
    row("MADD of 100, growing to %d" % (LARGE // 10), [max(each) for each in zip(*grew)])
    r.flushall()
    return rows


def stop(servers, folders):
    for process, _ in servers:
        process.terminate()
        process.wait()
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def measured(modules):
    """Of each module: its rates, what memory and stalls it has, and of how many parts a grown filter is."""
    folders = [tempfile.mkdtemp(prefix="tamis-bench-") for _ in modules]
    servers = []
    try:
        for folder, module in zip(folders, modules):
            servers.append(start(folder, module))
            fill(servers[-1][1], module == MODULE)
        layers = [r.execute_command("BF.INFO", "grown", "FILTERS")[0] for _, r in servers]
        rates = measure([runs_of(folder, process, module == MODULE)
                         for folder, (process, _), module in zip(folders, servers, modules)])
        sizes = [{**memory(r), **stalls(r, process)} for process, r in servers]
        return list(zip(rates, sizes, layers))
    finally:
        stop(servers, folders)


def cost(path, libraries):
    """Instructions in a file of callgrind: all, and those of these libraries."""
    own, names, inside, called, everything = 0, {}, False, False, 0
    with open(path) as file:
        for line in file:
            library = re.match(r"(c?)ob=\((\d+)\)(?: (.*))?", line)  # the name comes with the first mention
            if library:
                called, number, name = library.groups()
                names.setdefault(number, name)
                inside = inside if called else any(name in names[number] for name in libraries)
            elif line[0] in "+-*0123456789":  # a line number and its cost, or that of the call before it
                n = 0 if called else int(line.split()[-1])
                everything += n
                own += n if inside else 0
            called = line.startswith("calls=")
    return everything, own


class Counted:
    """A server under callgrind, which counts what is executed inside of this function of the server."""

    def __init__(self, module, inside, server="redis-server"):
        self.folder = tempfile.mkdtemp(prefix="tamis-bench-")
        self.process, self.r = start(self.folder, module, [
            "valgrind", "-q", "--tool=callgrind", "--toggle-collect=" + inside,
            "--callgrind-out-file=%s/out" % self.folder], server)

    def dump(self):
        """The file with the counts since the last time."""
        subprocess.run(["callgrind_control", "--dump", str(self.process.pid)], capture_output=True, check=True)
        self.r.ping()
        last = max((int(f.split(".")[1]), f) for f in os.listdir(self.folder) if f.startswith("out."))[1]
        return os.path.join(self.folder, last)

    def per_command(self, commands, libraries=()):
        """Instructions of one of these commands, and those of the libraries."""
        self.dump()
        send(self.r, commands)
        return [each / len(commands) for each in cost(self.dump(), libraries)]

    def drop(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def prepare(r, keys, turns):
    """Filters with this many keys, the reserved one with room for what is added to it, and a string."""
    r.set("string", "v" * 16)
    r.execute_command("BF.RESERVE", "grown", 0.01, 100)
    r.execute_command("BF.RESERVE", "reserved", 0.01, keys + 60_000 * turns)
    for i in range(0, keys, 1000):
        for name in ("grown", "reserved"):
            r.execute_command("BF.MADD", name, *["k%012d" % j for j in range(i, i + 1000)])


def commands(keys, turn):
    """What is counted or timed: the rows, and the commands of each; those that add have other keys in every turn."""
    n = 8000
    rows = {"GET": [["GET", "string"]] * n,
            "ADD, from none to 40,000": [["BF.ADD", "new%d" % turn, "k%012d" % i] for i in range(40_000)]}
    for name in ("grown", "reserved"):
        for title, command, letter in (("EXISTS, present", "BF.EXISTS", "k"), ("EXISTS, absent", "BF.EXISTS", "n"),
                                       ("ADD, present", "BF.ADD", "k"), ("ADD, absent", "BF.ADD", "a%d." % turn)):
            rows["%s, %s" % (title, name)] = [[command, name, letter + "%012d" % (i * (keys // n))] for i in range(n)]
        for title, command, letter in (("MEXISTS of 100, absent", "BF.MEXISTS", "n"),
                                       ("MADD of 100, absent", "BF.MADD", "b%d." % turn)):
            rows["%s, %s" % (title, name)] = [[command, name] + [letter + "%012d" % (i + j) for j in range(ITEMS)]
                                              for i in range(0, n, ITEMS)]
    return rows


def send(r, words):
    pipe = r.pipeline(transaction=False)
    for i, each in enumerate(words):
        pipe.execute_command(*each)
        if i % 64 == 63 or i == len(words) - 1:
            pipe.execute()


def counted(module):
    """Instructions of the server for one command, on filters of 40,000 keys: all, and those of the module."""
    # from reading a command to its reply, without what the server does by the clock
    server = Counted(module, "readQueryFromClient")
    try:
        prepare(server.r, 40_000, 1)
        return {title: server.per_command(words, [os.path.basename(module), "libsodium"])
                for title, words in commands(40_000, 0).items()}
    finally:
        server.drop()


def timed(modules, keys, turns=15):
    """Nanoseconds of the server's main thread for one command, of each module: they take turns, each first in every other
    one, so that what else the machine does concerns both."""
    folders = [tempfile.mkdtemp(prefix="tamis-bench-") for _ in modules]
    servers = []
    try:
        for folder, module in zip(folders, modules):
            servers.append(start(folder, module))
            prepare(servers[-1][1], keys, turns + 1)
        rows = {}
        for turn in range(turns + 1):
            for title, words in commands(keys, turn).items():
                took = [0] * len(servers)
                for i in range(len(servers))[::1 if turn % 2 else -1]:
                    process, r = servers[i]
                    before = worked(process)
                    send(r, words)
                    took[i] = (worked(process) - before) / len(words) * 1e9
                if turn:  # the first one warms up
                    rows.setdefault(title, []).append(took)
        return rows
    finally:
        stop(servers, folders)


def main():
    if os.environ.get("BENCH_TIME") == "1":
        for title, took in timed([MODULE] + ([PEER] if PEER else []), KEYS if FULL else 40_000).items():
            medians = [statistics.median(each) for each in zip(*took)]
            print("%-34s %6.0f ns%s" % (title, medians[0], "   peer %6.0f, ratio %.2f" % (
                medians[1], statistics.median(b / a for a, b in took)) if PEER else ""))
        return
    if os.environ.get("BENCH_COUNT") == "1":
        ours, peer = counted(MODULE), counted(PEER) if PEER else {}
        for title, (each, own) in ours.items():
            print("%-34s %7.0f instructions, %6.0f of the module%s" % (title, each, own, (
                "   peer %.0f, %.0f; ratio %.2f, at most %.2f" % (*peer[title], peer[title][0] / each, peer[title][0] / (
                    each - own))) if title in peer else ""))
        return
    said = measured([MODULE] + ([PEER] if PEER else []))
    rates, sizes, layers = said[0]
    peer_rates, peer_sizes = said[1][:2] if PEER else ({}, {})
    print("%-54s %10s %10s  million items a second" % ("", "clock", "processor"))
    for name, each in rates.items():
        print("%-54s %10.3f %10.3f%s" % (name, each[0] / 1e6, each[1] / 1e6, "   peer %.3f %.3f, ratio %.2f %.2f" % (
            *(n / 1e6 for n in peer_rates[name]), *(n / m for n, m in zip(each, peer_rates[name])))
            if name in peer_rates else ""))
    for name, each in sizes.items():
        print("%-54s %10.10g%s" % (name, each, "   peer %.10g" % peer_sizes[name] if name in peer_sizes else ""))
    grown = rates["EXISTS grown"][1] / rates["EXISTS reserved"][1]
    many = rates["MEXISTS of 100, grown"][1] / rates["GET"][1]
    print("EXISTS on a filter grown to %d vectors / on one reserved, by processor time: %.2f" % (layers, grown))
    print("items of MEXISTS / GET, by processor time: %.1f" % many)
    path = os.environ.get("BENCH_JSON", os.path.join(ROOT, "build/bench/server.json"))
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w") as out:
        json.dump({"rates": rates, "sizes": sizes, "layers": layers, "grown_to_reserved": grown,
                   "mexists_to_get": many, "peer_rates": peer_rates, "peer_sizes": peer_sizes}, out,
                  indent=1)


if __name__ == "__main__":
    main()
