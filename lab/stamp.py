"""Sums over sources: of the page, and of each experiment, by which a run knows what it need not repeat."""
import hashlib
import os

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
ENDINGS = (".c", ".h", ".py", ".json", ".css", ".js")


def files(top):
    for folder, folders, names in os.walk(os.path.join(ROOT, top)):
        folders.sort()
        yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(ENDINGS))


def sum_of(paths):
    total = hashlib.sha256()
    for path in paths:
        total.update(os.path.relpath(path, ROOT).encode() + b"\0")
        with open(path, "rb") as f:
            total.update(hashlib.sha256(f.read()).digest())
    return total.hexdigest()[:16]


def of_page():
    """Of all that decides what the page shows: the lab, and the library that it measures."""
    return sum_of(path for top in ("include", "src", "lab") for path in files(top))


def of_program(name):
    """Of what an experiment is built from."""
    own = [path for path in files("lab") if path.endswith((".c", ".h")) and
           os.path.basename(path).startswith(("common", name + "."))]
    return sum_of([path for top in ("include", "src") for path in files(top)] + own)
