"""Normal forms and words of values: tools/decode.py, written from docs/format.md alone, and the library agree
on them."""
import ctypes
import random
import re

import pytest

from decoding import Given, Key, Records, decode

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
def test_normal_forms_are_alike(type_):
    library = Records()
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


def test_words_are_alike():
    """Tokens and compounds of random texts, by a rule of one line and by the library."""
    library = Records()
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
