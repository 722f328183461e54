"""tools/decode.py, written from docs/format.md alone, and the library agree on every golden index, on
larger ones made here, and on the normal forms of values."""
import ctypes
import random
import re

import pytest

from decoding import (Structures, answers, damage_is_found, decode, golden, key_of, name_of, opened, read,
                      run)

GOOD, BAD = golden("index"), golden("index-bad")


# ---- the library ---------------------------------------------------------------------------------

class Attribute(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("distinct", ctypes.c_uint64),
                ("bounds_only", ctypes.c_bool)]


class Options(ctypes.Structure):
    _fields_ = [("attributes", ctypes.c_void_p), ("n_attributes", ctypes.c_size_t),
                ("combos", ctypes.c_void_p), ("n_combos", ctypes.c_size_t),
                ("no_combos", ctypes.c_bool), ("verifier", ctypes.c_int), ("value", ctypes.c_int),
                ("fpp", ctypes.c_double), ("capacity", ctypes.c_uint64), ("growth", ctypes.c_int),
                ("layout", ctypes.c_int), ("hash", ctypes.c_int), ("key", ctypes.c_char_p),
                ("deletable", ctypes.c_bool), ("rest", ctypes.c_char * 256)]


class Key(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("len", ctypes.c_size_t)]


class Given(ctypes.Structure):
    """A key as it is given: bytes that may have zeros in them."""
    _fields_ = [("data", ctypes.c_void_p), ("len", ctypes.c_size_t)]


class Answer(ctypes.Structure):
    _fields_ = [("maybe", ctypes.c_bool), ("verified", ctypes.c_bool)]


class Library(Structures):
    def __init__(self):
        super().__init__("records")
        self.c.tamis_records_has.restype = Answer
        self.c.tamis_records_has.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64]
        self.c.tamis_records_add.argtypes = [ctypes.c_void_p] * 3
        self.c.tamis_records_remove.argtypes = [ctypes.c_void_p] * 3
        self.c.tamis_value_normal.restype = ctypes.c_size_t
        self.c.tamis_value_normal.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t,
                                              ctypes.c_char_p, ctypes.c_size_t]

    def make(self, attributes, combos=(), **options):
        out = ctypes.c_void_p()
        rows = (Attribute * len(attributes))(*[Attribute(name, type_, distinct)
                                               for name, type_, distinct in attributes])
        masks = (ctypes.c_uint64 * max(1, len(combos)))(*combos)
        o = Options(attributes=ctypes.addressof(rows), n_attributes=len(attributes),
                    combos=ctypes.addressof(masks), n_combos=len(combos), **options)
        assert self.c.tamis_records_new(ctypes.byref(out), ctypes.byref(o), None) == 0
        return out

    @staticmethod
    def record(values):
        return (Key * len(values))(*[Key(value, 0 if value is None else len(value))
                                     for value in values])

    def has(self, x, names, question):
        values = self.record([question.get(name) for name in names])
        mask = sum(1 << i for i, name in enumerate(names) if name in question)
        return self.c.tamis_records_has(x, values, mask).maybe

    def normal(self, type_, value):
        out = ctypes.create_string_buffer(len(value) + 64)
        length = self.c.tamis_value_normal(type_, value, len(value), out, len(value) + 64)
        return out.raw[:length] if length else value


@pytest.fixture(scope="module")
def library():
    return Library()


# ---- golden files --------------------------------------------------------------------------------

def test_there_are_golden_files():
    assert len(GOOD) >= 20 and len(BAD) >= 15


@pytest.mark.parametrize("path", GOOD, ids=name_of)
def test_good_files_answer_alike(library, path):
    x, key = opened(decode.Index, path), key_of(path)
    family = x.family(key)
    for question, maybe in answers(path):
        assert x.has(family, decode.question_of(question)) == maybe, question
    mapped = library.open(path, key)
    rng = random.Random(7)
    for _ in range(200):
        names = rng.sample(x.names, rng.randint(1, min(4, len(x.names))))
        question = {name: rng.choice([None, b"", b"v%d" % rng.randrange(20)]) for name in names}
        assert x.has(family, question) == library.has(mapped, x.names, question), question
    assert library.encode(mapped) == read(path)
    library.c.tamis_records_free(mapped)


@pytest.mark.parametrize("path", BAD, ids=name_of)
def test_bad_files_are_refused(path):
    with pytest.raises(decode.Bad):
        opened(decode.Index, path).family()


@pytest.mark.parametrize("path", GOOD[::4], ids=name_of)
def test_damage_is_found(path):
    damage_is_found(decode.Index, path, 100)


# ---- made here -----------------------------------------------------------------------------------

MADE = [dict(verifier=2, deletable=True), dict(verifier=2, value=2), dict(verifier=3, layout=2),
        dict(verifier=3, value=3, layout=1, deletable=True), dict(verifier=1, hash=2),
        dict(verifier=3, hash=3, layout=1), dict(verifier=2, value=3, growth=2, capacity=4000)]


@pytest.mark.parametrize("options", MADE, ids=str)
def test_made_here_answers_alike(library, options):
    attributes = [(b"ip", 0, 0), (b"user", 0, 200), (b"size", 1, 0)]
    x = library.make(attributes, key=b"sixteen bytes ok", **dict({"capacity": 300}, **options))
    rng = random.Random(5)
    rows = [[b"10.0.%d.%d" % (rng.randrange(9), rng.randrange(250)), b"user%d" % rng.randrange(200),
             b"%05d" % rng.randrange(3000)] for _ in range(2500)]
    for row in rows:
        assert library.c.tamis_records_add(x, library.record(row), None) == 0
    for row in rows[::3] if options.get("deletable") else []:
        assert library.c.tamis_records_remove(x, library.record(row), None) == 0
    mine = decode.Index(decode.Container(library.encode(x)))
    family = mine.family()
    for _ in range(800):
        row, other = rng.choice(rows), rng.choice(rows)
        mask = rng.randrange(1, 8)
        question = {name: (row if rng.random() < 0.7 else other)[i].lstrip(b"0") or b"0"
                    for i, (name, _, _) in enumerate(attributes) if mask >> i & 1}
        assert mine.has(family, question) == library.has(x, mine.names, question), question
    bits = decode.Index(decode.Container(library.encode(x, 2)))
    assert bits.bits_only and not bits.pending
    library.c.tamis_records_free(x)


