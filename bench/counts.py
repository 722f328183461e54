#!/usr/bin/python3
"""Instructions of one lookup, of one insert, and of a sixteenth of an owner of a directory, counted by valgrind's cachegrind.

Counts do not depend on the machine's load or clock, so a regression shows anywhere. They depend on
the compiler, so bench/counts.json keeps a record for each: `counts.py --record` adds or replaces the
one of this compiler, `counts.py --check` fails when a count is more than 10 % above it. Counted with
the AVX2 kernels, the widest that valgrind knows.
"""
import json, os, re, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RECORD = os.path.join(ROOT, "bench", "counts.json")
PROGRAM = os.path.join(ROOT, "build", "release", "bench", "bench_count")
SMALL, LARGE = 8192, 24576


def instructions(what, n):
    run = subprocess.run(
        ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", PROGRAM,
         what, str(n)],
        capture_output=True, text=True, env={**os.environ, "TAMIS_ISA": "avx2"})
    found = re.search(r"I +refs: +([\d,]+)", run.stderr)
    if run.returncode or not found:
        sys.exit(f"counts.py: {what} failed under valgrind:\n{run.stderr}")
    return int(found.group(1).replace(",", ""))


def measure():
    names = subprocess.run([PROGRAM], capture_output=True, text=True, check=True).stdout.split()
    return {name: round((instructions(name, LARGE) - instructions(name, SMALL)) / (LARGE - SMALL), 1)
            for name in names}


def compiler():
    return subprocess.run(["gcc", "--version"], capture_output=True, text=True,
                          check=True).stdout.splitlines()[0]


def main():
    records = json.load(open(RECORD)) if os.path.exists(RECORD) else {}
    known, now = records.get(compiler()), measure()
    worse = []
    for name, count in now.items():
        before = known.get(name) if known else None
        print(f"  {name:20} {count:8.1f} instructions" +
              (f"  (recorded {before:.1f})" if before else ""))
        if before and count > 1.1 * before:
            worse.append(f"{name}: {count} instructions, recorded {before}")
    if "--record" in sys.argv:
        records[compiler()] = now
        with open(RECORD, "w") as out:
            json.dump(records, out, indent=1, sort_keys=True)
            out.write("\n")
    if "--check" in sys.argv:
        if not known:
            print("skip: no record for", compiler())
        elif worse:
            sys.exit("counts.py: " + "; ".join(worse))


if __name__ == "__main__":
    main()
