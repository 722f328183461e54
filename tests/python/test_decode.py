"""tools/decode.py, written from docs/format.md alone, and the library agree on every golden file, on patches,
and on larger sets made here."""
import ctypes
import os
import random

import pytest

from decoding import Filters, Records, answers, decode, golden, golden_file, key_of, name_of, read, run


# ---- golden files --------------------------------------------------------------------------------

class Golden:
    """The golden files of one kind, in the folders FOLDER and FOLDER-bad."""

    def __init__(self, folder, decoder, least, least_bad, damaged):
        self.folder, self.decoder, self.least, self.least_bad = folder, decoder, least, least_bad
        self.damaged = damaged  # every so many are
        self.good, self.bad = golden(folder), golden(folder + "-bad")

    def opened(self, path):
        return self.decoder(decode.Container(read(path)))

    def said(self, path):
        return answers(path) if not path.endswith(".old.tamis") else []

    def answer(self, x, family, asked):
        return bool(x.has(family, asked))


class GoldenFilters(Golden):
    library = Filters()

    def ask_both(self, x, family, mapped, rng):
        for _ in range(400):
            one = b"key-%d" % (rng.randrange(1400) * 2654435761 % 2**32)
            one = one if rng.random() < 0.8 else rng.randbytes(rng.randrange(40))
            assert bool(x.has(family, one)) == self.library.has(mapped, one), one


class GoldenRecords(Golden):
    library = Records()

    def answer(self, x, family, asked):
        return bool(x.has(family, decode.question_of(asked)))

    def ask_both(self, x, family, mapped, rng):
        for _ in range(200):
            names = rng.sample(x.names, rng.randint(1, min(4, len(x.names))))
            question = {name: rng.choice([None, b"", b"v%d" % rng.randrange(20)]) for name in names}
            assert x.has(family, question) == self.library.has(mapped, x.names, question), question


class GoldenCatalogs(Golden):
    library = None  # asks in terms of its own: tests/golden/test_golden_catalog.c

    def said(self, path):
        for line in read(path[:-len(".tamis")] + ".txt").splitlines():
            answer, asked = line.split(b"\t", 1)
            yield asked, [] if answer == b"-" else [int(i) for i in answer.split(b",")]

    def answer(self, x, family, asked):
        return list(x.locate(family, decode.question_of(asked)))


FILTERS = GoldenFilters("filters", decode.Filter, 40, 20, 6)
KINDS = [FILTERS, GoldenRecords("records", decode.Records, 20, 15, 4),
         GoldenCatalogs("catalog", decode.Catalog, 6, 20, 1)]


def each(paths):
    """Every kind with each of its files that paths(kind) names."""
    return pytest.mark.parametrize("kind, path", [
        pytest.param(kind, path, id="%s/%s" % (kind.folder, name_of(path)))
        for kind in KINDS for path in paths(kind)])


def test_there_are_golden_files():
    for kind in KINDS:
        assert len(kind.good) >= kind.least and len(kind.bad) >= kind.least_bad, kind.folder


@each(lambda kind: kind.good)
def test_good_files_answer_alike(kind, path):
    x, key, some = kind.opened(path), key_of(path), 0
    family = x.family(key)
    for asked, said in kind.said(path):
        assert kind.answer(x, family, asked) == said, asked
        some += bool(said)
    assert some or "empty" in path or path.endswith(".old.tamis")
    if kind.library:
        mapped = kind.library.open(path, key)
        kind.ask_both(x, family, mapped, random.Random(7))
        assert kind.library.encode(mapped) == read(path)
        kind.library.call("free")(mapped)


@pytest.mark.parametrize("path", golden("filters"), ids=name_of)
def test_good_filters_are_written_alike(path):
    f = FILTERS.opened(path)
    key = f.container.key if f.container.has_key else None
    assert f.encode(key, f.bits_only) == read(path)


@pytest.mark.parametrize("path", [p for p in golden("filters") if os.path.exists(p[:-5] + "patch")],
                         ids=name_of)
def test_patches_lead_to_the_same_file(path):
    f = FILTERS.opened(path[:-5] + "old.tamis")
    decode.Patch(read(path[:-5] + "patch")).apply(f)
    assert f.encode(f.container.key, False) == read(path)
    with pytest.raises(decode.Bad):
        decode.Patch(read(path[:-5] + "patch")).apply(FILTERS.opened(path))


@each(lambda kind: kind.bad)
def test_bad_files_are_refused(kind, path):
    with pytest.raises(decode.Bad):
        kind.opened(path).family()


@each(lambda kind: kind.good[::kind.damaged])
def test_damage_is_found(kind, path):
    """A bit turned, a tail missing: the decoder of this kind refuses both."""
    data, rng = read(path), random.Random(11)
    for _ in range(150):
        bit = rng.randrange(8 * len(data))
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(decode.Bad):
            kind.decoder(decode.Container(bytes(damaged)))
        with pytest.raises(decode.Bad):
            kind.decoder(decode.Container(data[:rng.randrange(len(data))]))


# ---- made here -----------------------------------------------------------------------------------

