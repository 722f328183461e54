#!/usr/bin/python3
"""A second reader of tamis's bytes, written from docs/format.md alone.

    tools/decode.py info FILE                  checks every byte, then tells what is in it (JSON)
    tools/decode.py check FILE [KEY...]        "maybe KEY" or "no KEY"; keys from stdin, one a line.
                                               For records or a catalog a key is a query:
                                               NAME=VALUE or NAME!
                                               (missing), several with tabs between them
    tools/decode.py apply OLD PATCH NEW        writes what the patch makes of the old file
    tools/decode.py follow NEW MESSAGE...      writes the copy that messages make, one after the other

    --key-file KEY      the family key (16 bytes), for files saved without it

Exit status: 0 done, or a key may be a member; 1 none may; 2 an error. It is slow and simple, needs
nothing but Python, libxxhash and libsodium, and shares no code with the library.
"""
import collections
import ctypes
import datetime
import fractions
import hashlib
import ipaddress
import json
import os
import re
import struct
import sys

MASK = (1 << 64) - 1
NONE = MASK
GOLDEN = 0x9E3779B97F4A7C15
BLOCK_MIX = 0xD6E8FEB86659FD93
PAGE = 4096
RECORD_LEN = 88
LADDER = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 192, 256, 384, 512]


class Bad(Exception):
    """What is wrong, and where."""

    def __init__(self, offset, text):
        super().__init__("%s (at byte %d)" % (text, offset))
        self.offset = offset


def need(condition, offset, text):
    if not condition:
        raise Bad(offset, text)


# ---- hashes --------------------------------------------------------------------------------------

class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


XXH = ctypes.CDLL("libxxhash.so.0")
SODIUM = ctypes.CDLL("libsodium.so.23")
XXH.XXH3_64bits.restype = ctypes.c_uint64
XXH.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
XXH.XXH3_128bits.restype = Hash128
XXH.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
XXH.XXH3_128bits_withSecret.restype = Hash128
XXH.XXH3_128bits_withSecret.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p,
                                        ctypes.c_size_t]
SODIUM.crypto_shorthash_siphashx24.argtypes = [ctypes.c_char_p, ctypes.c_char_p,
                                               ctypes.c_ulonglong, ctypes.c_char_p]


def xxh3(data):
    return XXH.XXH3_64bits(bytes(data), len(data))


def xxh3_128(data):
    value = XXH.XXH3_128bits(bytes(data), len(data))
    return struct.pack("<QQ", value.low, value.high)


def sip(key, data):
    out = ctypes.create_string_buffer(16)
    SODIUM.crypto_shorthash_siphashx24(out, data, len(data), key)
    return out.raw


def drawn(key, purpose, counter):
    return sip(key, struct.pack("<QQ", purpose, counter))


def hi(x, n):
    return x * n >> 64


# ---- families ------------------------------------------------------------------------------------

class Family:
    def __init__(self, kind, key):
        self.kind, self.key = kind, key
        self.secret = b"".join(drawn(key, 1, i) for i in range(12))
        self.matrices = self.draw_matrices() if kind == 3 else None

    def draw_matrices(self):
        matrices, counter = [], 0

        def following():
            nonlocal counter
            counter += 1
            return struct.unpack("<Q", drawn(self.key, 2, counter - 1)[:8])[0]

        for _ in range(64):
            rows, basis = [], {}
            while len(rows) < 32:
                row = following()
                if any(rows_before[len(rows)] == row for rows_before, _ in matrices):
                    continue
                left = row
                while left and left.bit_length() in basis:
                    left ^= basis[left.bit_length()]
                if left:
                    basis[left.bit_length()] = left
                    rows.append(row)
            matrices.append((rows, following() & 0xFFFFFFFF))
        return matrices

    def digest(self, data):
        if self.kind == 2:
            return struct.unpack("<QQ", sip(self.key, data))
        value = XXH.XXH3_128bits_withSecret(data, len(data), self.secret, 192)
        return value.low, value.high

    def positions(self, digest, layout, units, k):
        a, b = digest
        if layout == 2:
            return self.in_block(a, b, units, k)
        if self.kind == 3:
            return [self.address(j, a) * units >> 32 for j in range(k)]
        x, y, step, found = a, b, GOLDEN, []
        for _ in range(k):
            found.append(hi(x, units))
            x, y = x + y & MASK, (y << 21 | y >> 43) & MASK
            y, step = y + step & MASK, step + GOLDEN & MASK
        return found

    def address(self, j, fingerprint):
        rows, constant = self.matrices[j]
        address = 0
        for i, row in enumerate(rows):
            address |= ((row & fingerprint).bit_count() & 1) << (31 - i)
        return address ^ constant

    @staticmethod
    def in_block(a, b, units, k):
        base, turn, w, found = 512 * hi(a, units), b >> 61, b, []
        while k:
            taken = min(k, 8)
            for j in range(taken):
                lane = (turn + j) % 8
                found.append(base + 64 * lane + (w >> 6 * lane & 63))
            product = w * BLOCK_MIX
            w = (product >> 64) ^ (product & MASK)
            k -= taken
        return found


# ---- the container -------------------------------------------------------------------------------

def round_up(x, step):
    return (x + step - 1) // step * step


def header_length(body, sections, kind=1):
    return round_up(128 + body + 24 * sections + 8, 4096 if kind == 4 else 64)


def page_sums(data):
    return b"".join(struct.pack("<Q", xxh3(data[at:at + PAGE])) for at in range(0, len(data), PAGE))


class Container:
    MAGIC = b"TAMIS\0\r\n"

    def __init__(self, data):
        self.data = data
        need(data[:8] == self.MAGIC, 0, "no tamis structure")
        need(len(data) >= 136, len(data), "cut short")
        version, self.kind = struct.unpack_from("<II", data, 8)
        need(version == 2, 8, "format version %d" % version)
        total, self.header, self.body_len, n, self.flags = struct.unpack_from("<QQQII", data, 16)
        need(total == len(data) and total % 64 == 0, 16, "the length is not %d" % total)
        need(self.header <= total and self.body_len <= total, 24, "lengths")
        want = header_length(self.body_len, n, self.kind)
        need(self.header == want, 24, "lengths")
        need(struct.unpack_from("<Q", data, self.header - 8)[0] == xxh3(data[:self.header - 8]),
             self.header - 8, "the checksum of the header")
        need(1 <= self.kind <= 5, 12, "kind %d" % self.kind)
        need(self.flags <= 1, 44, "flags")
        need(not any(data[48:64]) and not any(data[104:128]), 48, "reserved fields")
        self.hash, self.has_key = struct.unpack_from("<II", data, 64)
        need(1 <= self.hash <= 3, 64, "hash %d" % self.hash)
        self.key, self.check = data[72:88], data[88:104]
        need(self.has_key <= 1 and (self.has_key or not any(self.key)), 68, "the key")
        need(not self.has_key or self.key_fits(self.key), 88, "the check of the key")
        at = 128 + self.body_len
        self.sections = [struct.unpack_from("<IIQQ", data, at + 24 * i) for i in range(n)]
        used = at + 24 * n
        need(not any(data[used:self.header - 8]), used, "the end of the header")

    def key_fits(self, key):
        return drawn(key, 3, self.hash) == self.check

    def check_payload(self):
        end, sums = self.header, b""
        for _, _, offset, length in self.sections:
            need(offset == round_up(end, 64), offset, "sections do not follow one another")
            need(not any(self.data[end:offset]), end, "what fills up a section")
            end = offset + length
            sums += page_sums(self.data[offset:end])
        at = round_up(end, 64)
        need(not any(self.data[end:at]), end, "what fills up a section")
        need(at + round_up(len(sums), 64) == len(self.data), 40, "sections do not fill the payload")
        need(self.data[at:at + len(sums)] == sums, at, "the checksums of the pages")
        need(not any(self.data[at + len(sums):]), at, "what fills up the checksums")


def container_bytes(kind, flags, hash_id, key, check, body, sections):
    """The whole structure; sections are (type, owner, bytes)."""
    header = header_length(len(body), len(sections))
    sums = b"".join(page_sums(data) for _, _, data in sections)
    sums += bytes(-len(sums) % 64)
    total = header + sum(round_up(len(data), 64) for _, _, data in sections) + len(sums)
    out = bytearray(Container.MAGIC)
    out += struct.pack("<IIQQQII16x", 2, kind, total, header, len(body), len(sections), flags)
    out += struct.pack("<II16s16s24x", hash_id, 1 if key else 0, key or bytes(16), check) + body
    at, parts = header, []
    for type_, owner, data in sections:
        out += struct.pack("<IIQQ", type_, owner, at, len(data))
        parts.append(bytes(data) + bytes(-len(data) % 64))
        at += len(parts[-1])
    out += bytes(header - 8 - len(out))
    return bytes(out + struct.pack("<Q", xxh3(out)) + b"".join(parts) + sums)


def fingerprint(data):
    """Of bytes without a key: of their header, and of each 512 checksums of a section but the ones."""
    c, tops = Container(data), b""
    for type_, _, offset, length in c.sections:
        if type_ == 9:
            continue
        sums = page_sums(data[offset:offset + length])
        tops += page_sums(sums)
    return xxh3_128(data[:c.header - 8] + tops)


# ---- filters -------------------------------------------------------------------------------------

HEAD = [("growth", "I"), ("layout", "I"), ("flags", "I"), ("vectors_max", "I"), ("fpp", "d"),
        ("budget", "d"), ("capacity", "Q"), ("items_max", "Q"), ("expansion", "d"),
        ("tolerate", "d"), ("shape_layout", "I"), ("shape_k", "I"), ("shape_units", "Q"),
        ("window", "Q"), ("memory_limit", "Q"), ("n_lambdas", "I"), ("zero1", "I"),
        ("lambdas", "64s"), ("stored", "Q"), ("next_id", "I"), ("grown", "I"), ("level", "d"),
        ("trend", "d"), ("rates", "I"), ("n", "I"), ("base_rate", "d"), ("width", "Q"),
        ("pending", "Q"), ("candidates", "Q"), ("copies", "Q"), ("parts", "I"), ("zero2", "I")]
RECORD = [("id", "I"), ("slot", "I"), ("units", "Q"), ("k", "I"), ("layout", "I"), ("capacity", "Q"),
          ("load", "Q"), ("count", "Q"), ("ones_max", "Q"), ("fpp", "d"),
          ("born", "Q"), ("last", "Q"), ("large", "Q")]