# ---- normal forms --------------------------------------------------------------------------------

SAMPLES = [b"7", b"007", b"+7", b"-7", b"-0", b"0", b"", b" ", b'"7"', b'" 7 "', b'"', b'""', b"--7",
           b"7.", b".7", b".", b"1e5", b"1E-5", b"1e", b"1e+", b"0e9999999999999999999",
           b"1e1000000000000000", b"1e1000000000000001", b"120.0500", b"-0.0", b"000", b"1_0",
           b"2024-01-31", b"2024-02-30", b"2024-01-31T23:59:59.50+01:00", b"20240131T225959.5Z",
           b"2024-01-31 22:59:59,5", b"2024-01-31 22:59:59.0 Z", b"2024-01-31T22:59", b"20240131",
           b"2024-01-31T22:59:60Z", b"2024-01-31T24:00:00", b"2024-01-31T22:59:59+1",
           b"2024-01-31T22:59:59+0130", b"2024-01-31T22:59:59-01", b"2024-01-31T22:59:59+01:",
           b"2024-01-31T22:59:59.", b"0000-01-01", b"0000-01-01T00:00:00+00:01", b"9999-12-31T23:59:59Z",
           b"9999-12-31T23:59:59-00:01", b"-62167219200", b"-62167219201", b"253402300799.999",
           b"253402300800", b"-1.75", b"-0.5", b"1.0", b"-1.0", b"00000000000000000001", b"1234567890123",
           b"1900-02-29", b"2000-02-29", b"2024-1-31", b"20240131T2259", b"20240131t225959", b"1.5.5"]


ADDRESSES = [b"10.1.2.3", b"255.255.255.255", b"01.2.3.4", b"2001:db8::1", b"2001:DB8:0:0:1:0:0:1",
             b"::", b"1::", b"::ffff:1.2.3.4", b"1:2:3:4:5:6:7:8", b"1:2:3:4:5:6:7::", b"::1.2.3.4",
             b"fe80::1%eth0", b"1:0:0:2:0:0:0:3", b"0:0:0:0:0:ffff:a01:203", b" \"::1\" ", b"Ann"]


@pytest.mark.parametrize("type_", range(8))
def test_normal_forms_are_alike(library, type_):
    rng = random.Random(type_)
    samples = SAMPLES + ADDRESSES
    for _ in range(4000):
        one = bytearray(rng.choice(ADDRESSES if type_ == 4 else SAMPLES))
        for _ in range(rng.randrange(3)):
            at = rng.randrange(len(one) + 1)
            if rng.random() < 0.5:
                one.insert(at, rng.choice(b"0123456789+-.eEtTzZ: \"\t"))
            elif at < len(one):
                one[at] = rng.choice(b"0123456789+-.:")
        samples.append(bytes(one))
    for one in samples:
        assert decode.normal(type_, one) == library.normal(type_, one), one


def test_words_are_alike(library):
    """Tokens and compounds of random texts, by a rule of one line and by the library."""
    give = ctypes.CFUNCTYPE(None, ctypes.c_void_p, Given, ctypes.c_bool)
    library.c.tamis_type_keys.argtypes = [ctypes.c_int, Key, give, ctypes.c_void_p]
    rng, word = random.Random(6), rb"[0-9A-Za-z_\x80-\xff]+"
    for _ in range(5000):
        pieces = [b"a", b"B7", b"_", b"\xc3\xa4", b".", b":", b"-", b"/", b"@", b" ", b"=", b"..",
                  b"0123456789" * rng.randrange(1, 9)]
        text = b"".join(rng.choice(pieces) for _ in range(rng.randrange(90)))
        want = set(re.findall(word, text)) | set(re.findall(word + rb"(?:[.:/@-]" + word + rb")*", text))
        for join in (rb"\.", b":", b"/", b"@", b"-"):  # each kind of compound; a token may be in two
            want |= set(re.findall(word + b"(?:" + join + word + b")+", text))
        got = []
        taken = give(lambda _, key, part: got.append((ctypes.string_at(key.data, key.len), part)))
        library.c.tamis_type_keys(6, Key(text, len(text)), taken, None)
        if want:
            assert {key for key, _ in got} == {decode.folded(one)[:255] for one in want}, text
            assert all(part for _, part in got)
        else:
            assert got == [(text, False)]


# ---- the program ---------------------------------------------------------------------------------

def test_the_program():
    path = [p for p in GOOD if p.endswith("/typed.tamis")][0]
    questions = b"".join(question + b"\n" for question, _ in answers(path))
    assert run("check", path, stdin=questions) == (0, read(path[:-6] + ".txt"), b"")
    assert run("check", path, "n=007", "n=55")[:2] == (0, b"maybe n=007\nno n=55\n")
    assert run("check", path, "n=55")[:2] == (1, b"no n=55\n")
    status, out, _ = run("info", path)
    assert status == 0 and b'"kind": "records"' in out and b'"type": "time"' in out
    assert run("check", path, "other=1")[0] == 2
    assert run("check", path, "n")[0] == 2
    assert run("apply", path, path, "/dev/null")[0] == 2
