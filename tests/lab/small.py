"""CSV files of a small run: those that test_lab.py saved where they are newer than the program, others
made now."""
import os
import sys

ROOT = os.environ.get("TAMIS_ROOT") or os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "lab"))
import check    # noqa: E402

SAVED = os.path.join(ROOT, "build/lab/tested")


def folder():
    os.makedirs(SAVED, exist_ok=True)
    for program in check.programs():
        path = os.path.join(SAVED, program + ".csv")
        if not os.path.exists(path) or os.path.getmtime(path) <= os.path.getmtime(check.path_of(program)):
            check.run(program, "small", save=path)
    return SAVED
