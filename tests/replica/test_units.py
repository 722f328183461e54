"""The units of systemd: their commands run as they are written, and say what systemd waits for."""
import os
import re
import shutil
import socket
import subprocess

import pytest

from hosts import TAMIS, WAIT, has_copies, wait_for

UNITS = os.path.join(os.environ.get("TAMIS_ROOT", "."), "packaging")


def command(unit, values):
    """The words of ExecStart, as systemd would make them."""
    with open(os.path.join(UNITS, unit)) as f:
        line = re.search(r"^ExecStart=(.*)$", f.read(), re.M).group(1)
    words = []
    for word in line.split():
        if word.startswith("$") and not word.startswith("${"):
            words += values[word[1:]].split()       # one word for each
        else:
            words.append(re.sub(r"\$\{(\w+)\}", lambda m: values[m.group(1)], word).replace("%i", "store"))
    assert words[:2] == ["/usr/bin/env", "tamis"]
    return [TAMIS] + words[2:]


class Supervisor:
    def __init__(self, folder):
        self.path = str(folder / "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(WAIT)

    def told(self, wanted):
        while wanted not in self.socket.recv(1000).decode().split("\n"):
            pass


@pytest.mark.skipif(not shutil.which("redis-server"), reason="no redis-server")
def test_units_run_and_tell_when_they_are_ready(world):
    world.start_server()
    world.redis("CONFIG", "SET", "requirepass", "s3cret x")
    (world.folder / "password").write_text("s3cret x\n")
    address = world.url
    (world.folder / "state").mkdir()
    (world.folder / "copies").mkdir()
    world.run("create", "state/origin.tamis", "--deletable")
    supervisors = []
    processes = []
    for unit, state, options, more in [
            ("tamis-publish@.service", "state", "--beat 1s", {"TAMIS_REDIS_PASSWORD": "s3cret x"}),
            ("tamis-follow@.service", "copies", "--every 200ms", {"TAMIS_REDIS_PASSWORD_FILE": "password"})]:
        folder = world.folder / unit
        folder.mkdir()
        supervisors.append(Supervisor(folder))
        words = command(unit, {"ADDRESS": address, "STATE_DIRECTORY": state, "OPTIONS": options})
        words = [word.replace("unix:/run/tamis-follow/", "unix:") for word in words]
        assert not any("s3cret" in word for word in words)
        processes.append(world.start(*words, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env={
            **os.environ, **more, "NOTIFY_SOCKET": supervisors[-1].path, "WATCHDOG_USEC": "300000"}))
        supervisors[-1].told("READY=1")
        supervisors[-1].told("WATCHDOG=1")
    processes[0].stdin.write(b"+ann\n")
    processes[0].stdin.flush()
    wait_for(lambda: has_copies(world, "copies"), "copies")
    wait_for(lambda: world.run("locate", "unix:store.sock", "ann", status=(0, 1)) == "ann\tstore\n", "a key")
    for process, supervisor in zip(processes, supervisors):
        process.terminate()
        supervisor.told("STOPPING=1")
        assert process.wait(timeout=WAIT) == 0

    # without a password, or with a file that has none
    for more in [{}, {"TAMIS_REDIS_PASSWORD_FILE": "/dev/null"}]:
        done = subprocess.run([TAMIS, "follow", address, "-o", "other", "--for", "5s"], cwd=world.folder,
                              capture_output=True, text=True, timeout=WAIT, env={**os.environ, **more})
        assert done.returncode == 2 and ("NOAUTH" in done.stderr or "no password" in done.stderr)


def test_lines_in_the_journal_have_levels(world):
    with open(world.folder / "journal", "w+") as journal:
        st = os.fstat(journal.fileno())
        for stream in ["%d:%d" % (st.st_dev, st.st_ino), "1:1"]:
            subprocess.run([TAMIS, "follow", "ftp://x", "-o", "copies"], cwd=world.folder, stderr=journal,
                           env={**os.environ, "JOURNAL_STREAM": stream}, timeout=WAIT)
        journal.seek(0)
        first, second = journal.read().splitlines()
    assert first.startswith("<3>tamis follow: ") and second.startswith("tamis follow: ")


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze")
def test_units_are_well_formed(tmp_path):
    for name in os.listdir(UNITS):
        if name.startswith(("tamis-follow", "tamis-publish")):
            shutil.copy(os.path.join(UNITS, name), tmp_path / name.replace("@", "@x"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no"] + sorted(map(str, tmp_path.iterdir())),
                          capture_output=True, text=True, timeout=WAIT)
    wrong = [line for line in done.stderr.splitlines() if "tamis-" in line and "not executable" not in line]
    assert not wrong, wrong
