"""What the tests of tools/decode.py share: the decoder, the golden files, the library beside it."""
import ctypes
import glob
import importlib.util
import os
import random
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("TAMIS_BUILD", os.path.join(ROOT, "build/release"))
DECODE = os.path.join(ROOT, "tools/decode.py")

spec = importlib.util.spec_from_file_location("decode", DECODE)
decode = importlib.util.module_from_spec(spec)
spec.loader.exec_module(decode)


def golden(folder):
    return sorted(glob.glob(os.path.join(ROOT, "tests/golden", folder, "*.tamis")))


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


def opened(kind, path):
    return kind(decode.Container(read(path)))


def run(*arguments, stdin=b""):
    """The program: its status and what it wrote."""
    done = subprocess.run([sys.executable, DECODE, *arguments], input=stdin, capture_output=True)
    return done.returncode, done.stdout, done.stderr


def damage_is_found(kind, path, times):
    """A bit turned, a tail missing: the decoder of this kind refuses both."""
    data = read(path)
    rng = random.Random(11)
    for _ in range(times):
        bit = rng.randrange(8 * len(data))
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(decode.Bad):
            kind(decode.Container(bytes(damaged)))
        with pytest.raises(decode.Bad):
            kind(decode.Container(data[:rng.randrange(len(data))]))


# ---- the library ---------------------------------------------------------------------------------

WRITE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


class OpenOptions(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("rest", ctypes.c_char * 128)]


class Structures:
    """Structures of one kind, "filter" or "index"."""

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
