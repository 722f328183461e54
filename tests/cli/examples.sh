#!/bin/bash
# The examples of "tamis help VERB" and of the manual pages: run, and what they print compared with
# what the pages show.
exec /usr/bin/python3 - "$TAMIS_ROOT" <<'END'
import glob, os, re, shutil, subprocess, sys, tempfile

root = sys.argv[1]
failed = 0


def examples_of_help(verb):
    text = subprocess.run(["tamis", "help", verb], capture_output=True, text=True).stdout
    return [line[2:] for line in text.partition("Examples:\n")[2].splitlines() if line.startswith("  ")]


def examples_of_page(path):
    text = open(path).read()
    part = re.search(r"^\.SH EXAMPLES\n(.*?)(?=^\.SH |\Z)", text, re.M | re.S)
    lines = []
    for block in re.findall(r"^\.EX\n(.*?)^\.EE", part.group(1) if part else "", re.M | re.S):
        lines += block.splitlines()
    return [line.replace("\\-", "-").replace("\\(aq", "'").replace("\\(dq", '"').replace("\\e", "\\")
            .replace("\\&", "") for line in lines]


def run(name, lines):
    """Each "$ command" with the lines that follow it, one after the other in an empty folder."""
    steps = []
    for line in lines:
        if line.startswith("$ "):
            steps.append([line[2:], []])
        elif line.startswith("> ") and not steps[-1][1]:
            steps[-1][0] += "\n" + line[2:]
        else:
            steps[-1][1].append(line)
    folder = tempfile.mkdtemp()
    for command, shown in steps:
        done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)
        printed = done.stdout.splitlines()
        if printed != shown or done.returncode > 1 or done.stderr:
            shutil.rmtree(folder)
            return "%r printed %r, not %r; status %d %s" % (command, printed, shown, done.returncode,
                                                             done.stderr.strip())
    shutil.rmtree(folder)
    return "" if steps else "has no examples"


def judge(name, why):
    global failed
    failed |= bool(why)
    print("not ok %s: %s" % (name, why) if why else "ok %s" % name)


verbs = re.findall(r"^  tamis (\w+)", subprocess.run(["tamis", "help"], capture_output=True,
                                                     text=True).stdout, re.M)
for verb in sorted(set(verbs) - {"help", "version", "apply"}):
    judge("help-" + verb, run(verb, examples_of_help(verb)))
for path in sorted(glob.glob(root + "/docs/man/*.1")):
    name = os.path.basename(path)
    if open(path).read().startswith(".so "):
        target = open(path).read().split()[1].replace("man1/", "")
        judge("page-" + name, "" if os.path.exists(root + "/docs/man/" + target) else "points nowhere")
    else:
        judge("page-" + name, run(name, examples_of_page(path)))
for verb in sorted(set(verbs) - {"help", "version"}):
    judge("manual-of-" + verb, "" if os.path.exists("%s/docs/man/tamis-%s.1" % (root, verb)) else
          "no page docs/man/tamis-%s.1" % verb)
sys.exit(failed)
END
