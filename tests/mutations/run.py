#!/usr/bin/python3
"""Plants faults in the library one by one and sees whether the tests notice.

    tests/mutations/run.py [--list] [-j N] [PART...]

tests/mutations/list.txt says what to plant. A mutation is

    NAME: TEST [ARGUMENT...]
    src/os/file.c
    - old line
    + new line

TEST is a program of tests/unit, cost/PROGRAM for its COST tests with their instructions counted, or
lab/NAME for an experiment checked by lab/check.py. It must fail once the old lines, found exactly
once in the file, are the new ones; ARGUMENTs choose among its tests. PART chooses mutations whose
name or file contains it. Each is planted in a copy of the tree under build/mutations, where what it
touches is compiled anew in release mode. Prints "ok NAME" for a fault that was noticed, "not ok NAME:
why" for one that was not, or that no longer fits the source. A test that fails without a fault is
named first. Names that begin with avx512 are left out where the machine has none.
"""
import argparse
import os
import queue
import resource
import shutil
import subprocess
import sys
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIST = os.path.join(ROOT, "tests/mutations/list.txt")
WORK = os.path.join(ROOT, "build/mutations")
FOLDERS = ["src", "include", "tests", "cli", "redis", "mk", "examples", "lab"]
RUN_SECONDS, BUILD_SECONDS = 120, 600
MEMORY = 8 << 30


class Mutation:
    def __init__(self, head, path, old, new):
        self.name, _, command = head.partition(":")
        self.command = command.split()
        self.path, self.old, self.new = path, old, new


def read_list():
    """The mutations, in the order written; a wrong entry ends the program."""
    with open(LIST) as f:
        entries = [e for e in f.read().split("\n\n") if e.strip()]
    found = []
    for entry in entries:
        lines = [line for line in entry.strip("\n").split("\n") if not line.startswith("#")]
        if not lines:
            continue
        old = "\n".join(line[2:] for line in lines[2:] if line.startswith("- "))
        new = "\n".join(line[2:] for line in lines[2:] if line.startswith("+ "))
        if len(lines) < 3 or ":" not in lines[0] or not old:
            sys.exit("list.txt: not a mutation:\n" + entry)
        found.append(Mutation(lines[0], lines[1].strip(), old, new))
    return found


def runs_here(mutation):
    if not mutation.name.startswith("avx512"):
        return True
    try:
        with open("/proc/cpuinfo") as f:
            return "avx512vl" in f.read()
    except OSError:
        return False


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


class Tree:
    """A copy of the sources and of what is built of them."""

    def __init__(self, number):
        self.path = os.path.join(WORK, str(number))
        shutil.rmtree(self.path, ignore_errors=True)
        os.makedirs(self.path)
        for name in FOLDERS + ["Makefile"]:
            source = os.path.join(ROOT, name)
            if os.path.isdir(source):
                shutil.copytree(source, os.path.join(self.path, name), symlinks=True)
            elif os.path.exists(source):
                shutil.copy2(source, self.path)
        built = os.path.join(ROOT, "build/release")
        if os.path.isdir(built):                # times are kept, so nothing is built twice
            shutil.copytree(built, os.path.join(self.path, "build/release"), symlinks=True)
            self.allow_warnings(os.path.join(self.path, "build/release/flags"))

    @staticmethod
    def allow_warnings(flags):
        """A fault may leave a variable unused: it must fail a test, not the compiler."""
        with open(flags) as file:
            text, times = file.read(), os.stat(flags)
        with open(flags, "w") as file:
            file.write(text.replace(" -Werror", ""))
        os.utime(flags, ns=(times.st_atime_ns, times.st_mtime_ns))

    def build(self, program):
        """None, or the end of what the compiler said."""
        target = program if program.startswith("lab/") else "tests/unit/" + program.split("/")[-1]
        done = subprocess.run(["make", "-s", "VARIANT=release", "build/release/" + target],
                              cwd=self.path,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=BUILD_SECONDS)
        return None if done.returncode == 0 else done.stdout[-600:]

    def passes(self, command):
        program = [os.path.join(self.path, "build/release/tests/unit", command[0])] + command[1:]
        if command[0].startswith("lab/"):
            program = [sys.executable, os.path.join(self.path, "lab/check.py"), command[0][4:]]
        elif command[0].startswith("cost/"):
            program = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-x", "-k",
                       " and ".join([command[0][5:]] + command[1:]),
                       os.path.join(self.path, "tests/python/test_costs.py")]
        folder = os.path.join(self.path, "run")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        env = dict(os.environ, TAMIS_ROOT=self.path, TAMIS_SEED="1",
                   TAMIS_BUILD=os.path.join(self.path, "build/release"))
        try:
            done = subprocess.run(program, cwd=folder, env=env,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  stdin=subprocess.DEVNULL, timeout=RUN_SECONDS,
                                  preexec_fn=limit_memory)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def plant(self, mutation):
        """Why the fault was not noticed, or None if it was."""
        path = os.path.join(self.path, mutation.path)
        try:
            with open(path) as f:
                text = f.read()
        except OSError as error:
            return str(error)
        count = text.count(mutation.old)
        if count != 1:
            return "its text is found %d times in %s" % (count, mutation.path)
        with open(path, "w") as f:
            f.write(text.replace(mutation.old, mutation.new))
        try:
            broken = self.build(mutation.command[0])
            if broken:
                return "does not compile\n" + broken
            return "survived: %s passes" % " ".join(mutation.command) \
                if self.passes(mutation.command) else None
        finally:
            with open(path, "w") as f:          # newer than its object, so compiled again
                f.write(text)


def run_all(mutations, jobs):
    todo, lock, failed = queue.Queue(), threading.Lock(), []
    sound = {}                                  # command: passes without a fault

    def say(name, why):
        with lock:
            print("not ok %s: %s" % (name, why) if why else "ok %s" % name, flush=True)
            if why:
                failed.append(name)

    def check_sound(tree, command):
        with lock:
            key = tuple(command)
            known = sound.get(key)
        if known is None:
            broken = tree.build(command[0])
            known = not broken and tree.passes(command)
            with lock:
                first, sound[key] = key not in sound, known
            if not known and first:
                say("-".join(command), "does not build\n" + broken if broken else
                    "fails without a fault")
        return known

    def worker(number):
        tree = Tree(number)
        while True:
            try:
                mutation = todo.get_nowait()
            except queue.Empty:
                return
            if not runs_here(mutation):
                with lock:
                    print("skip %s: this machine has no AVX-512" % mutation.name, flush=True)
            elif check_sound(tree, mutation.command):
                say(mutation.name, tree.plant(mutation))

    for mutation in sorted(mutations, key=lambda m: m.command):
        todo.put(mutation)
    workers = [threading.Thread(target=worker, args=(i,)) for i in range(jobs)]
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join()
    shutil.rmtree(WORK, ignore_errors=True)
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="name the mutations, plant none")
    parser.add_argument("-j", dest="jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("parts", nargs="*", metavar="PART")
    options = parser.parse_args()
    mutations = [m for m in read_list() if not options.parts or
                 any(part in m.name or part in m.path for part in options.parts)]
    names = [m.name for m in mutations]
    if len(set(names)) != len(names):
        sys.exit("list.txt: a name is used twice")
    if options.list:
        print("\n".join("%-36s %-22s %s" % (m.name, m.path, " ".join(m.command))
                        for m in mutations))
        return 0
    return run_all(mutations, max(1, min(options.jobs, len(mutations))))


if __name__ == "__main__":
    sys.exit(main())
