#!/usr/bin/python3
"""A fleet of 1,000 hosts and 30 days: bytes sent for a record, size of all copies, time of `tamis where`.

    bench/fleet.py [HOSTS DAYS RECORDS]      RECORDS of each host and day (1000 30 1000)

One host is real: its logs are indexed and published, and the bytes that it sends are counted. The others are
made from synthetic records of the same attributes (bench_fleet.c), since 30,000 runs of index take half an hour.
Times are of the whole process, warm, the median of 21; /bin/true is what starting any takes.
"""
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TAMIS = os.environ.get("TAMIS", ROOT + "/build/release/tamis")
LINES = 200_000


def write_logs(path):
    """Sessions of three records on average; 70 bytes each."""
    random.seed(7)
    with open(path, "w") as f:
        f.write("time,ip,user,path\n")
        for i in range(LINES):
            if i == 0 or random.random() < 1 / 3:
                user = int(50000 ** random.random())
                ip = "10.%d.%d.%d" % (user % 3, user % 251, user % 241 if random.random() < 0.8 else
                                      random.randrange(256))
            f.write("2026-11-16T%02d:%02d:%02dZ,%s,user%d,/page/%d/of/the/shop\n"
                    % (i * 24 // LINES, i // 60 % 60, i % 60, ip, user, i % 1000))


def median(command, folder):
    times = []
    for _ in range(22):
        start = time.perf_counter()
        subprocess.run(command, cwd=folder, capture_output=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:]) * 1e3


def main():
    size = sys.argv[1:4] if len(sys.argv) > 3 else ["1000", "30", "1000"]
    with tempfile.TemporaryDirectory() as folder:
        write_logs(folder + "/web.csv")
        subprocess.run([TAMIS, "index", "web.csv", "--attrs", "ip,user", "--publish", "file:exchange", "--as", "web"],
                       cwd=folder, check=True)
        sent = sum(os.path.getsize(os.path.join(path, name)) for path, _, names in os.walk(folder + "/exchange")
                   for name in names)
        print("one host, one day, %d records of %d bytes: %d bytes sent, %.2f a record"
              % (LINES, os.path.getsize(folder + "/web.csv") / LINES, sent, sent / LINES), flush=True)
        subprocess.run([ROOT + "/build/release/bench/bench_fleet", folder + "/web.csv.tamis.fleet/1.tamis",
                        folder + "/copies", *size], check=True)
        for name, question in (("absent pair, both values everywhere", ["ip=10.0.0.1", "user=user1"]),
                               ("absent value", ["user=nobody"]),
                               ("absent pair in one day", ["ip=10.0.0.1", "user=user1", "--since", "2026-09-20",
                                                           "--until", "2026-09-20"]),
                               ("user of all hosts", ["user=user1"])):
            done = subprocess.run([TAMIS, "where", "copies", *question], cwd=folder, capture_output=True, text=True)
            print("where, %s: %.1f ms (%d host-days named)"
                  % (name, median([TAMIS, "where", "copies", *question], folder), len(done.stdout.splitlines())))
        print("/bin/true: %.1f ms" % median(["/bin/true"], folder))


if __name__ == "__main__":
    main()
