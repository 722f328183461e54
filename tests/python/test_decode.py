"""tools/decode.py, written from docs/format.md alone, and the library agree on every golden file,
on patches, and on larger filters made here."""
import ctypes
import os
import random

import pytest

from decoding import (WRITE, Structures, answers, damage_is_found, decode, golden, key_of, name_of, opened,
                      read, run)

GOOD, BAD = golden("good"), golden("bad")


# ---- the library ---------------------------------------------------------------------------------

class Options(ctypes.Structure):
    _fields_ = [("fpp", ctypes.c_double), ("capacity", ctypes.c_uint64), ("growth", ctypes.c_int),
                ("layout", ctypes.c_int), ("hash", ctypes.c_int), ("key", ctypes.c_char_p),
                ("deletable", ctypes.c_bool), ("unique", ctypes.c_bool), ("rest", ctypes.c_char * 512)]


class Library(Structures):
    def __init__(self):
        super().__init__("filter")
        self.c.tamis_filter_has.restype = ctypes.c_bool
        self.c.tamis_filter_has.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
        self.c.tamis_filter_add.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t,
                                            ctypes.c_void_p]
        self.c.tamis_filter_remove.argtypes = self.c.tamis_filter_add.argtypes
        self.c.tamis_filter_clone.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self.c.tamis_filter_diff.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, WRITE,
                                             ctypes.c_void_p, ctypes.c_void_p]

    def make(self, **options):
        out = ctypes.c_void_p()
        assert self.c.tamis_filter_new(ctypes.byref(out), ctypes.byref(Options(**options)),
                                       None) == 0
        return out

    def clone(self, f):
        out = ctypes.c_void_p()
        assert self.c.tamis_filter_clone(ctypes.byref(out), f) == 0
        return out

    def diff(self, older, newer, flags=0):
        return self.written(self.c.tamis_filter_diff, older, newer, flags, after=(None,))


@pytest.fixture(scope="module")
def library():
    return Library()


# ---- golden files --------------------------------------------------------------------------------

def test_there_are_golden_files():
    assert len(GOOD) >= 40 and len(BAD) >= 20


@pytest.mark.parametrize("path", GOOD, ids=name_of)
def test_good_files_answer_alike(library, path):
    f, key = opened(decode.Filter, path), key_of(path)
    family = f.family(key)
    for one, maybe in answers(path) if not path.endswith(".old.tamis") else []:
        assert f.has(family, one) == maybe, one
    mapped = library.open(path, key)
    rng = random.Random(7)
    for _ in range(400):
        one = b"key-%d" % (rng.randrange(1400) * 2654435761 % 2**32)
        one = one if rng.random() < 0.8 else rng.randbytes(rng.randrange(40))
        assert bool(f.has(family, one)) == library.c.tamis_filter_has(mapped, one, len(one)), one
    assert library.encode(mapped) == read(path)
    library.c.tamis_filter_free(mapped)


@pytest.mark.parametrize("path", GOOD, ids=name_of)
def test_good_files_are_written_alike(path):
    f = opened(decode.Filter, path)
    key = f.container.key if f.container.has_key else None
    assert f.encode(key, f.bits_only) == read(path)


@pytest.mark.parametrize("path", [p for p in GOOD if os.path.exists(p[:-5] + "patch")],
                         ids=name_of)
def test_patches_lead_to_the_same_file(path):
    f = opened(decode.Filter, path[:-5] + "old.tamis")
    decode.Patch(read(path[:-5] + "patch")).apply(f)
    assert f.encode(f.container.key, False) == read(path)
    with pytest.raises(decode.Bad):
        decode.Patch(read(path[:-5] + "patch")).apply(opened(decode.Filter, path))


@pytest.mark.parametrize("path", BAD, ids=name_of)
def test_bad_files_are_refused(path):
    with pytest.raises(decode.Bad):
        opened(decode.Filter, path).family()