FILTERS_MADE = [dict(growth=1, layout=1, capacity=150000), dict(growth=1, layout=2, capacity=40000),
        dict(growth=2, capacity=30000), dict(growth=3, layout=2, capacity=500),
        dict(growth=3, layout=1, capacity=300, deletable=True, unique=True, fpp=0.2),
        dict(growth=2, capacity=6000, deletable=True, unique=True, fpp=0.2),
        dict(growth=5, capacity=2000), dict(growth=1, hash=3, capacity=5000),
        dict(growth=3, hash=2, layout=2, capacity=700, deletable=True),
        dict(growth=6, keys=3000), dict(growth=6, keys=40000, fpp=0.1), dict(growth=6, capacity=500),
        dict(growth=6, keys=9000, deletable=True, fpp=0.001),
        dict(growth=6, keys=45000, fpp=0.1, limit=130000),  # narrow slots, coarse entries
        dict(growth=6, keys=2000, deletable=True, unique=True, fpp=0.0001)]


@pytest.mark.parametrize("options", FILTERS_MADE, ids=str)
def test_filters_made_here_answer_and_patch_alike(options):
    library, options = Filters(), dict(options)
    n, limit = options.pop("keys", None), options.pop("limit", 0)
    f = library.make(**dict({"fpp": 0.02, "key": b"sixteen bytes ok"}, **options))
    assert library.c.tamis_filter_limit(f, ctypes.c_uint64(limit)) == 0
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
        assert bool(mine.has(family, one)) == library.has(f, one), i
    old = decode.Filter(decode.Container(before))
    patch = decode.Patch(library.diff(older, f))
    patch.apply(old)
    assert old.encode(b"sixteen bytes ok", False) == data
    bits = decode.Filter(decode.Container(before))
    decode.Patch(library.diff(older, f, 2)).apply(bits)
    assert bits.encode(b"sixteen bytes ok", True) == library.encode(f, 2)
    library.c.tamis_filter_free(older)
    library.c.tamis_filter_free(f)


RECORDS_MADE = [dict(verifier=2, deletable=True), dict(verifier=2, value=2), dict(verifier=3, layout=2),
        dict(verifier=3, value=3, layout=1, deletable=True), dict(verifier=1, hash=2),
        dict(verifier=3, hash=3, layout=1), dict(verifier=2, value=3, growth=2, capacity=4000)]


@pytest.mark.parametrize("options", RECORDS_MADE, ids=str)
def test_records_made_here_answer_alike(options):
    library = Records()
    attributes = [(b"ip", 0, 0), (b"user", 0, 200), (b"size", 1, 0)]
    x = library.make(attributes, key=b"sixteen bytes ok", **dict({"capacity": 300}, **options))
    rng = random.Random(5)
    rows = [[b"10.0.%d.%d" % (rng.randrange(9), rng.randrange(250)), b"user%d" % rng.randrange(200),
             b"%05d" % rng.randrange(3000)] for _ in range(2500)]
    for row in rows:
        assert library.c.tamis_records_add(x, library.record(row), None) == 0
    for row in rows[::3] if options.get("deletable") else []:
        assert library.c.tamis_records_remove(x, library.record(row), None) == 0
    mine = decode.Records(decode.Container(library.encode(x)))
    family = mine.family()
    for _ in range(800):
        row, other = rng.choice(rows), rng.choice(rows)
        mask = rng.randrange(1, 8)
        question = {name: (row if rng.random() < 0.7 else other)[i].lstrip(b"0") or b"0"
                    for i, (name, _, _) in enumerate(attributes) if mask >> i & 1}
        assert mine.has(family, question) == library.has(x, mine.names, question), question
    bits = decode.Records(decode.Container(library.encode(x, 2)))
    assert bits.bits_only and not bits.pending
    library.c.tamis_records_free(x)


# ---- the program ---------------------------------------------------------------------------------

def test_the_program_on_filters(tmp_path):
    path = golden_file("filters", "fixed-blocked")
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
    status, _, err = run("info", golden("filters-bad")[0])
    assert status == 2 and err.startswith(b"decode.py: ")
    assert run("info", "/no/such/file")[0] == 2
    assert run()[0] == 2


def test_the_program_on_records():
    path = golden_file("records", "typed")
    questions = b"".join(question + b"\n" for question, _ in answers(path))
    assert run("check", path, stdin=questions) == (0, read(path[:-6] + ".txt"), b"")
    assert run("check", path, "n=007", "n=55")[:2] == (0, b"maybe n=007\nno n=55\n")
    assert run("check", path, "n=55")[:2] == (1, b"no n=55\n")
    status, out, _ = run("info", path)
    assert status == 0 and b'"kind": "records"' in out and b'"type": "time"' in out
    assert run("check", path, "other=1")[0] == 2
    assert run("check", path, "n")[0] == 2
    assert run("apply", path, path, "/dev/null")[0] == 2


def test_the_program_on_catalogs():
    path = golden_file("catalog", "three")
    status, out, _ = run("info", path)
    assert status == 0 and b'"kind": "catalog"' in out and b'"segments": 14' in out
    status, out, _ = run("check", path, "ip=never stored")
    assert status in (0, 1) and out.split()[0] in (b"no", b"maybe")


@each(lambda kind: kind.bad[::6])
def test_the_program_refuses(kind, path):
    status, _, said = run("info" if not path.endswith("EKEY.tamis") else "check", path)
    assert status == 2 and said.startswith(b"decode.py: ")