LINES = [("fpp", "d"), ("width", "I"), ("zero", "I")]
PART = [("lines", "I"), ("depth", "I"), ("width", "I"), ("stash", "I"), ("stashed", "I"),
        ("coarse", "I"), ("excess", "I"), ("zero1", "I"), ("used", "Q"), ("keys", "Q"),
        ("mass", "Q"), ("zero2", "Q")]
GROWTHS = ["", "fixed", "dynamic", "scalable", "flexible", "window", "smooth"]
DELETABLE, UNIQUE, SHARED_ADDS, PUBLISHED, COMPACT = 1, 2, 8, 32, 64


def unpack(fields, data, offset, where):
    form = "<" + "".join(kind for _, kind in fields)
    found = dict(zip((name for name, _ in fields), struct.unpack_from(form, data, offset)))
    for name, kind in fields:
        if kind == "d":
            need(abs(found[name]) <= sys.float_info.max, where, name + " is not a number")
        if name.startswith("zero"):
            need(found[name] == 0, where, "a reserved field")
    return found


def pack(fields, values):
    return struct.pack("<" + "".join(kind for _, kind in fields),
                       *(values[name] for name, _ in fields))


def width_for(n):
    for width in LADDER:
        if n <= width:
            return width
    width = 512
    while width < n:
        width = round_up(width + width // 4, 512)
    return width


def bit(data, i):
    return data[i >> 3] >> (i & 7) & 1


def shape_fits(layout, units, k, hash_id):
    most = (1 << 40) // (512 if layout == 2 else 1)
    if hash_id == 3:
        most = 1 << 32
        if layout == 2:
            return False
    return layout in (1, 2) and 0 < units <= most and (layout == 2 or units % 8 == 0) and 1 <= k <= 64


def check_head(h, hash_id, at):
    flags = h["flags"]
    dynamic, window = h["growth"] == 2, h["growth"] == 5
    need(1 <= h["growth"] <= 6 and 1 <= h["layout"] <= 2 and flags < 128, at, "growth or layout")
    smooth = h["growth"] == 6
    need(not smooth or (hash_id != 3 and not flags & PUBLISHED), at, "the layout")
    stated = h["growth"] in (1, 3) and not flags & (DELETABLE | PUBLISHED)
    need(smooth or stated or not flags & COMPACT, at, "a compact filter of this growth")
    need(h["parts"] <= (512 if smooth else 0), at, "parts of lines")
    forecast = struct.pack("<3dI", h["level"], h["trend"], h["base_rate"], h["rates"])
    need(not smooth or not any(forecast) and not h["pending"], at, "a forecast or pending removals")
    need(not (smooth and flags & DELETABLE and h["n"]), at, "a vector beside lines")
    need(h["layout"] == 1 or not (dynamic or hash_id == 3), at, "the layout")
    need(not (flags & DELETABLE and window), at, "a deletable window")
    need(not flags & UNIQUE or flags & DELETABLE, at, "unique without deletable")
    need(not flags & SHARED_ADDS or (h["growth"] == 1 and not flags & DELETABLE), at, "shared adds")
    need((1 + window <= h["vectors_max"] <= (1024 if window else 1 << 20)) if dynamic or window
         else h["vectors_max"] == 0, at, "most vectors")
    need(not window or h["window"], at, "the window")
    if dynamic or flags & PUBLISHED:
        need(h["shape_layout"] == h["layout"] and
             shape_fits(h["layout"], h["shape_units"], h["shape_k"], hash_id), at, "the shape")
    else:
        need(not (h["shape_layout"] or h["shape_units"] or h["shape_k"]), at, "the shape")
    need(h["fpp"] >= 0 and h["budget"] >= 0 and 0 <= h["tolerate"] < 1 and h["base_rate"] >= 0, at,
         "a rate")
    need(h["expansion"] == 0 or 1 <= h["expansion"] <= 65536, at, "the expansion")
    need(h["capacity"] < 1 << 63 and h["items_max"] < 1 << 63, at, "a capacity")
    lambdas = h["lambdas"]
    need(h["n_lambdas"] <= 64 and all(1 <= x <= 40 for x in lambdas[:h["n_lambdas"]]) and
         not any(lambdas[h["n_lambdas"]:]), at, "the lambdas")
    need((0 if h["parts"] else 1) <= h["n"] <= (1 << 20 if dynamic else 4096) and (h["growth"] != 1 or h["n"] == 1), at,
         "the number of vectors")


class Vector:
    """The record, the bits (an int, bit p is position p), and counters where there are any."""

    def __init__(self, record, m):
        self.record, self.m = record, m
        self.bits = 0
        self.counters = None            # bytearray, one value a byte, 15 for all from 15 on
        self.large = {}

    def counter(self, at):
        return self.large[at] if self.counters[at] == 15 else self.counters[at]


def check_record(r, layout, hash_id, counted, at):
    """What every vector must be; returns its bits."""
    need(shape_fits(layout, r["units"], r["k"], hash_id), at, "the shape")
    m = r["units"] * (512 if layout == 2 else 1)
    need(r["ones_max"] == NONE or (counted and r["ones_max"] <= 4 * m), at, "full at")
    need(r["large"] <= (m if counted else 0), at, "large counters")
    need(r["fpp"] >= 0, at, "rate")
    return m


class Part:
    """A part of the lines of a smooth filter: its record and its four pieces."""
    SLOTS = {14: 35, 16: 31, 18: 27, 20: 24, 24: 20}

    def __init__(self, record, at):
        r, self.record, self.at = record, record, at
        power = 1 << r["lines"].bit_length() - 1 if r["lines"] else 1
        need(0 < r["lines"] < 1 << 28 and (r["lines"] == power or
                                           r["lines"] - power >= power // 16), at, "lines")
        need(r["width"] in self.SLOTS and r["depth"] in (0, 4, 9), at, "width or depth")
        need(5 * r["stashed"] <= 4 * r["stash"] and (r["stashed"] or not r["stash"]), at, "stash")
        self.width, self.bits = r["width"], r["width"] - 1 + power.bit_length() - 1

    def lengths(self):
        r = self.record
        return [64 * r["lines"], 8 * r["stash"], 16 * r["coarse"], 16 * r["excess"]]

    def take(self, pieces):
        self.pieces = [bytes(piece) for piece in pieces]
        self.stash = {}
        words = [x for x, in struct.iter_unpack("<Q", self.pieces[1])]
        for word in filter(None, words):
            line, slot, copies = word >> 36, word >> 12 & 0xFFFFFF, word & 0xFFF
            need(line < self.record["lines"] and slot < 1 << self.width and slot and copies,
                 self.at, "an entry of the stash")
            need((line, slot) not in self.stash, self.at, "an entry twice in the stash")
            self.stash[line, slot] = copies
        self.check_homes(words)

    def check_homes(self, words):
        room = len(words)
        for at, word in enumerate(words):
            home = (((word >> 36) * GOLDEN & MASK) >> 32) * room >> 32
            while word and home != at:
                need(words[at], self.at, "an entry of the stash out of reach")
                at = (at or room) - 1

    def line(self, number):
        """Slots in use, the bound, and whether some slot may have a low part of zero."""
        data, s = self.pieces[0][64 * number:64 * number + 64], self.width
        if s == 14:
            tops = sum((byte >> 7) << i for i, byte in enumerate(data))
            lanes = list(struct.unpack("<32H", bytes(byte & 127 for byte in data)))
            lanes += [tops >> 16 * k & 0xFFFF for k in range(4)]
            need(not any(lane & 0x8080 for lane in lanes), self.at, "a line")
            raw, *lows = [lane & 127 | lane >> 8 << 7 for lane in lanes]
            high, shift = [0] * 35, 14
        elif s == 16:
            lows, high, raw, shift = struct.unpack_from("<31H", data, 2), [0] * 31, \
                struct.unpack_from("<H", data)[0], 16
        elif s == 18:
            lows, high = struct.unpack_from("<27H", data), [data[54 + i // 4] >> i % 4 * 2 & 3 for i in range(27)]
            raw, shift = struct.unpack_from("<I", data, 60)[0] >> 8, 16
        elif s == 20:
            lows, high = struct.unpack_from("<24H", data), \
                [data[48 + i] & 15 if i < 12 else data[36 + i] >> 4 for i in range(24)]
            raw, shift = struct.unpack_from("<I", data, 60)[0], 16
        else:
            lows, high, raw, shift = struct.unpack_from("<20H", data), data[40:60], \
                struct.unpack_from("<I", data, 60)[0], 16
        top = 0 if s <= 16 else 1 << {18: 23}.get(s, 31)
        slots = [low | part << shift for low, part in zip(lows, high)]
        used = slots.index(0) if 0 in slots else len(slots)
        bound = (raw & ~top) ^ (1 << s) - 1
        need(not any(slots[used:]) and bound < 1 << s, self.at, "a line")
        need(raw & top or s <= 16 or all(lows[:used]), self.at, "a low part of zero")
        return slots[:used], bound

    def first(self, line):
        return -(-(line << self.bits) // self.record["lines"])

    def line_of(self, w):
        return w * self.record["lines"] >> self.bits

    def entry(self, line, slot):
        """The entry of a slot in a line, None if it is coarse."""
        unknown = (slot & -slot).bit_length() - 1
        if unknown + 5 >= self.width:
            return None
        span, low = 1 << self.width - 1, (slot & slot - 1) >> 1
        first, last = self.first(line), self.first(line + 1) - 1
        low += (first - low + span - 1) // span * span
        if low > last:
            low -= span
        need(low >= 0 and low + (1 << unknown) > first, self.at, "a slot of another line")
        return low << 1 | 1 << unknown

    def lines_of(self, entry):
        unknown, low = (entry & -entry).bit_length() - 1, (entry & entry - 1) >> 1
        return range(self.line_of(low), self.line_of(low + (1 << unknown) - 1) + 1)

    def coarse_slot(self, entry, line):
        low = (entry & entry - 1) >> 1
        first = max(low, self.first(line))
        last = min(low + (entry & -entry), self.first(line + 1)) - 1
        unknown = max(self.width - 5, (first ^ last).bit_length())
        piece = first >> unknown << unknown + 1 | 1 << unknown
        return piece & (1 << self.width) - 1 or 1 << self.width - 1

    def list_of(self, piece):
        found = list(struct.iter_unpack("<QQ", self.pieces[piece]))
        keys = [entry for entry, _ in found]
        need(keys == sorted(set(keys)) and all(copies for _, copies in found), self.at, "a list")
        need(all(0 < entry < 2 << self.bits for entry in keys), self.at, "a list")
        return found

    def check(self):
        """Every entry is in all its lines, and all are as many as the record says."""
        there, bounds, used = [], [], len(self.stash)
        for number in range(self.record["lines"]):
            slots, bound = self.line(number)
            there.append(collections.Counter(slots))
            bounds.append(bound)
            used += len(slots)
            need(all(n == 1 or self.entry(number, slot) is None
                     for slot, n in there[-1].items()), self.at, "a slot twice in a line")
        for (line, slot), copies in self.stash.items():
            need(bounds[line] <= (slot & slot - 1 | 1), self.at, "a bound")
            there[line][slot] += copies
        coarse, keys, mass = {}, 0, 0
        for line, slots in enumerate(there):
            for slot, copies in list(slots.items()):
                entry = self.entry(line, slot)
                if entry is None:
                    coarse[line, slot] = coarse.get((line, slot), 0) + copies
                    continue
                lines = self.lines_of(entry)
                need(all(there[other][slot] == copies for other in lines), self.at,
                     "an entry that only one of its lines has")
                if line == lines[0]:
                    keys, mass = keys + copies, mass + (entry & -entry)
        for entry, copies in self.list_of(2):
            keys, mass = keys + copies, mass + (entry & -entry)
            for line in self.lines_of(entry):
                slot = self.coarse_slot(entry, line)
                coarse[line, slot] = coarse.get((line, slot), 0) - 1
        keys += sum(copies for _, copies in self.list_of(3))
        need(not any(coarse.values()), self.at, "coarse entries")
        need((used, keys, mass, len(self.stash)) == tuple(
            self.record[name] for name in ("used", "keys", "mass", "stashed")), self.at, "counts")

    def has(self, a):
        w = (a << self.record["depth"] & MASK) >> 64 - self.bits
        line, q = self.line_of(w), (2 * w + 1) & (1 << self.width) - 1
        slots, bound = self.line(line)
        if q >= bound:
            slots += [slot for other, slot in self.stash if other == line]
        return any((slot ^ q) & (slot ^ -slot) & (1 << self.width) - 1 == 0 for slot in slots)


class Structure:
    """What filters and records share: sections, counters, pending removals, families."""

    def __init__(self, container, kind, name):
        c = self.container = container
        need(c.kind == kind, 12, "not " + name)
        self.hash, self.bits_only = c.hash, bool(c.flags & 1)
        need(c.body_len >= 256, 32, "the body has the wrong length")
        self.head = unpack(HEAD, c.data, 128, 128)
        self.counted = bool(self.head["flags"] & DELETABLE) and not self.bits_only

    def read_sections(self, want):
        c = self.container
        c.check_payload()
        have = [(type_, owner, length) for type_, owner, _, length in c.sections]
        need(list(want) == have, 128 + c.body_len, "the sections do not match the vectors")
        self.parts = {(type_, owner): c.data[offset:offset + length]
                      for type_, owner, offset, length in c.sections}

    def read_ones(self):
        """How many bits of each part are set; 0 for a table."""
        ones = struct.unpack("<%dQ" % len(self.vectors), self.parts[9, 0])
        for i, (v, said) in enumerate(zip(self.vectors, ones)):
            need(said == (v.bits.bit_count() if v else 0), self.container.header,
                 "ones of vector %d" % i)

    def read_counters(self, i, v, at):
        v.counters = bytearray(v.m)
        nibbles = self.parts[3, i]
        v.counters[0::2] = bytes(x & 15 for x in nibbles)
        v.counters[1::2] = bytes(x >> 4 for x in nibbles)
        entries = list(struct.iter_unpack("<QQ", self.parts.get((4, i), b"")))
        need([p for p, _ in entries] == [p for p, x in enumerate(v.counters) if x == 15], at,
             "large counters of vector %d" % i)
        need(all(value >= 15 for _, value in entries), at, "a large counter that is small")
        v.large = dict(entries)
        packed = int("".join("1" if x else "0" for x in reversed(v.counters)), 2)
        need(packed == v.bits, at, "bits and counters of vector %d" % i)

    def read_pending(self, ids, digests):
        head, self.pending, used, before = self.head, {}, 0, ()
        candidates = [x for x, in struct.iter_unpack("<I", self.parts.get((6, 0), b""))]
        need(self.counted or not head["pending"], 352, "removals without counters")
        for entry in struct.iter_unpack("<%dQQII" % (2 * digests), self.parts.get((5, 0), b"")):
            key, (copies, hides, n) = entry[:-3], entry[-3:]
            mine = candidates[used:used + n]
            need(key > before and copies and n and len(mine) == n, 352, "a pending removal")
            need(mine == sorted(set(mine)) and ids.issuperset(mine), 352, "its candidates")
            need(hides <= (1 if head["flags"] & UNIQUE else 0), 352, "hides")
            self.pending[key] = (copies, hides, tuple(mine))
            used, before = used + n, key
        need(len(self.pending) == head["pending"] and used == len(candidates) == head["candidates"]
             and sum(p[0] for p in self.pending.values()) == head["copies"], 352, "pending removals")

    def family(self, key=None):
        c = self.container
        if key is None:
            need(c.has_key, 68, "the family key was left out: give it with --key-file")
            key = c.key
        need(c.key_fits(key), 88, "this is not the family key")
        return Family(self.hash, key)


class Filter(Structure):
    def __init__(self, container):
        super().__init__(container, 1, "a filter")
        n, parts = self.head["n"], self.head["parts"]
        need(container.body_len == 256 + RECORD_LEN * n + (16 + 64 * parts if parts else 0), 32,
             "the body has the wrong length")
        check_head(self.head, container.hash, 128)
        need(self.head["width"] == (width_for(self.head["n"]) if self.head["growth"] == 2 else 0),
             128, "the width of the matrix")
        self.vectors = [self.read_record(i) for i in range(self.head["n"])]
        at = 384 + RECORD_LEN * n
        self.lines = unpack(LINES, container.data, at, at) if parts else None
        self.places = placed([Part(unpack(PART, container.data, at + 16 + 64 * i, at),
                                   at + 16 + 64 * i) for i in range(parts)], at)
        need(sum(v.record["count"] for v in self.vectors) +
             sum(part.record["keys"] for part in self.places.values()) == self.head["stored"], 296,
             "stored")
        self.read_sections(self.section_lengths())
        self.read_bits()
        if n:
            self.read_ones()
        for i, part in enumerate(self.places.values()):
            part.take(self.parts.get((8, 4 * i + piece), b"") for piece in range(4))
            part.check()
        if self.counted:
            for i, v in enumerate(self.vectors):
                self.read_counters(i, v, 384 + RECORD_LEN * i)
        self.read_pending({v.record["id"] for v in self.vectors}, 1)

    def read_record(self, i):
        at, head = 384 + RECORD_LEN * i, self.head
        r = unpack(RECORD, self.container.data, at, at)
        need(r["layout"] == 0 or (r["layout"], head["layout"], head["growth"]) == (1, 2, 6), at, "the layout")
        m = check_record(r, r["layout"] or head["layout"], self.hash, self.counted, at)
        need(head["growth"] != 2 or (r["units"], r["k"]) == (head["shape_units"], head["shape_k"]),
             at, "the shape of a dynamic filter")
        need(r["id"] < head["next_id"], at, "id")
        if i and head["growth"] != 5:
            before = struct.unpack_from("<I", self.container.data, at - RECORD_LEN)[0]
            need(before < r["id"], at, "ids do not rise")
        return Vector(r, m)

    def section_lengths(self):
        head = self.head
        if head["width"]:
            yield 2, 0, head["shape_units"] * head["width"] // 8
        else:
            for i, v in enumerate(self.vectors):
                yield 1, i, v.m // 8
        if self.counted:
            for i, v in enumerate(self.vectors):
                yield 3, i, v.m // 2
            for i, v in enumerate(self.vectors):
                if v.record["large"]:
                    yield 4, i, 16 * v.record["large"]
        if head["pending"]:
            yield 5, 0, 32 * head["pending"]
            yield 6, 0, 4 * head["candidates"]
        for i, part in enumerate(self.places.values()):
            for piece, length in enumerate(part.lengths()):
                if length:
                    yield 8, 4 * i + piece, length
        if self.vectors:
            yield 9, 0, 8 * len(self.vectors)

    def read_bits(self):
        width = self.head["width"]
        if width:
            rows = int.from_bytes(self.parts[2, 0], "little")
            bits = bin(rows)[:1:-1].ljust(self.head["shape_units"] * width, "0")
            for i in range(width):
                column = int(bits[i::width][::-1], 2)
                if i < len(self.vectors):
                    self.vectors[i].bits = column
                else:
                    need(column == 0, self.container.header, "a column without a vector")
        for i, v in enumerate(self.vectors):
            if not width:
                v.bits = int.from_bytes(self.parts[1, i], "little")

    # -- asking --

    def has(self, family, data):
        digest = family.digest(data)
        found = self.in_matrix(family, digest) if self.head["width"] else any(
            all(bit(self.parts[1, i], p) for p in family.positions(
                digest, v.record["layout"] or self.head["layout"], v.record["units"], v.record["k"]))
            for i, v in enumerate(self.vectors))
        if self.places:
            place = digest[0] >> 55
            found = found or self.places[max(first for first in self.places
                                             if first <= place)].has(digest[0])
        hidden = self.head["flags"] & UNIQUE and self.pending.get(digest, (0, 0))[1]
        return found and not hidden

    def in_matrix(self, family, digest):
        width, head, matrix = self.head["width"], self.head, self.parts[2, 0]
        left = (1 << width) - 1
        for row in family.positions(digest, 1, head["shape_units"], head["shape_k"]):
            start = row * width
            near = matrix[start // 8:(start + width + 7) // 8]
            left &= int.from_bytes(near, "little") >> start % 8
        return left != 0

    # -- writing --

    def encode(self, key, bits_only):
        counted = self.counted and not bits_only
        head, records, pending = dict(self.head), [], sorted(self.pending.items())
        if not counted:
            pending = []
        for v in self.vectors:
            records.append(dict(v.record, large=len(v.large) if counted else 0,
                                ones_max=v.record["ones_max"] if counted else NONE))
        head.update(pending=len(pending), copies=sum(p[0] for _, p in pending),
                    candidates=sum(len(p[2]) for _, p in pending))
        body = pack(HEAD, head) + b"".join(pack(RECORD, r) for r in records)
        if self.places:
            body += pack(LINES, self.lines)
            body += b"".join(pack(PART, part.record) for part in self.places.values())
        return container_bytes(1, 1 if bits_only or self.bits_only else 0, self.hash, key,
                               self.container.check, body,
                               list(self.written_sections(head, counted, pending)))

    def written_sections(self, head, counted, pending):
        if head["width"]:
            width, units = head["width"], head["shape_units"]
            rows = ["0" * units] * width
            for i, v in enumerate(self.vectors):
                rows[i] = bin(v.bits)[:1:-1].ljust(units, "0")
            bits = "".join("".join(row) for row in zip(*rows))
            yield 2, 0, int(bits[::-1], 2).to_bytes(units * width // 8, "little")
        else:
            for i, v in enumerate(self.vectors):
                yield 1, i, v.bits.to_bytes(v.m // 8, "little")
        if counted:
            for i, v in enumerate(self.vectors):
                yield 3, i, bytes(v.counters[p] | v.counters[p + 1] << 4 for p in range(0, v.m, 2))
            for i, v in enumerate(self.vectors):
                if v.large:
                    yield 4, i, b"".join(struct.pack("<QQ", *x) for x in sorted(v.large.items()))
        if pending:
            yield 5, 0, b"".join(struct.pack("<QQQII", a, b, copies, hides, len(ids))
                                 for (a, b), (copies, hides, ids) in pending)
            yield 6, 0, b"".join(struct.pack("<I", x) for _, p in pending for x in p[2])
        for i, part in enumerate(self.places.values()):
            for piece, data in enumerate(part.pieces):
                if data:
                    yield 8, 4 * i + piece, data
        if self.vectors:
            yield 9, 0, b"".join(struct.pack("<Q", v.bits.bit_count()) for v in self.vectors)


def placed(parts, at):
    """Parts by their first places, which they take in order."""
    found, place = {}, 0
    for part in parts:
        places = 512 >> part.record["depth"]
        need(place % places == 0 and place < 512, at, "the place of a part")
        found[place] = part
        place += places
    need(place == 512 or not parts, at, "places without a part")
    return found


# ---- values of records ---------------------------------------------------------------------------

SPACE = b" \t\n\v\f\r"


def normal_int(text):
    found = re.fullmatch(rb"([+-]?)0*([0-9]+)", text)
    if not found:
        return None
    sign, digits = found.groups()
    return b"-" + digits if sign == b"-" and digits != b"0" else digits


def normal_dec(text):
    found = re.fullmatch(rb"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?", text)
    if not found or not found[2] + (found[3] or b""):
        return None
    digits, power = found[2] + (found[3] or b""), int(found[4] or 0) - len(found[3] or b"")
    if not digits.strip(b"0"):
        return b"0"
    if abs(int(found[4] or 0)) > 10**15:
        return None
    kept = digits.rstrip(b"0")
    power += len(digits) - len(kept)
    sign = b"-" if found[1] == b"-" else b""
    return sign + kept.lstrip(b"0") + (b"e%d" % power if power else b"")


def days_of(year, month, day):
    """Days since 1970-01-01; the calendar repeats every 400 years."""
    date = datetime.date(2000 + year % 400, month, day)
    return (date - datetime.date(1970, 1, 1)).days + (year // 400 - 5) * 146097


def date_time(text):
    """Seconds since 1970 and the digits of a fraction, or None."""
    zone = rb"(?: ?(?:([Zz])|([+-])([0-9]{2})(?::?([0-9]{2}))?))?"
    second = rb"([0-9]{2})(?:[.,]([0-9]+))?"
    found = re.fullmatch(rb"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[Tt ]([0-9]{2}):([0-9]{2})(?::" +
                         second + rb")?" + zone + rb")?", text)
    found = found or re.fullmatch(rb"([0-9]{4})([0-9]{2})([0-9]{2})[Tt]([0-9]{2})([0-9]{2})(?:" +
                                  second + rb")?" + zone, text)
    if not found:
        return None
    year, month, day, hour, minute, sec, fraction, _, sign, ahead, apart = found.groups()
    hour, minute, sec = int(hour or 0), int(minute or 0), int(sec or 0)
    ahead, apart = int(ahead or 0), int(apart or 0)
    if hour > 23 or minute > 59 or sec > 60 or ahead > 23 or apart > 59:
        return None
    try:
        days = days_of(int(year), int(month), int(day))
    except ValueError:
        return None
    offset = 60 * (60 * ahead + apart) * (-1 if sign == b"-" else 1)
    return 86400 * days + 3600 * hour + 60 * minute + sec - offset, (fraction or b"").rstrip(b"0")


def epoch(text):
    found = re.fullmatch(rb"([+-]?)0*([0-9]{0,12})(?:\.([0-9]+))?", text)
    if not found or not re.match(rb"[+-]?[0-9]", text):
        return None
    seconds, fraction = int(found[2] or 0), (found[3] or b"").rstrip(b"0")
    if found[1] == b"-":
        seconds = -seconds - (1 if fraction else 0)
        if fraction:
            fraction = b"%0*d" % (len(fraction), 10**len(fraction) - int(fraction))
    return seconds, fraction


def normal_time(text):
    moment = date_time(text) or epoch(text)
    if not moment or not -62167219200 <= moment[0] <= 253402300799:
        return None
    seconds, fraction = moment
    days, rest = divmod(seconds, 86400)
    cycle, days = divmod(days - days_of(0, 1, 1), 146097)
    date = datetime.date(2000, 1, 1) + datetime.timedelta(days)
    return b"%04d-%02d-%02dT%02d:%02d:%02d%sZ" % (
        date.year - 2000 + 400 * cycle, date.month, date.day, rest // 3600, rest // 60 % 60,
        rest % 60, b"." + fraction if fraction else b"")


def normal_ip(text):
    try:
        address = ipaddress.ip_address("" if b"%" in text else text.decode("ascii"))
    except ValueError:
        return None
    return str(getattr(address, "ipv4_mapped", None) or address).encode()


def folded(text):
    return text.translate(bytes(c + 32 if 65 <= c <= 90 else c for c in range(256)))


def normal(type_, value):
    """What is hashed of a value; one that is none of its type stands for itself."""
    text = value.strip(SPACE)
    if len(text) >= 2 and text[:1] == text[-1:] == b'"':
        text = text[1:-1].strip(SPACE)
    form = (None, normal_int, normal_dec, normal_time, normal_ip, None, None,
            lambda _: folded(value))[type_]
    found = form(text) if form and len(value) <= 4096 else None
    return value if found is None else found


# ---- records -------------------------------------------------------------------------------------

LAYER = [("id", "I"), ("slot", "I"), ("capacity", "Q"), ("load", "Q"), ("count", "Q"),
         ("fpp", "d"), ("born", "Q"), ("zero1", "Q"), ("zero2", "Q")]
VALUE_A, VALUE_B, VALUE_MIX = 0xE7037ED1A0B428DB, 0x8EBC6AF09C88C6E3, 0xA0761D6478BD642F
VERIFIERS, TYPES = ["", "none", "table", "filter"], ["text", "int", "dec", "time", "ip",
                                                           "path", "words", "fold"]
TABLE = 2


def fold(x, y):
    product = x * y
    return (product >> 64) ^ (product & MASK)


def mix(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def table_hash(value):
    return fold(value ^ GOLDEN, GOLDEN)


def value_digest(family, kind, attribute, value, part=False):
    """Of a value of an attribute, None if it is missing, or of a part of one."""
    number = attribute + (128 if part else 64 if value is None else 0)
    text = value if part else b"" if value is None else normal(kind, value)
    a, b = family.digest(text)
    return mix(a + (number + 1) * VALUE_A & MASK), mix(b + (number + 1) * VALUE_B & MASK)


class Records(Structure):
    def __init__(self, container):
        super().__init__(container, 2, "a set of records")
        check_head(self.head, container.hash, 128)
        need(self.head["growth"] != 5 and self.head["width"] == 0 and
             not self.head["flags"] & UNIQUE and
             (self.head["growth"] == 1 or not self.head["flags"] & PUBLISHED), 128, "no records have this")
        at = self.read_settings(container.data)
        n, parts = self.head["n"], len(self.names) + len(self.masks)
        need(container.body_len == at - 128 + n * (64 + RECORD_LEN * parts), 32, "the body has the wrong length")
        self.layers = [unpack(LAYER, container.data, at + 64 * i, at) for i in range(n)]
        self.records_at = at + 64 * n
        ids = [layer["id"] for layer in self.layers]
        need(ids == sorted(set(ids)) and ids[-1] < self.head["next_id"], at, "ids")
        need(all(layer["fpp"] >= 0 for layer in self.layers), at, "a rate")
        need(sum(layer["count"] for layer in self.layers) == self.head["stored"], 296, "stored")
        self.sizes = {}
        self.vectors = [self.read_record(i, i % parts) for i in range(n * parts)]
        self.read_sections(self.section_lengths())
        self.tables = {}
        for i, v in enumerate(self.vectors):
            if v is None:
                self.read_table(i, self.layers[i // parts]["count"])
                continue
            v.bits = int.from_bytes(self.parts[1, i], "little")
            if self.counted:
                self.read_counters(i, v, self.records_at + RECORD_LEN * i)
        self.read_ones()
        self.read_pending(set(ids), len(self.names))

    def read_settings(self, data):
        need(self.container.body_len >= 288, 32, "the body has the wrong length")
        p, v, self.verifier, self.value, names_len, zero = struct.unpack_from("<IIIIQQ", data, 384)
        need(1 <= p <= 64 and v <= 64 and 1 <= self.verifier <= 3 and 1 <= self.value <= 3 and
             names_len <= 64 * 256 and zero == 0, 384, "attributes and verifiers")
        end = 416 + 8 * v + 16 * p + round_up(names_len, 8)
        need(end <= 128 + self.container.body_len, 384, "names")
        self.masks = list(struct.unpack_from("<%dQ" % v, data, 416))
        at = 416 + 8 * v
        attributes = list(struct.iter_unpack("<QII", data[at:at + 16 * p]))
        need(all(distinct <= 1 << 40 and type_ <= 7 and not zero
                 for distinct, type_, zero in attributes), at, "an attribute")
        self.types = [type_ for _, type_, _ in attributes]
        at += 16 * p
        self.names = data[at:at + names_len].split(b"\0")
        need(self.names.pop() == b"" and len(self.names) == p == len(set(self.names)) and
             all(1 <= len(name) <= 255 for name in self.names), at, "the names")
        need(not any(data[at + names_len:end]), at, "what fills up the names")
        every = (1 << p) - 1
        whole = self.verifier != 1 and (p > 1 or self.verifier == TABLE)
        need(self.masks[:1] == [every] if whole else not self.masks, 416, "the verifiers")
        need(len(set(self.masks)) == v and all(
            0 < m <= every and (m & m - 1) for m in self.masks[1:]), 416, "a combination")
        return end

    def read_record(self, i, part):
        at = self.records_at + RECORD_LEN * i
        r = unpack(RECORD, self.container.data, at, at)
        if part >= len(self.names) and self.verifier == TABLE:
            need(not any(value for name, value in r.items() if name != "load"), at, "a table")
            self.sizes[i] = r["load"]
            return None
        need(not (r["id"] or r["slot"] or r["layout"] or r["born"] or r["last"]), at, "what only layers have")
        return Vector(r, check_record(r, self.head["layout"], self.hash, self.counted, at))

    def section_lengths(self):
        bits = [(i, v) for i, v in enumerate(self.vectors) if v is not None]
        yield from ((1, i, v.m // 8) for i, v in bits)
        if self.counted:
            yield from ((3, i, v.m // 2) for i, v in bits)
            yield from ((4, i, 16 * v.record["large"]) for i, v in bits if v.record["large"])
        if self.head["pending"]:
            yield 5, 0, (16 * len(self.names) + 16) * self.head["pending"]
            yield 6, 0, 4 * self.head["candidates"]
        for i, v in enumerate(self.vectors):
            if v is None and self.sizes[i]:
                yield 7, i, 16 * self.sizes[i]
        yield 9, 0, 8 * len(self.vectors)

    def read_table(self, i, count):
        pairs = list(struct.iter_unpack("<QQ", self.parts.get((7, i), b"")))
        order = [(table_hash(value), value) for value, _ in pairs]
        need(order == sorted(set(order)) and all(copies for _, copies in pairs), self.records_at,
             "table %d" % i)
        need(not self.counted or sum(copies for _, copies in pairs) == count, self.records_at,
             "copies in table %d" % i)
        self.tables[i] = dict(pairs)

    # -- asking --

    def verification(self, family, layer, mask, record):
        """The value that layer `layer` keeps of a record for the attributes in the mask."""
        p = len(self.names)
        parts = p + len(self.masks)
        if self.value == 1:
            value = mask * GOLDEN & MASK
            for i in range(p):
                if mask >> i & 1:
                    value = fold(value ^ record[i][0], VALUE_MIX ^ record[i][1])
            return value
        vectors = self.vectors[layer * parts:layer * parts + p]
        most, total = max(v.record["k"] for v in vectors), 0
        for i, v in enumerate(vectors):
            if mask >> i & 1:
                places = family.positions(record[i], 1, v.m, v.record["k"])
                total += sum((at + 1) << (most - 1 - j if self.value == 3 else 0)
                             for j, at in enumerate(places))
        return total & MASK

    def in_layer(self, family, layer, mask, record):
        p = len(self.names)
        first = layer * (p + len(self.masks))
        for part in range(p + len(self.masks)):
            about = 1 << part if part < p else self.masks[part - p]
            if about & ~mask:
                continue
            digest = record[part] if part < p else None
            if digest is None:
                value = self.verification(family, layer, about, record)
                if self.verifier == TABLE:
                    if value not in self.tables[first + part]:
                        return False
                    continue
                digest = mix(value + VALUE_A & MASK), mix(value ^ VALUE_B)
            v = self.vectors[first + part]
            if not all(v.bits >> at & 1 for at in family.positions(
                    digest, self.head["layout"], v.record["units"], v.record["k"])):
                return False
        return True

    def has(self, family, question):
        """Could a record with these values be here? {name: value}, None for a missing one."""
        record, mask = [None] * len(self.names), 0
        for name, value in question.items():
            need(name in self.names, 0, "no attribute %r" % name)
            i = self.names.index(name)
            record[i] = value_digest(family, self.types[i], i, value)
            mask |= 1 << i
        return any(self.in_layer(family, layer, mask, record) for layer in range(self.head["n"]))


def question_of(text):
    """NAME=VALUE or NAME!, with tabs between them."""
    found = {}
    for pair in text.split(b"\t"):
        name, equals, value = pair.partition(b"=")
        need(equals or name.endswith(b"!"), 0, "NAME=VALUE or NAME! is asked for")
        found[name if equals else name[:-1]] = value if equals else None
    return found


# ---- directories and catalogs --------------------------------------------------------------------

DROPPED = UNKNOWN = 0xFFFFFFFF


class Family16:
    """What both have in common: the family, for which the key may have to be given."""

    def family(self, key=None):
        c = self.container
        key = key or (c.key if c.has_key else None)
        need(key is not None, 68, "saved without its family key")
        need(c.key_fits(key), 88, "another family key")
        return Family(c.hash, key)


def shape_of(k, units, hash_id, at):
    need(shape_fits(1, units, k, hash_id), at, "a column has an impossible shape")


def matching(data, width, columns, places):
    """The columns that have all bits set, of rows that are `width` bits apart."""
    left = (1 << columns) - 1
    for row in places:
        first = row * width
        bits = int.from_bytes(data[first >> 3:(first + width + 7) >> 3], "little") >> (first & 7)
        left &= bits
    return [i for i in range(columns) if left >> i & 1]


def check_unused(data, rows, width, columns, at):
    for row in range(rows if width > columns else 0):
        first = row * width
        bits = int.from_bytes(data[first >> 3:(first + width + 7) >> 3], "little") >> (first & 7)
        need(not (bits & ((1 << width) - 1)) >> columns, at, "a bit of no column")


def tokens(text):
    """The words that a phrase needs: those that are no part of a compound, and the compounds."""
    found = list(re.finditer(rb"[0-9A-Za-z_\x80-\xff]+", text))
    joins = [text[a.end():b.start()] for a, b in zip(found, found[1:])]
    joins = [join if join in (b".", b":", b"/", b"@", b"-") else b"" for join in joins] + [b""]
    needed, first = [], 0
    for i, join in enumerate(joins):
        before = joins[i - 1] if i else b""
        if before and join != before:  # a compound ends with this token
            needed.append(text[found[first].start():found[i].end()])
        elif not before and not join and found:
            needed.append(found[i].group())
        if join != before:
            first = i
    return [folded(one)[:255] for one in needed]


def network_keys(text, part, whole):
    net = ipaddress.ip_network(text, strict=False)
    if net.version == 6 and net.prefixlen >= 96 and net.network_address.ipv4_mapped:
        net = ipaddress.ip_network("%s/%d" % (net.network_address.ipv4_mapped, net.prefixlen - 96))
    if net.prefixlen == net.max_prefixlen:
        return [[whole(str(net.network_address).encode())]]
    for kept in (24, 16, 8) if net.version == 4 else (64, 48, 32):
        if net.prefixlen >= kept:
            return [[part(bytes([net.version, kept]) + net.network_address.packed[:kept // 8])]]
    if net.version == 6 or net.prefixlen == 0:
        return []
    return [[part(bytes([4, 8, one.network_address.packed[0]])) for one in net.subnets(new_prefix=8)]]


def order_of(type_, value):
    """A number or time, as bounds have it; negative fractions as all bits turned."""
    text = normal(type_, value)
    if type_ == 3:
        seconds, fraction = date_time(text)
        exact = seconds + fractions.Fraction(int(fraction or 0), 10**len(fraction))
    else:
        exact = fractions.Fraction(text.decode())
    whole, rest = divmod(abs(exact), 1)
    cut = int(rest * 10**19) * 2**64 // 10**19
    if exact < 0:
        whole, cut = (-whole - 1, MASK ^ cut) if rest else (-whole, 0)
    if whole >= 1 << 63 or whole < -(1 << 63):
        return ((1 << 63) - 1, MASK) if whole > 0 else (-(1 << 63), 0)
    return int(whole), cut


class Catalog(Family16):
    def __init__(self, container):
        c = self.container = container
        need(c.kind == 4 and c.flags == 0, 12, "not a catalog")
        need(c.body_len >= 128, 32, "the body has the wrong length")
        self.read_body(c.data)
        self.read_pages(c)
        parts = [c.data[at:at + length] for _, _, at, length in c.sections]
        self.strips_data, self.fronts_data, table, self.tags_data, self.note = parts[:5]
        self.read_table(table)

    def read_body(self, data):
        p, v, self.verifier, names_len, self.fpp, self.expected = struct.unpack_from("<IIIIdQ", data,
                                                                                     128)
        (self.n, self.n_shapes, self.n_strips, self.n_columns, self.strips_len, self.tags_len,
         self.note_len, self.tops_sum, self.n_fronts, self.fronts_len) = struct.unpack_from(
             "<10Q", data, 160)
        need(1 <= p <= 64 and v <= 63 and self.verifier in (1, 3) and 0 < self.fpp < 1 and
             1 <= self.expected <= 1 << 31 and self.n <= 1 << 31, 128, "the head")
        need(self.verifier == 3 or v == 0, 132, "combinations without a verifier")
        need(not any(data[240:256]), 240, "reserved fields")
        at = 256
        self.masks = list(struct.unpack_from("<%dQ" % v, data, at))
        at += 8 * v
        kinds = struct.unpack_from("<%dI" % p, data, at)
        self.types = [kind & ~256 for kind in kinds]
        self.bounds_only = [bool(kind & 256) for kind in kinds]
        self.ordered = [i for i, type_ in enumerate(self.types) if type_ in (1, 2, 3)]
        at += round_up(4 * p, 8)
        names = data[at:at + names_len]
        need(128 + self.container.body_len == at + round_up(names_len, 8), 32, "the body")
        self.names = names.split(b"\0")
        need(self.names.pop() == b"" and len(self.names) == p == len(set(self.names)) and
             all(1 <= len(name) <= 255 for name in self.names), at, "the names")
        need(all(type_ <= 7 for type_ in self.types) and
             all(i in self.ordered for i in range(p) if self.bounds_only[i]), at, "a type")
        need(len(set(self.masks)) == v and all(0 < m < 1 << p and m & m - 1 for m in self.masks),
             256, "a combination")

    def read_pages(self, c):
        relations = len(self.names) + len(self.masks)
        table = (40 * self.n_shapes + 16 * self.n_strips + 40 * self.n_fronts + round_up(4 * self.n_columns, 8) +
                 24 * self.n + round_up(4 * self.n * relations, 8) +
                 32 * self.n * len(self.ordered))
        lengths, at, want = [self.strips_len, self.fronts_len, table, self.tags_len,
                             self.note_len], c.header, []
        for i in range(7):
            if i >= 5:
                of = at - c.header if i == 5 else want[5][3]
                lengths.append(8 * ((of + PAGE - 1) // PAGE))
            want.append((16 + i, 0, at, lengths[i]))
            at = round_up(at + lengths[i], 64)
        need(c.sections == want and at == len(c.data), 128 + c.body_len, "the sections")
        sums, tops = want[5], want[6]
        need(xxh3(c.data[tops[2]:tops[2] + tops[3]]) == self.tops_sum, 216, "the last checksum")
        for (first, end), (_, _, where, _) in (((c.header, sums[2]), sums),
                                               ((sums[2], sums[2] + sums[3]), tops)):
            for i, start in enumerate(range(first, end, PAGE)):
                need(xxh3(c.data[start:min(start + PAGE, end)]) ==
                     struct.unpack_from("<Q", c.data, where + 8 * i)[0], start,
                     "the checksum of a page")
        for _, _, offset, length in want:
            end = offset + length
            need(not any(c.data[end:round_up(end, 64)]), end, "what fills up a section")

    def read_table(self, table):
        relations, at = len(self.names) + len(self.masks), 0
        self.shapes = [struct.unpack_from("<IIQQdII", table, 40 * i) for i in range(self.n_shapes)]
        for relation, k, units, capacity, rate, most, zero in self.shapes:
            shape_of(k, units, self.container.hash, 0)
            need(relation < relations and capacity and most and 0 < rate < 1 and not zero, 0,
                 "a shape")
        at += 40 * self.n_shapes
        strips = [struct.unpack_from("<IIII", table, at + 16 * i) for i in range(self.n_strips)]
        at += 16 * self.n_strips
        self.place_fronts([struct.unpack_from("<IIIIQQQ", table, at + 40 * i)
                           for i in range(self.n_fronts)])
        at += 40 * self.n_fronts
        self.columns = list(struct.unpack_from("<%dI" % self.n_columns, table, at))
        need(all(s < self.n or s == DROPPED for s in self.columns), 0, "a column belongs to no segment")
        at += round_up(4 * self.n_columns, 8)
        self.records = list(struct.unpack_from("<%dQ" % self.n, table, at))
        self.texts = list(struct.unpack_from("<%dQ" % self.n, table, at + 8 * self.n))
        ends = list(struct.unpack_from("<%dQ" % self.n, table, at + 16 * self.n))
        need(ends == sorted(ends) and (ends[-1] if ends else 0) == self.tags_len, 0, "the tags")
        self.tags = [self.tags_data[a:b] for a, b in zip([0] + ends, ends)]
        at += 24 * self.n
        self.distinct = [struct.unpack_from("<%dI" % self.n, table, at + 4 * self.n * i)
                         for i in range(relations)]
        at += round_up(4 * self.n * relations, 8)
        self.bounds = {}
        for i in self.ordered:
            self.bounds[i] = [struct.unpack_from("<qQqQ", table, at + 32 * j) for j in range(self.n)]
            at += 32 * self.n
        self.place_strips(strips)

    def place_strips(self, strips):
        end, column, self.strips = 0, 0, []
        for shape, width, count, zero in strips:
            need(shape < self.n_shapes and 1 <= count <= 512 and not zero and
                 width == (count if count <= 2 else 4 if count <= 4 else round_up(count, 8)), 0,
                 "a strip is impossible")
            units = self.shapes[shape][2]
            start = round_up(end, 64)
            need(not any(self.strips_data[end:start]), start, "what fills up a strip")
            end = start + units * width // 8
            data = self.strips_data[start:end]
            need(len(data) == units * width // 8, start, "a strip lies past the end")
            check_unused(data, units, width, count, start)
            self.strips.append((self.shapes[shape], width, self.columns[column:column + count], data))
            column += count
        need(end == self.strips_len and column == self.n_columns, 0, "the strips")

    def place_fronts(self, heads):
        """For each attribute, (bits, fingerprints) of its fronts."""
        self.fronts, end = {}, 0
        for attribute, bits, buckets, zero, n, _, _ in heads:
            low = bits - buckets
            need(attribute < len(self.names) and buckets <= 32 and 1 <= low <= 56 and bits <= 64 and
                 n < 0xFFFFFFFF and not zero, 0, "a front is impossible")
            start = round_up(end, 64)
            need(not any(self.fronts_data[end:start]), start, "what fills up a front")
            middle = start + round_up((n * low + 7) // 8, 8)
            end = middle + round_up(4 << buckets, 8)
            need(end <= self.fronts_len, start, "a front lies past the end")
            packed = int.from_bytes(self.fronts_data[start:middle], "little")
            ends = struct.unpack_from("<%dI" % (1 << buckets), self.fronts_data, middle)
            need(list(ends) == sorted(ends) and ends[-1] == n and packed >> n * low == 0 and
                 not any(self.fronts_data[middle + (4 << buckets):end]), start, "a front is impossible")
            prints, first = [], 0
            for bucket, last in enumerate(ends):
                prints += [bucket << low | packed >> i * low & (1 << low) - 1
                           for i in range(first, last)]
                first = last
            need(prints == sorted(set(prints)), start, "a front that is not in order")
            self.fronts.setdefault(attribute, []).append((bits, set(prints)))
        need(end == self.fronts_len, 0, "the fronts")

    # -- asking --

    def digest(self, family, attribute, value, part=False):
        return value_digest(family, self.types[attribute], attribute, value, part)

    def keys(self, family, attribute, value, sign):
        """Lists of digests: of each list one is to be there. None: the type does not help."""
        kind, part = TYPES[self.types[attribute]], lambda text: self.digest(family, attribute, text,
                                                                            True)
        if sign == b"~" or (sign == b"" and kind == "words" and value and tokens(value)):
            if kind != "words":
                return []
            return [[part(word)] for word in tokens(value)]
        if sign == b"^":
            prefix = value[:value.rfind(b"/") + 1]
            return [[part(prefix)]] if kind == "path" and prefix else []
        if sign == b"/":
            return network_keys(value.decode(), part,
                                lambda text: self.digest(family, attribute, text))
        return [[self.digest(family, attribute, value)]]

    def within(self, attribute, value):
        """Segments with a value from low to high, LOW..HIGH."""
        low, high = (order_of(self.types[attribute], end) for end in value.split(b".."))
        return {i for i, (a, b, c, d) in enumerate(self.bounds[attribute])
                if (a, b) <= (c, d) and (a, b) <= high and low <= (c, d)}

    def relation(self, family, number, digest):
        found = {i for i, n in enumerate(self.distinct[number]) if n == UNKNOWN}
        if number in self.fronts and not any(digest[0] >> 64 - bits in prints
                                             for bits, prints in self.fronts[number]):
            return found
        for (relation, k, units, *_), width, segments, data in self.strips:
            if relation == number:
                places = family.positions(digest, 1, units, k)
                found |= {segments[i] for i in matching(data, width, len(segments), places)}
        return found - {DROPPED}

    def locate(self, family, question):
        """The segments that may have a record with these values, by name of the attribute."""
        record, mask, found = {}, 0, set(range(self.n))
        for name, value in question.items():
            sign = name[-1:] if value is not None and name[-1:] in (b"/", b"^", b"~", b":") else b""
            name = name[:len(name) - len(sign)]
            need(name in self.names, 0, "no attribute %r" % name)
            at = self.names.index(name)
            if sign == b":":
                found &= self.within(at, value)
                continue
            for keys in self.keys(family, at, value, sign):
                found &= set().union(*(self.relation(family, at, key) for key in keys))
            if not sign and (TYPES[self.types[at]] != "words" or not value or not tokens(value)):
                record[at] = self.digest(family, at, value)
                mask |= 1 << at
        for i, combo in enumerate(self.masks):
            if combo & ~mask:
                continue
            value = combo * GOLDEN & MASK
            for at in range(len(self.names)):
                if combo >> at & 1:
                    value = fold(value ^ record[at][0], VALUE_MIX ^ record[at][1])
            digest = mix(value + VALUE_A & MASK), mix(value ^ VALUE_B)
            found &= self.relation(family, len(self.names) + i, digest)
        return sorted(found)


# ---- patches -------------------------------------------------------------------------------------

class Model:
    __slots__ = ("chance", "seen")

    def __init__(self):
        self.chance, self.seen = 32768, 0

    def learn(self, bit_):
        rate = 131072 // (2 * self.seen + 3)
        if bit_:
            self.chance += (65536 - self.chance) * rate >> 16
        else:
            self.chance -= self.chance * rate >> 16
        self.seen = min(self.seen + 1, 255)


def models(n):
    return [Model() for _ in range(n)]


class Stream:
    def __init__(self, data):
        self.data, self.at, self.range, self.code = data, 0, 1 << 56, 0
        for _ in range(7):
            self.code = self.code << 8 | self.following()

    def following(self):
        self.at += 1
        need(self.at <= len(self.data) + 16, 56 + len(self.data), "the stream is too short")
        return self.data[self.at - 1] if self.at <= len(self.data) else 0

    def refill(self):
        while self.range < 1 << 48:
            self.range <<= 8
            self.code = self.code << 8 | self.following()

    def bit(self, model):
        bound = (self.range >> 16) * model.chance
        found = self.code < bound
        if found:
            self.range = bound
        else:
            self.code -= bound
            self.range -= bound
        model.learn(found)
        self.refill()
        return int(found)

    def direct(self, bits):
        value = 0
        while bits:
            some = (bits - 1) % 16 + 1
            bits -= some
            self.range >>= some
            piece = self.code // self.range
            need(piece < 1 << some, 56 + self.at, "no coder wrote this")
            self.code -= piece * self.range
            value = value << some | piece
            self.refill()
        return value

    def number(self, of):
        length = 0
        while length < 64 and self.bit(of[length]):
            length += 1
        return length if length < 2 else 1 << length - 1 | self.direct(length - 1)

    def image(self, of, old):
        new, before = bytearray(old), 0
        for i in range(0, len(old), 8):
            before = self.bit(of[before])
            for j in range(i, i + 8 if before else i):
                if self.bit(of[2]):
                    new[j] = self.direct(8)
        return bytes(new)


class Gaps:
    def __init__(self, stream, cells, n):
        self.stream, self.low = stream, 0
        while self.low < 40 and n << self.low + 1 <= cells - n:
            self.low += 1
        self.runs, self.levels = models(16), models(8)

    def gap(self, most):
        run, low = 0, 0
        while self.stream.bit(self.runs[min(run, 15)]):
            run += 1
            need(run << self.low <= most, 56 + self.stream.at, "a gap too far")
        direct = max(self.low - 8, 0)
        for level in range(self.low - direct):
            low = low << 1 | self.stream.bit(self.levels[level])
        gap = run << self.low | low << direct | self.stream.direct(direct)
        need(gap <= most, 56 + self.stream.at, "a gap too far")
        return gap


class Patch:
    def __init__(self, data):
        self.data = data
        need(data[:8] == b"TAMISPAT", 0, "no patch")
        need(len(data) >= 64, len(data), "cut short")
        version, kind, self.flags = struct.unpack_from("<III", data, 8)
        need(version == 2, 8, "format version %d" % version)
        need(struct.unpack("<Q", data[-8:])[0] == xxh3(data[:-8]), len(data) - 8, "the checksum")
        need(kind == 1 and self.flags <= 1, 12, "kind or flags")
        self.family, self.older, self.newer = data[20:24], data[24:40], data[40:56]
        self.bits_only = bool(self.flags)

    def apply(self, old):
        """Turns the filter into the newer version."""
        need(old.container.check[:4] == self.family, 20, "a patch for another family")
        need(self.bits_only or not old.bits_only, 16, "a full patch for a filter of bits only")
        need(fingerprint(old.encode(None, self.bits_only)) == self.older, 24,
             "a patch for another version")
        self.old, self.stream = old, Stream(self.data[56:-8])
        self.counted = bool(old.head["flags"] & DELETABLE) and not self.bits_only
        head = dict(old.head, pending=0, candidates=0, copies=0)
        image = self.stream.image(models(3), pack(HEAD, head))
        head = unpack(HEAD, image, 0, 56)
        check_head(head, old.hash, 56)
        vectors = self.read_vectors(head)
        lines, places = self.read_part_records(head)
        for base, v in vectors:
            self.read_changes(head, base, v)
        self.read_parts(places)
        pending = self.read_pending(vectors) if self.counted else {}
        need(self.stream.at >= len(self.stream.data), 56 + self.stream.at, "bytes are left over")
        old.head, old.vectors, old.pending = head, [v for _, v in vectors], pending
        old.lines, old.places = lines, places
        old.counted, old.bits_only = self.counted, self.bits_only
        need(fingerprint(old.encode(None, self.bits_only)) == self.newer, 40,
             "the result is not the newer version")

    def read_vectors(self, head):
        turn, base_models, record_models = Model(), models(65), models(3)
        self.records = record_models
        expected, found = 1, []
        for _ in range(head["n"]):
            which = expected if self.stream.bit(turn) else self.stream.number(base_models)
            need(which <= len(self.old.vectors), 56 + self.stream.at, "no such old vector")
            base = self.old.vectors[which - 1] if which else None
            expected = which + 1 if which else expected
            before = bytes(RECORD_LEN)
            if base:
                ones_max = base.record["ones_max"] if self.counted else NONE
                before = pack(RECORD, dict(base.record, large=0, ones_max=ones_max))
            record = unpack(RECORD, self.stream.image(record_models, before), 0, 56)
            layout = record["layout"] or head["layout"]
            need(shape_fits(layout, record["units"], record["k"], self.old.hash), 56, "the shape")
            v = Vector(record, record["units"] * (512 if layout == 2 else 1))
            need(base is None or base.m == v.m, 56, "an old vector of another shape")
            v.bits = base.bits if base else 0
            if self.counted:
                v.counters = bytearray(base.counters if base else v.m)
                v.large = dict(base.large) if base else {}
            found.append((base, v))
        self.mode, self.count, self.large = models(65), models(65), models(65)
        self.trees = [models(16) for _ in range(16)]
        return found

    def read_part_records(self, head):
        old, parts = self.old, []
        if not head["parts"]:
            return None, {}
        before = pack(LINES, old.lines) if old.lines else bytes(16)
        lines = unpack(LINES, self.stream.image(self.records, before), 0, 56)
        place = 0
        for _ in range(head["parts"]):
            base = old.places.get(place)
            before = pack(PART, base.record) if base else bytes(64)
            parts.append(Part(unpack(PART, self.stream.image(self.records, before), 0, 56), 56))
            place += 512 >> parts[-1].record["depth"]
        return lines, placed(parts, 56)

    def read_parts(self, places):
        gaps, images = (models(65), models(65)), (models(3), models(3))
        for place, part in places.items():
            base, pieces = self.old.places.get(place), []
            for piece, length in enumerate(part.lengths()):
                same = base and base.lengths()[0] == part.lengths()[0] and \
                    base.width == part.width and base.lengths()[piece] == length
                data = bytearray(base.pieces[piece] if same else length)
                unit, words, at = 8 if piece else 64, 1 if piece else 0, 0
                while at < length:
                    at += unit * self.stream.number(gaps[words])
                    need(at <= length, 56 + self.stream.at, "a gap too far")
                    if at < length:
                        data[at:at + unit] = self.stream.image(images[words], data[at:at + unit])
                        at += unit
                pieces.append(data)
            part.take(pieces)
            part.check()

    def read_changes(self, head, _base, v):
        mode = self.stream.number(self.mode)
        need(mode <= 2 and not (mode == 2 and self.counted), 56 + self.stream.at, "mode")
        if mode == 2:
            for at in range(0, v.m, 64):
                v.bits ^= self.stream.direct(min(64, v.m - at)) << at
        if mode != 1:
            return
        changed = self.stream.number(self.count) + 1
        blocked = (v.record["layout"] or head["layout"]) == 2
        touched = self.stream.number(self.count) + 1 if blocked else 0
        positions = self.in_blocks(v, changed, touched) if blocked else self.spread(v, changed)
        for at in positions:
            if self.counted:
                self.read_value(v, at)
            else:
                v.bits ^= 1 << at

    def spread(self, v, changed):
        gaps, at = Gaps(self.stream, v.m, changed), -1
        for _ in range(changed):
            need(at + 1 < v.m, 56 + self.stream.at, "too many changes")
            at += 1 + gaps.gap(v.m - at - 2)
            yield at

    def in_blocks(self, v, changed, touched):
        need(touched <= v.m // 512 and changed <= 512 * touched, 56 + self.stream.at, "counts")
        cells = Gaps(self.stream, 512 * touched, changed)
        blocks = Gaps(self.stream, v.m // 512, touched)
        cell, block, number = -1, -1, -1
        for _ in range(changed):
            cell += 1 + cells.gap(512 * (number + 2) - 2 - cell)
            if cell // 512 > number:
                number += 1
                need(block + 1 < v.m // 512, 56 + self.stream.at, "too many blocks")
                block += 1 + blocks.gap(v.m // 512 - block - 2)
            yield 512 * block + cell % 512

    def read_value(self, v, at):
        tree, node = self.trees[v.counters[at]], 1
        for _ in range(4):
            node = 2 * node + self.stream.bit(tree[node])
        value = node - 16
        v.large.pop(at, None)
        if value == 15:
            v.large[at] = 15 + self.stream.number(self.large)
        v.counters[at] = value
        v.bits = v.bits | 1 << at if value else v.bits & ~(1 << at)

    def read_pending(self, vectors):
        kept, numbers, found = Model(), models(65), {}
        ids = [v.record["id"] for _, v in vectors]
        for digest, (copies, hides, candidates) in sorted(self.old.pending.items()):
            if self.stream.bit(kept):
                found[digest] = (copies, hides, tuple(x for x in candidates if x in ids))
        for _ in range(self.stream.number(numbers)):
            digest = self.stream.direct(64), self.stream.direct(64)
            copies = self.stream.number(numbers) + 1
            hides = self.stream.direct(1)
            mine, at = [], -1
            for _ in range(self.stream.number(numbers) + 1):
                at += 1 + self.stream.number(numbers)
                need(at < len(ids), 56 + self.stream.at, "no such candidate")
                mine.append(ids[at])
            found[digest] = (copies, hides, tuple(mine))
        return found


# ---- the program ---------------------------------------------------------------------------------

# ---- messages ------------------------------------------------------------------------------------

SNAPSHOT, DELTA, HEARTBEAT, FAREWELL = 1, 2, 3, 4


class Message:
    MAGIC = b"TMSG"

    def __init__(self, data, key=None):
        need(data[:4] == self.MAGIC and len(data) >= 16, 0, "no message")
        need(data[4] == 1, 4, "version %d of messages" % data[4])
        need(data[6] <= 1, 6, "unknown flags")
        self.sealed = data[6] == 1
        end = len(data) - 8 - 16 * self.sealed
        need(end > 8 and xxh3(data[:end]) == struct.unpack_from("<Q", data, end)[0], end, "checksum")
        if key is not None:
            made = hashlib.blake2b(b"tamis message\0", key=key, digest_size=32).digest()
            mac = hashlib.blake2b(data[:-16], key=made, digest_size=16).digest()
            need(self.sealed and mac == data[-16:], len(data), "the seal")
        self.data, self.at = data[:end], 8
        self.body = b = {"type": data[5]}
        need(1 <= b["type"] <= 4 and data[7], 5, "type %d" % b["type"])
        carries = b["type"] in (SNAPSHOT, DELTA)
        b["family"], b["epoch"], b["time"] = self.take("<IQQ")
        b["version"] = self.number()
        for name in ("own", "positive", "disagree", "member_miss"):
            b[name] = self.take("<f")[0]
            need(0 <= b[name] <= 1, self.at, name)
        for name in ("set", "cleared", "missed"):
            b[name] = self.number()
        b["part"], b["parts"], b["whole_len"], b["whole_sum"] = 0, 1, 0, 0
        if carries:
            for name in ("part", "parts", "whole_len"):
                b[name] = self.number()
            b["whole_sum"] = self.take("<Q")[0]
        b["older"] = self.number() if b["type"] == DELTA else 0
        if b["type"] == SNAPSHOT:
            b["beat"] = self.number()
            for name in ("target_miss", "target_rate", "w_positive", "w_disagree", "target_dirty"):
                b[name] = self.take("<d")[0]
            b["target_age"] = self.number()
            need(b["beat"] <= 1 << 60, self.at, "the beat")
            need(b["w_positive"] >= 0 and b["w_disagree"] >= 0, self.at, "weights")
        self.owner = self.take("%ds" % data[7])[0]
        need(0 not in self.owner, self.at, "the name")
        self.part = self.data[self.at:]
        need(b["epoch"] > 0 and b["version"] > 0, 12, "versions")
        need(b["type"] != DELTA or 0 < b["older"] < b["version"], self.at, "the version to start from")
        need(b["part"] < b["parts"], self.at, "parts")
        need(carries == (len(self.part) > 0) and len(self.part) <= b["whole_len"] and
             (b["parts"] == 1) == (len(self.part) == b["whole_len"]), self.at,
             "the length of the whole")

    def take(self, form):
        need(self.at + struct.calcsize(form) <= len(self.data), self.at, "cut short")
        values = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return values

    def number(self):
        value, shift, byte = 0, 0, 128
        while byte & 128:
            byte = self.take("<B")[0]
            need(shift < 64 and not (shift and byte == 0), self.at, "a number is too long")
            value |= (byte & 127) << shift
            shift += 7
        need(value < 1 << 64, self.at, "a number is too long")
        return value


class Follower:
    """The copy that messages make, taken in order."""

    def __init__(self):
        self.copy, self.epoch, self.version, self.parts = None, 0, 0, []

    def take(self, message):
        b = message.body
        if b["type"] not in (SNAPSHOT, DELTA) or (b["epoch"], b["version"]) <= (self.epoch,
                                                                               self.version):
            return
        if b["type"] == DELTA:
            need((b["epoch"], b["older"]) == (self.epoch, self.version), 152, "something is missing")
        need(b["part"] == len(self.parts), 136, "a part is missing")
        self.parts.append(message.part)
        if len(self.parts) < b["parts"]:
            return
        whole, self.parts = b"".join(self.parts), []
        need(len(whole) == b["whole_len"] and xxh3(whole) == b["whole_sum"], 192, "the whole")
        if b["type"] == SNAPSHOT:
            self.copy = Filter(Container(whole))
            need(self.copy.bits_only, 0, "a snapshot has bits only")
        else:
            Patch(whole).apply(self.copy)
        need(struct.unpack_from("<I", self.copy.container.check)[0] == b["family"], 8, "another family")
        self.epoch, self.version = b["epoch"], b["version"]

    def encode(self):
        c = self.copy.container
        return self.copy.encode(c.key if c.has_key else None, True)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def open_filter(path):
    return Filter(Container(read(path)))


# ---- inputs of a catalog -------------------------------------------------------------------------

class Cursor:
    """The numbers, strings and places of a note or a tag."""

    def __init__(self, data):
        self.data, self.at = bytes(data), 0

    def raw(self, length):
        need(length <= len(self.data) - self.at, self.at, "the table of inputs ends early")
        self.at += length
        return self.data[self.at - length:self.at]

    def byte(self):
        return self.raw(1)[0]

    def number(self):
        value = 0
        for shift in range(0, 70, 7):
            byte = self.byte()
            value |= (byte & 127) << shift
            if byte < 128:
                need(value < 1 << 64, self.at, "a number")
                return value
        raise Bad(self.at, "a number")

    def string(self):
        text = self.raw(self.number())
        need(self.byte() == 0 and 0 not in text, self.at, "a string")
        return text

    def place(self):
        place = {"offset": self.number(), "length": self.number(), "line": self.number(), "skip": 0,
                 "restart": b""}
        how = self.byte()
        need(how < 128, self.at, "a place")
        place["at"], place["at_len"] = place["offset"], place["length"]
        if how & 1:
            place["at"], place["at_len"], place["skip"] = self.number(), self.number(), self.number()
        if how & 2:
            place["restart"] = self.raw(self.number())
        if how & 4:
            place["before"] = struct.unpack("<q", self.raw(8))[0], self.number()
        if how & 8:
            place["reference"] = struct.unpack("<q", self.raw(8))[0]
        if how & 16:
            place["header"] = self.raw(self.number())
        place["turns"] = bool(how & 32)
        place["lined"] = bool(how & 64)
        need(place["skip"] <= place["offset"], self.at, "a place")
        return place


def inputs_of(catalog):
    """(head, roots, entries by id, parts of each segment) of a catalog made by tamis index."""
    c = Cursor(catalog.note)
    need(c.byte() == 4, 0, "the version of the table of inputs")
    head = {"format": c.byte(), "delimiter": c.byte(), "headless": c.byte(),
            "flags": c.byte(), "records": c.string(), "pattern": c.string(),
            "time": c.string(), "zone": c.string(), "segment": c.number(), "next_id": c.number()}
    roots = []
    for _ in range(c.number()):
        folder = c.byte()
        roots.append((c.string(), folder == 1))
    head["rules"] = []
    for _ in range(c.number()):
        kind = c.byte()
        need(1 <= kind <= 3, c.at, "a rule")
        head["rules"].append((("include", "exclude", "append-only")[kind - 1], c.string()))
    head["fields"] = []
    for _ in range(c.number()):
        type_ = c.byte()
        need(type_ < len(TYPES) and head["flags"] < 4, c.at, "a field")
        head["fields"].append((c.string(), TYPES[type_]))
    entries = {}
    for _ in range(c.number()):
        e = {"id": c.number(), "root": c.number(), "path": c.string()}
        flags = c.byte()
        e.update(format=c.byte(), delimiter=c.byte())
        if e["format"] == 4:
            e["records"] = c.string()
        e["time"] = c.string()
        e.update(damaged=bool(flags & 2), unread=bool(flags & 4), racy=bool(flags & 8),
                 unknown=bool(flags & 32), device=c.number(), inode=c.number(),
                 size=c.number(), mtime=struct.unpack("<q", c.raw(8))[0],
                 ctime=struct.unpack("<q", c.raw(8))[0], passed=None, sums=())
        if flags & 16:
            e["passed"] = c.string()
        elif not flags & 4:
            n = -(-e["size"] // 2 ** 20)
            e["sums"] = struct.unpack("<%dQ" % n, c.raw(8 * n))
        e.update(text=c.number(), records=c.number(), unfit=c.number(), bad=c.number())
        if flags & 1:
            e["resume"] = c.place()
            e["open"] = (c.number(), c.number(), c.number())
        need(e["root"] < len(roots) and e["id"] < head["next_id"] and e["id"] not in entries, c.at,
             "an entry")
        entries[e["id"]] = e
    need(c.at == len(c.data), c.at, "the end of the table of inputs")
    segments = []
    for tag in catalog.tags:
        c, parts = Cursor(tag), []
        while c.at < len(c.data):
            part = {"id": c.number(), "records": c.number(), "unfit": c.number(), "bad": c.number()}
            part.update(c.place())
            parts.append(part)
        segments.append(parts)
    return head, roots, entries, segments


def structure_of(data):
    container = Container(data)
    return {2: Records, 4: Catalog}.get(container.kind, Filter)(container)


def open_structure(path):
    return structure_of(read(path))


def describe_catalog(x, length):
    return {
        "kind": "catalog", "hash": ["", "xxh3", "sip", "h3"][x.container.hash], "bytes": length,
        "has_key": bool(x.container.has_key), "verifier": VERIFIERS[x.verifier], "fpp": x.fpp,
        "attributes": [{"name": name.decode(errors="replace"), "type": TYPES[type_]}
                       for name, type_ in zip(x.names, x.types)],
        "combos": ["+".join(name.decode(errors="replace") for i, name in enumerate(x.names)
                            if mask >> i & 1) for mask in x.masks],
        "segments": x.n, "records": sum(x.records), "strips": len(x.strips)}


def describe_records(x, length):
    copies = sum(p[0] for p in x.pending.values())
    return {
        "kind": "records", "growth": GROWTHS[x.head["growth"]],
        "layout": ["", "spread", "blocked"][x.head["layout"]],
        "hash": ["", "xxh3", "sip", "h3"][x.hash], "bytes": length,
        "has_key": bool(x.container.has_key), "bits_only": x.bits_only,
        "deletable": bool(x.head["flags"] & DELETABLE), "verifier": VERIFIERS[x.verifier],
        "attributes": [{"name": name.decode(errors="replace"), "type": TYPES[type_]}
                       for name, type_ in zip(x.names, x.types)],
        "combos": ["+".join(name.decode(errors="replace") for i, name in enumerate(x.names)
                            if mask >> i & 1) for mask in x.masks[1:]],
        "records": x.head["stored"] - copies, "pending": copies, "fpp": x.head["fpp"],
        "layers": [{"id": layer["id"], "records": layer["count"], "capacity": layer["capacity"]}
                   for layer in x.layers]}


def describe(path):
    data = read(path)
    if data[:8] == b"TAMISPAT":
        patch = Patch(data)
        return {"kind": "patch", "bytes": len(data), "bits_only": patch.bits_only,
                "older": patch.older.hex(), "newer": patch.newer.hex()}
    if data[:4] == Message.MAGIC:
        message = Message(data)
        return dict(message.body, kind="message", bytes=len(data),
                    owner=message.owner.decode(errors="replace"))
    f = open_structure(path)
    for kind, describe_it in ((Records, describe_records), (Catalog, describe_catalog)):
        if isinstance(f, kind):
            return describe_it(f, len(data))
    flags = f.head["flags"]
    copies = sum(p[0] for p in f.pending.values())
    return {
        "kind": "filter", "growth": GROWTHS[f.head["growth"]],
        "layout": ["", "spread", "blocked"][f.head["layout"]],
        "hash": ["", "xxh3", "sip", "h3"][f.hash], "bytes": len(data),
        "has_key": bool(f.container.has_key), "bits_only": f.bits_only,
        "deletable": bool(flags & DELETABLE), "unique": bool(flags & UNIQUE),
        "items": f.head["stored"] - copies, "pending": copies, "fpp": f.head["fpp"],
        "vectors": [{"id": v.record["id"], "bits": v.m, "hashes": v.record["k"],
                     "items": v.record["count"], "ones": v.bits.bit_count(),
                     "capacity": v.record["capacity"]} for v in f.vectors]}


def check(path, keys, key):
    f = open_structure(path)
    family = f.family(key)
    if not keys:
        keys = sys.stdin.buffer.read().split(b"\n")
        keys = keys[:-1] if keys[-1] == b"" else keys
    found = False
    for one in keys:
        asked = question_of(one) if isinstance(f, (Records, Catalog)) else one
        here = bool(f.locate(family, asked)) if hasattr(f, "locate") else f.has(family, asked)
        found |= here
        sys.stdout.buffer.write((b"maybe " if here else b"no ") + one + b"\n")
    return 0 if found else 1


def main(arguments):
    key, words = None, []
    while arguments:
        word = arguments.pop(0)
        if word == "--key-file" and arguments:
            key = read(arguments.pop(0))
            need(len(key) == 16, 0, "a family key has 16 bytes")
        else:
            words.append(word)
    if len(words) == 2 and words[0] == "info":
        print(json.dumps(describe(words[1]), indent=1))
        return 0
    if len(words) >= 2 and words[0] == "check":
        return check(words[1], [os.fsencode(word) for word in words[2:]], key)
    if len(words) == 4 and words[0] == "apply":
        f, patch = open_filter(words[1]), Patch(read(words[2]))
        patch.apply(f)
        kept = f.container.key if f.container.has_key else None
        with open(words[3], "wb") as file:
            file.write(f.encode(kept, patch.bits_only))
        return 0
    if len(words) >= 3 and words[0] == "follow":
        follower = Follower()
        for path in words[2:]:
            follower.take(Message(read(path)))
        need(follower.copy, 0, "there was no snapshot")
        with open(words[1], "wb") as file:
            file.write(follower.encode())
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (Bad, OSError) as error:
        print("decode.py: %s" % error, file=sys.stderr)
        sys.exit(2)