@pytest.mark.parametrize("path", GOOD[::6], ids=name_of)
def test_damage_is_found(path):
    damage_is_found(decode.Filter, path, 150)


# ---- made here -----------------------------------------------------------------------------------

MADE = [dict(growth=1, layout=1, capacity=150000), dict(growth=1, layout=2, capacity=40000),
        dict(growth=2, capacity=30000), dict(growth=3, layout=2, capacity=500),
        dict(growth=3, layout=1, capacity=300, deletable=True, unique=True, fpp=0.2),
        dict(growth=2, capacity=6000, deletable=True, unique=True, fpp=0.2),
        dict(growth=5, capacity=2000), dict(growth=1, hash=3, capacity=5000),
        dict(growth=3, hash=2, layout=2, capacity=700, deletable=True),
        dict(growth=6, keys=3000), dict(growth=6, keys=40000, fpp=0.1), dict(growth=6, capacity=500),
        dict(growth=6, keys=9000, deletable=True, fpp=0.001),
        dict(growth=6, keys=2000, deletable=True, unique=True, fpp=0.0001)]


@pytest.mark.parametrize("options", MADE, ids=str)
def test_made_here_answers_and_patches_alike(library, options):
    options = dict(options)
    n = options.pop("keys", None)
    f = library.make(**dict({"fpp": 0.02, "key": b"sixteen bytes ok"}, **options))
    n = n or min(options["capacity"] * (1 if options["growth"] in (1, 2, 5) else 5), 20000) - 1000
    add = lambda one: library.c.tamis_filter_add(f, one, len(one), None)
    for i in range(n):
        assert add(b"%d" % i) == 0
    older = library.clone(f)
    before = library.encode(older)
    if options.get("deletable"):
        for i in range(0, n, 3):
            assert library.c.tamis_filter_remove(f, b"%d" % i, len(b"%d" % i), None) == 0
    for i in range(n, n + 500):
        assert add(b"%d" % i) == 0
    data = library.encode(f)
    mine = decode.Filter(decode.Container(data))
    family = mine.family()
    for i in range(0, 2 * n, max(1, n // 1500)):
        one = b"%d" % i
        assert bool(mine.has(family, one)) == library.c.tamis_filter_has(f, one, len(one)), i
    old = decode.Filter(decode.Container(before))
    patch = decode.Patch(library.diff(older, f))
    patch.apply(old)
    assert old.encode(b"sixteen bytes ok", False) == data
    bits = decode.Filter(decode.Container(before))
    decode.Patch(library.diff(older, f, 2)).apply(bits)
    assert bits.encode(b"sixteen bytes ok", True) == library.encode(f, 2)
    library.c.tamis_filter_free(older)
    library.c.tamis_filter_free(f)


# ---- the program ---------------------------------------------------------------------------------

def test_the_program(tmp_path):
    path = [p for p in GOOD if p.endswith("/fixed-blocked.tamis")][0]
    stem = path[:-6]
    keys, said = b"".join(one + b"\n" for one, _ in answers(path)), read(stem + ".txt")
    assert run("check", path, stdin=keys) == (0, said, b"")
    assert run("check", path, "surely not a member")[:2] == (1, b"no surely not a member\n")
    status, out, _ = run("info", path)
    assert status == 0 and b'"growth": "fixed"' in out
    assert run("info", stem + ".patch")[0] == 0
    assert run("apply", stem + ".old.tamis", stem + ".patch", str(tmp_path / "new"))[0] == 0
    assert read(tmp_path / "new") == read(path)
    no_key = stem + "-no-key.tamis"
    assert run("check", no_key, "x")[0] == 2
    assert run("check", "--key-file", stem + "-no-key.key", no_key, stdin=keys)[:2] == (0, said)
    status, _, err = run("info", BAD[0])
    assert status == 2 and err.startswith(b"decode.py: ")
    assert run("info", "/no/such/file")[0] == 2
    assert run()[0] == 2
