#!/usr/bin/python3
"""Runs experiments in their small form and checks what must hold.

    lab/check.py [--size small|normal|full] [PROGRAM...]

PROGRAM is a program of lab/ (none: all), taken from build/release. Prints "ok PROGRAM" or
"not ok PROGRAM: why"; the status is 0 when all is well. A series that is expected and that no program
of its paper printed is an error when all are run.
"""
import argparse
import glob
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import labdata  # noqa: E402

ROOT = os.path.dirname(labdata.HERE)
SECONDS = 600


def programs():
    return [os.path.basename(path)[:-2] for path in sorted(glob.glob(labdata.HERE + "/*.c"))
            if not os.path.basename(path).startswith("common")]


def path_of(program):
    build = os.environ.get("TAMIS_BUILD", os.path.join(ROOT, "build/release"))
    return os.path.join(build, "lab", program)


def run(program, size, seed=None, save=None):
    """What the program prints, as labdata.read_csv has it; `save` names a file for the text."""
    env = dict(os.environ, LAB=size)
    if seed is not None:
        env["LAB_SEED"] = str(seed)
    done = subprocess.run([path_of(program)], env=env, capture_output=True, text=True,
                          timeout=SECONDS)
    if done.returncode:
        raise RuntimeError("status %d: %s" % (done.returncode, done.stderr.strip()))
    if save:
        aside = "%s.%d" % (save, os.getpid())   # tests that run side by side share the file
        with open(aside, "w") as f:
            f.write(done.stdout)
        os.replace(aside, save)
    return labdata.read_csv(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="small", choices=["small", "normal", "full"])
    parser.add_argument("--seed", type=int)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    options = parser.parse_args()
    failed, papers = 0, {}
    for program in options.programs or programs():
        paper = labdata.paper_of(program)
        try:
            data = run(program, options.size, options.seed)
            looked, wrong = labdata.broken(data, labdata.read_expected(paper))
            if not looked:
                wrong = ["nothing that it prints is checked"]
            papers.setdefault(paper, {}).update(data)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            wrong = [str(error)]
        for text in wrong[1:]:
            print("    " + text)
        print("not ok %s: %s" % (program, wrong[0]) if wrong else
              "ok %s (%d numbers)" % (program, looked), flush=True)
        failed += bool(wrong)
    for paper, data in papers.items() if not options.programs else ():
        lost = labdata.missing(data, labdata.read_expected(paper))
        failed += bool(lost)
        if lost:
            print("not ok %s: nobody printed %s" % (paper, ", ".join(lost)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
