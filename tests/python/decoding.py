"""What the tests of tools/decode.py share: the decoder, the golden files, the library beside it."""
import ctypes
import glob
import importlib.util
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("TAMIS_BUILD", os.path.join(ROOT, "build/release"))
DECODE = os.path.join(ROOT, "tools/decode.py")

spec = importlib.util.spec_from_file_location("decode", DECODE)
decode = importlib.util.module_from_spec(spec)
spec.loader.exec_module(decode)


def golden(folder):
    return sorted(glob.glob(os.path.join(ROOT, "tests/golden", folder, "*.tamis")))


def golden_file(folder, name):
    return os.path.join(ROOT, "tests/golden", folder, name + ".tamis")


def name_of(path):
    return os.path.basename(path)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def key_of(path):
    key = path[:-len(".tamis")] + ".key"
    return read(key) if os.path.exists(key) else None


def answers(path):
    """What NAME.txt beside it says: each question, and whether the answer was "maybe"."""
    for line in read(path[:-len(".tamis")] + ".txt").splitlines():
        word, asked = line.split(b" ", 1)
        yield asked, word == b"maybe"


def run(*arguments, stdin=b""):
    """The program: its status and what it wrote."""
    done = subprocess.run([sys.executable, DECODE, *arguments], input=stdin, capture_output=True)
    return done.returncode, done.stdout, done.stderr


# ---- the library ---------------------------------------------------------------------------------

WRITE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


class OpenOptions(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("rest", ctypes.c_char * 128)]


class Structures:
    """Structures of one kind, "filter" or "records"."""

    def __init__(self, kind):
        self.c, self.kind = ctypes.CDLL(os.path.join(BUILD, "libtamis.so")), kind
        self.call("free").argtypes = [ctypes.c_void_p]
        self.call("encode").argtypes = [ctypes.c_void_p, ctypes.c_uint, WRITE, ctypes.c_void_p]

    def call(self, name):
        return getattr(self.c, "tamis_%s_%s" % (self.kind, name))

    def open(self, path, key=None):
        out = ctypes.c_void_p()
        options = OpenOptions(key=key)
        assert self.call("open")(ctypes.byref(out), path.encode(), ctypes.byref(options), None) == 0
        return out

    def written(self, call, *before, after=()):
        """The bytes that a function of the library writes."""
        parts = []

        def take(_context, data, length):
            parts.append(ctypes.string_at(data, length))
            return 0
        assert call(*before, WRITE(take), None, *after) == 0
        return b"".join(parts)

    def encode(self, of, flags=0):
        return self.written(self.call("encode"), of, flags)


class FilterOptions(ctypes.Structure):
    _fields_ = [("fpp", ctypes.c_double), ("capacity", ctypes.c_uint64), ("growth", ctypes.c_int),
                ("layout", ctypes.c_int), ("hash", ctypes.c_int), ("key", ctypes.c_char_p),
                ("deletable", ctypes.c_bool), ("unique", ctypes.c_bool), ("rest", ctypes.c_char * 512)]


class Filters(Structures):
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

    def has(self, of, one):
        return self.c.tamis_filter_has(of, one, len(one))

    def make(self, **options):
        out = ctypes.c_void_p()
        assert self.c.tamis_filter_new(ctypes.byref(out), ctypes.byref(FilterOptions(**options)),
                                       None) == 0
        return out

    def clone(self, f):
        out = ctypes.c_void_p()
        assert self.c.tamis_filter_clone(ctypes.byref(out), f) == 0
        return out

    def diff(self, older, newer, flags=0):
        return self.written(self.c.tamis_filter_diff, older, newer, flags, after=(None,))


class Attribute(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("distinct", ctypes.c_uint64),
                ("bounds_only", ctypes.c_bool)]


class RecordsOptions(ctypes.Structure):
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


class Records(Structures):
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
        o = RecordsOptions(attributes=ctypes.addressof(rows), n_attributes=len(attributes),
                    combos=ctypes.addressof(masks), n_combos=len(combos), **options)
        assert self.c.tamis_records_new(ctypes.byref(out), ctypes.byref(o), None) == 0
        return out

    @staticmethod
    def record(values):
        return (Key * len(values))(*[Key(value, 0 if value is None else len(value))
                                     for value in values])

    def has(self, of, names, question):
        values = self.record([question.get(name) for name in names])
        mask = sum(1 << i for i, name in enumerate(names) if name in question)
        return self.c.tamis_records_has(of, values, mask).maybe

    def normal(self, type_, value):
        out = ctypes.create_string_buffer(len(value) + 64)
        length = self.c.tamis_value_normal(type_, value, len(value), out, len(value) + 64)
        return out.raw[:length] if length else value
