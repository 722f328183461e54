"""What people have, asked as they ask: tamis find over each sample, indexed without options, beside a scan by Python's own readers."""
import csv
import ipaddress
import io
import json
import os
import re
import subprocess

import pytest

ROOT = os.environ.get("TAMIS_ROOT", os.path.join(os.path.dirname(__file__), "../.."))
TAMIS = os.path.join(ROOT, os.environ.get("TAMIS", "build/release/tamis"))
SAMPLES = os.path.join(ROOT, "tests/samples")
COMMON = re.compile(r'(?P<host>\S+) (?P<ident>\S+) (?P<user>\S+) \[(?P<time>[^]]+)\] "(?P<request>[^"]*)" (?P<status>\d+) (?P<bytes>\S+)')


def people(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


def packages(text):
    head, *rows = [line.split("\t") for line in text.splitlines()]
    return [dict(zip(head, row)) for row in rows]


def lines(text):
    """Objects of JSON lines; others have no fields."""
    out = []
    for line in text.splitlines():
        try:
            out.append(json.loads(line))
        except ValueError:
            out.append({})
    return out


def common(text):
    """Fields of an access log, and the line, which lines of other logs have too."""
    out = []
    for line in text.splitlines():
        match = COMMON.fullmatch(line)
        out.append({"line": line, **({k: v for k, v in match.groupdict().items() if v != "-"} if match else {})})
    return out


def day_times(text):
    """Rows of a log with times alone, each with the date of the last #Date: line; other lines have the time before."""
    out, day = [], None
    for line in text.splitlines():
        if line.startswith("#Date: "):
            day = line.split()[1].replace("12-Jan-1996", "1996-01-12")
        elif not line.startswith("#"):
            fits = len(line.split(" ")) == 3
            when = day + "T" + line.split(" ")[0] if fits else out[-1]["when"]
            out.append({"line": line, "when": when, **({"cs-uri": line.split(" ")[2]} if fits else {})})
    return out


def inside(address, network):
    try:
        return ipaddress.ip_address(address) in ipaddress.ip_network(network)
    except ValueError:
        return False


def at(record, path):
    for key in path.split("."):
        record = (record or {}).get(key)
    return record


# A sample: how Python reads it, the field that tells its records apart, and questions with what they mean.
CASES = {
    "people.csv": (people, "id", [
        (["city=Cork"], lambda r: r["city"] == "Cork"),
        (["name=O'Brien, Ann"], lambda r: r["name"] == "O'Brien, Ann"),
        (["city="], lambda r: r["city"] == ""),
        (["note!"], lambda r: r["note"] is None),
        (['note~two lines'], lambda r: "two\nlines" in (r["note"] or "")),
        (["quoted"], lambda r: any('"quoted"' in (v or "") for v in r.values())),
        (['note=ends with a quote"'], lambda r: r["note"] == 'ends with a quote"'),
        (["note~/5\" is/"], lambda r: '5" is' in (r["note"] or "")),
        (["--since", "2024-05-03"], lambda r: r["id"] in "345"),
        (["--until", "2024-05-02", "city!=Cork"], lambda r: r["id"] == "2"),
        (["name=nobody"], lambda r: False)]),
    "packages.tsv": (packages, "id", [
        (["package=tar"], lambda r: r["package"] == "tar"),
        (["version="], lambda r: r["version"] == ""),
        (["summary!"], lambda r: "summary" not in r),
        (["size=3000..8000"], lambda r: 3000 <= int(r["size"]) <= 8000),
        (["GNU", "size=3120"], lambda r: "GNU" in r.get("summary", "") and r["size"] == "3120"),
        (["shared"], lambda r: "shared" in r.get("summary", ""))]),
    "cloudtrail.json": (lambda text: json.loads(text)["Records"], "eventID", [
        (["eventName=GetObject"], lambda r: r["eventName"] == "GetObject"),
        (["userIdentity.userName=ann"], lambda r: at(r, "userIdentity.userName") == "ann"),
        (["userIdentity.userName!"], lambda r: at(r, "userIdentity.userName") is None),
        (["resources.ARN=arn:aws:s3:::logs"], lambda r: any(x["ARN"] == "arn:aws:s3:::logs" for x in r["resources"])),
        (["errorCode!"], lambda r: r.get("errorCode") is None),
        (["errorCode=AccessDenied", "--since", "2024-05-01T10:01"], lambda r: r.get("errorCode") == "AccessDenied"),
        (["sourceIPAddress^=198.51."], lambda r: r["sourceIPAddress"].startswith("198.51.")),
        (["--since", "2024-05-02"], lambda r: r["eventTime"] >= "2024-05-02")]),
    "kubernetes.jsonl": (lines, "auditID", [
        (["verb=get"], lambda r: r.get("verb") == "get"),
        (["user.username=bob"], lambda r: at(r, "user.username") == "bob"),
        (["user.groups=system:authenticated"], lambda r: "system:authenticated" in (at(r, "user.groups") or [])),
        (["sourceIPs=203.0.113.9"], lambda r: "203.0.113.9" in r.get("sourceIPs", [])),
        (["sourceIPs=10.1.0.0/16"], lambda r: any(inside(a, "10.1.0.0/16") for a in r.get("sourceIPs", []))),
        (["responseStatus.code=400..", "verb=get"], lambda r: (at(r, "responseStatus.code") or 0) >= 400),
        (["annotations.authorization.k8s.io/decision=forbid"],
         lambda r: (r.get("annotations") or {}).get("authorization.k8s.io/decision") == "forbid"),
        (["requestURI~secrets"], lambda r: "secrets" in r.get("requestURI", "")),
        (["audit.go:73"], lambda r: r == {}),
        (["--since", "2024-05-01T10:00:01"], lambda r: r.get("auditID") != "k1")]),
    "windows.json": (json.loads, "RecordId", [
        (["Id=4625"], lambda r: r["Id"] == 4625),
        (["MachineName=DC01.corp.example", "Message~Account Name"], lambda r: "Account Name" in r["Message"]),
        (["LevelDisplayName!"], lambda r: r["LevelDisplayName"] is None),
        (["Message~/C:.Users.Ann/"], lambda r: "C:\\Users\\Ann" in r["Message"]),
        (["Message~ünicode"], lambda r: False),  # words fold ASCII letters alone
        (["Message~Ünicode"], lambda r: "Ünicode" in r["Message"]),
        (["--until", "2024-05-01"], lambda r: r["TimeCreated"] < "2024-05-02")]),
    "w3c_times.log": (day_times, "line", [
        (["--since", "1996-01-12T12:30"], lambda r: r["when"] >= "1996-01-12T12:30"),
        (["--until", "1996-01-12T12:45:52Z"], lambda r: r["when"] <= "1996-01-12T12:45:52"),
        (["time=1996-01-13"], lambda r: r["when"] > "1996-01-13"),
        (["cs-uri=/foo/bar.html", "--since", "1996-01-12T12"], lambda r: r["when"] > "1996-01-12T12" and
         r.get("cs-uri") == "/foo/bar.html"),
        (["--since", "1996-01-14"], lambda r: False)]),
    "common.log": (common, "host", [
        (["user=ann"], lambda r: r.get("user") == "ann"),
        (["host=10.1.0.0/16"], lambda r: inside(r.get("host", ""), "10.1.0.0/16")),
        (["status=400.."], lambda r: int(r.get("status", 0)) >= 400),
        (["method=POST"], lambda r: r.get("request", "").startswith("POST ")),
        (["path=/a/b"], lambda r: r.get("request", "").split(" ")[1:2] == ["/a/b"]),
        (["another log"], lambda r: "another log" in r["line"]),
        (["bytes!"], lambda r: "bytes" not in r),
        (["--since", "2000-10-11T00:00Z"], lambda r: "11/Oct" in r.get("time", ""))]),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_find_is_a_scan_of_the_sample(name, tmp_path):
    read, key, questions = CASES[name]
    with open(os.path.join(SAMPLES, name), encoding="utf-8", newline="") as file:
        text = file.read()
    (tmp_path / name).write_bytes(text.encode())

    def tamis(*words):
        return subprocess.run([TAMIS, *words], cwd=tmp_path, capture_output=True, text=True, check=False)

    done = tamis("index", "--tz", "UTC", name)
    assert done.returncode == 0, done.stderr
    records = read(text)
    for words, means in questions:
        want = [str(r.get(key) or "") for r in records if means(r)]
        done = tamis("find", name, *words, "--fields", key)
        got = [row[0] if row else "" for row in csv.reader(io.StringIO(done.stdout))][1:]
        assert got == want, (words, done.stdout, done.stderr)
        assert done.returncode == (0 if want else 1), (words, done.stderr)
        assert len(tamis("find", name + ".tamis", *words).stdout) > 0 or not want
