#!/usr/bin/python3
"""How work grows with its size, by instructions that valgrind's cachegrind counts: bench_work with n
and with 4n of a thing (keys, vectors, layers, pending removals, attributes), less what an empty
run takes. Linear work is 4 times as much, n log n less than 5, a square 16: more than LIMIT fails.
Counts do not depend on the machine's load or clock.
"""
import os, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "bench"))
import counts

counts.PROGRAM = os.path.join(ROOT, "build", "release", "bench", "bench_work")
LIMIT = 6


def main():
    listed = subprocess.run([counts.PROGRAM], capture_output=True, text=True, check=True).stdout
    works = [line.split() for line in listed.splitlines()]
    worse = []
    for name, n in works:
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        empty, once, more = (counts.instructions(name, k * int(n)) for k in (0, 1, 4))
        times = (more - empty) / (once - empty)
        print(f"  {name:20} {int(n):6} {(once - empty) / 1e6:9.1f} million instructions, "
              f"four times as many: {times:5.2f} times", flush=True)
        if times > LIMIT:
            worse.append(f"{name}: {times:.1f} times the work for 4 times the size")
    if worse:
        sys.exit("work.py: " + "; ".join(worse))


if __name__ == "__main__":
    main()
