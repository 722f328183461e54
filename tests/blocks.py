#!/usr/bin/python3
"""Tests the code blocks of a page, so that what it shows is true.

    tests/blocks.py PAGE.md

    ```c          a whole program is compiled and run; a part must stand word for word (but for
                  indentation) in the file that the comment <!-- from PATH --> above it names
    ```console    each "$ command" is run; what follows it is what it must print, where a line
                  "..." stands for any lines. The blocks of a page share one folder
    ```sh         must be correct shell, and its "make TARGET" must be targets

A comment <!-- not run --> right above a block leaves it out. Prints "ok NAME" or
"not ok NAME: why" for each block. Environment: TAMIS_ROOT, TAMIS_BUILD (see tests/run).
"""
import os
import re
import subprocess
import sys

ROOT = os.environ.get("TAMIS_ROOT", os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("TAMIS_BUILD", os.path.join(ROOT, "build/release"))


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL, errors="replace")
    return done.returncode, done.stdout


def plain(text):
    return [line.strip() for line in text.strip().split("\n")]


def test_c(text, source):
    if source:
        try:
            with open(os.path.join(ROOT, source)) as f:
                whole = plain(f.read())
        except OSError as error:
            return str(error)
        part = plain(text)
        if any(whole[i:i + len(part)] == part for i in range(len(whole))):
            return None
        return "is not in " + source
    if "main(" not in text:
        return "neither a whole program nor marked <!-- from PATH -->"
    with open("block.c", "w") as f:
        f.write(text)
    status, output = run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror",
                          "-I" + os.path.join(ROOT, "include"), "block.c", "-o", "block",
                          os.path.join(BUILD, "libtamis.a"), "-lsodium", "-lm", "-lpthread"])
    if status == 0:
        status, output = run(["./block"])
    return "status %d\n%s" % (status, output) if status else None


def agrees(printed, wanted):
    pattern = "".join("(?:.*\n)*?" if line.strip() == "..." else re.escape(line.rstrip()) + "\n"
                      for line in wanted)
    printed = "".join(line.rstrip() + "\n" for line in printed.splitlines())
    return re.fullmatch(pattern, printed) is not None


def test_console(text, _source):
    steps = []
    for line in text.rstrip("\n").split("\n"):
        if line.startswith("$ "):
            steps.append((line[2:], []))
        elif line.startswith("> ") and steps and not steps[-1][1]:
            steps[-1] = (steps[-1][0] + "\n" + line[2:], [])
        elif steps:
            steps[-1][1].append(line)
        else:
            return "does not begin with a command: " + line
    for command, wanted in steps:
        _, printed = run(["bash", "-c", command])
        if not agrees(printed, wanted):
            return "%s printed:\n%s" % (command, printed)
    return None


def test_sh(text, _source):
    status, output = run(["bash", "-n", "-c", text])
    if status:
        return output
    _, targets = run(["make", "-s", "-C", ROOT, "help"])
    for target in re.findall(r"^\s*make ([a-z][a-z-]*)", text, re.M):
        if not re.search(r"^  make %s " % re.escape(target), targets, re.M):
            return "make has no target " + target
    return None


def main(path):
    with open(path) as f:
        page = f.read()
    tests = {"c": test_c, "console": test_console, "sh": test_sh}
    blocks = re.finditer(r"(?:^<!-- (from \S+|not run) -->\n+)?^```(\w+)\n(.*?)^```$", page,
                         re.M | re.S)
    failed = 0
    for block in blocks:
        note, language, text = block.groups()
        if language not in tests:
            continue
        line = page.count("\n", 0, block.start(2)) + 1
        name = "%s:%d" % (os.path.basename(path), line)
        if note == "not run":
            continue
        why = tests[language](text, note[len("from "):] if note else None)
        if why:
            failed += 1
            print("not ok %s: %s" % (name, why))
        else:
            print("ok %s (%s)" % (name, language))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
