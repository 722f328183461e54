"""tamis index with no options on files of this machine, and on an export of journald: find = a scan by Python.

Files that a machine may lack (a fresh container has dpkg.log and little else) are left out; those that are
there are copied, since they may grow meanwhile."""
import json
import os
import random
import re
import shutil
import subprocess

import pytest

import questions

ROOT = os.environ.get("TAMIS_ROOT", os.path.join(os.path.dirname(__file__), "../.."))
TAMIS = os.path.join(ROOT, os.environ.get("TAMIS", "build/release/tamis"))
SEED = int(os.environ.get("TAMIS_SEED", "7"), 0)
LOGS = ["/var/log/dpkg.log", "/var/log/alternatives.log", "/var/log/apt/history.log", "/var/log/apt/term.log",
        "/var/log/bootstrap.log", "/var/log/fontconfig.log", "/var/log/postgresql/postgresql-15-main.log"]


def tamis(tmp, *words, status=(0,)):
    done = subprocess.run([TAMIS, *words], cwd=tmp, capture_output=True)
    assert done.returncode in status, (words, done.returncode, done.stderr)
    return done.stdout


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    tmp = tmp_path_factory.mktemp("machine")
    (tmp / "logs").mkdir()
    for path in LOGS:
        if os.path.exists(path) and os.path.getsize(path) and os.access(path, os.R_OK):
            shutil.copy(path, tmp / "logs" / os.path.basename(path))
    if not list((tmp / "logs").iterdir()):
        pytest.skip("this machine has no log that can be read")
    tamis(tmp, "index", "logs", "--tz", "UTC")
    return tmp


def lines(tmp):
    """All lines that are not empty, in the order of their files."""
    for path in sorted((tmp / "logs").iterdir()):
        for line in path.read_bytes().split(b"\n"):
            if line.removesuffix(b"\r"):
                yield path.name, line


def test_every_file_is_text_and_every_line_a_record(machine):
    facts = json.loads(tamis(machine, "find", "logs", "--json"))
    assert facts["inputs"] == len(list((machine / "logs").iterdir()))
    assert facts["records"] == len(list(lines(machine)))


def test_words_and_regular_expressions(machine):
    rng = random.Random(SEED)
    pool = list(lines(machine))
    for _ in range(25):
        words = re.findall(questions.WORD, rng.choice(pool)[1])
        if not words:
            continue
        at = rng.randrange(len(words))
        phrase = b" ".join(words[at:at + rng.choice([1, 1, 2])])
        want = [line + b"\n" for _, line in pool if questions.has_phrase(line, phrase)]
        assert tamis(machine, "find", "logs", "--", b'"' + phrase + b'"', status=(0, 1)) == b"".join(want), phrase
        part = re.escape(rng.choice(words)[:6])
        want = sum(bool(re.search(part, line)) for _, line in pool)
        assert tamis(machine, "find", "--count", "logs", b"line~/" + part + b"/", status=(0, 1)) == b"%d\n" % want


def test_a_time_range_of_dpkg(machine):
    path = machine / "logs" / "dpkg.log"
    if not path.exists():
        pytest.skip("no dpkg.log")
    want = [line for line in path.read_bytes().split(b"\n") if line]
    rng = random.Random(SEED)
    for _ in range(10):
        low, high = sorted(rng.choice(want)[:19] for _ in range(2))
        got = tamis(machine, "find", "-H", "logs", "--since", low, "--until", high, b'"status installed"', status=(0, 1))
        got = [line.split(b":", 1)[1] for line in got.splitlines() if line.startswith(b"logs/dpkg.log:")]
        assert got == [line for line in want if low <= line[:19] <= high and
                       questions.has_phrase(line, b"status installed")], (low, high)


def test_an_export_of_journald(tmp_path):
    """journalctl -o json: numbers are strings, times are microseconds, a field may be given twice, and a
    message that is no text is a list of bytes."""
    shutil.copy(os.path.join(ROOT, "tests/samples/journald.json"), tmp_path / "journal.json")
    records = [json.loads(line) for line in (tmp_path / "journal.json").open()]
    tamis(tmp_path, "index", "journal.json", "-o", "c.tamis", "--time", "__REALTIME_TIMESTAMP")

    def ask(*words):
        out = tamis(tmp_path, "find", "c.tamis", *words, status=(0, 1))
        return [records.index(json.loads(line)) for line in out.splitlines()]

    def some(name, want):
        values = [r.get(name) for r in records]
        return [i for i, v in enumerate(values) if want in (v if isinstance(v, list) else [v])]

    assert ask("SYSLOG_IDENTIFIER=sshd-session") == some("SYSLOG_IDENTIFIER", "sshd-session") == [2]
    assert ask("_COMM=run-parts") == some("_COMM", "run-parts")
    assert ask("PRIORITY=..4") == [i for i, r in enumerate(records) if int(r["PRIORITY"]) <= 4]
    assert ask("MESSAGE!") == [4] and ask("MESSAGE=255") == [3]
    assert ask("MESSAGE~10.1.2.3") == [2]
    assert ask("_EXE^=/usr/") == [i for i, r in enumerate(records) if r.get("_EXE", "").startswith("/usr/")]
    assert ask("--since", "2012-07-17T16:01:02Z", "--until", "2012-07-17T16:30:00Z", "PRIORITY!=9") == [2, 3]
