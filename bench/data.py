"""Where benchmarks keep what they make: data in a temporary folder (BENCH_DATA: kept there), figures in
build/bench (BENCH_JSON: another file)."""
import contextlib
import json
import os
import shutil
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@contextlib.contextmanager
def folder(prefix):
    kept = os.environ.get("BENCH_DATA")
    data = kept or tempfile.mkdtemp(prefix=prefix)
    os.makedirs(data, exist_ok=True)
    try:
        yield data
    finally:
        if not kept:
            shutil.rmtree(data)


def made(folder, program, *words):
    """The folder with what `program FOLDER WORDS` writes, unless it is there from before."""
    if not os.path.isdir(folder):
        os.makedirs(folder + ".new")
        subprocess.run([program, folder + ".new", *map(str, words)], check=True)
        os.rename(folder + ".new", folder)
    return folder


def save(name, figures):
    out = os.environ.get("BENCH_JSON", os.path.join(ROOT, "build/bench", name))
    os.makedirs(os.path.dirname(out), exist_ok=True)
    with open(out, "w") as f:
        json.dump(figures, f, indent=1)
