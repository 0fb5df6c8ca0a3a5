#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a recording by docs/RECORDING.md alone, sharing nothing with the program: read_recording.py FILE [--collapsed | --columns].

Prints what is in it; --collapsed: its stacks as the program writes them, unsorted; --columns: how many bytes each column has, packed each by
itself. Packed blocks need the system's libzstd."""
import collections
import ctypes
import ctypes.util
import struct
import sys
import zlib

MAGIC = b"\x89SMPL\r\n\x1a"


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


class Buffer(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t), ("pos", ctypes.c_size_t)]


class Unpacker:
    """One zstd stream for the packed bytes of all blocks."""

    def __init__(self):
        self.lib = ctypes.CDLL(ctypes.util.find_library("zstd"))
        self.lib.ZSTD_createDStream.restype = ctypes.c_void_p
        self.lib.ZSTD_decompressStream.restype = ctypes.c_size_t
        self.lib.ZSTD_decompressStream.argtypes = [ctypes.c_void_p, ctypes.POINTER(Buffer), ctypes.POINTER(Buffer)]
        self.stream = self.lib.ZSTD_createDStream()

    def unpack(self, data, size):
        source, target = ctypes.create_string_buffer(data, len(data)), ctypes.create_string_buffer(size)
        given = Buffer(ctypes.cast(source, ctypes.c_void_p), len(data), 0)
        made = Buffer(ctypes.cast(target, ctypes.c_void_p), size, 0)
        while given.pos < given.size:
            if self.lib.ZSTD_isError(self.lib.ZSTD_decompressStream(self.stream, made, given)):
                raise ValueError("the packed data is damaged")
        return target.raw[: made.pos]


class Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def more(self):
        return self.at < len(self.data)

    def take(self, count):
        self.at += count
        return self.data[self.at - count : self.at]

    def u(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def s(self):
        value = self.u()
        return value >> 1 ^ -(value & 1)

    def text(self):
        return self.take(self.u()).decode("utf-8")


def blocks(data):
    """(number, offset, columns) of each whole block; what is cut off or damaged ends it."""
    if data[:8] != MAGIC or crc32c(data[:12]) != struct.unpack("<I", data[12:16])[0]:
        raise ValueError("not a recording")
    at, number, unpacker = 16, 0, None
    while at + 12 <= len(data):
        kind, flags, _, size, crc = struct.unpack("<BBHII", data[at : at + 12])
        body = data[at + 12 : at + 12 + size]
        if len(body) < size:
            return
        if crc32c(data[at : at + 8] + body) != crc:
            raise ValueError("block %d at byte %d is damaged" % (number + 1, at))
        number += 1
        if kind == 1:
            if flags & 1:
                unpacker = unpacker or Unpacker()
                body = unpacker.unpack(body[4:], struct.unpack("<I", body[:4])[0])
            body = Bytes(body)
            sizes = [body.u() for _ in range(3)]
            yield number, at, [Bytes(body.take(size)) for size in sizes]
        at += 12 + size


class Thread:
    def __init__(self, number):
        self.next, self.stack, self.status, self.has_run, self.last, self.due = number, 0, 0, False, 0, 0
        self.name, self.tid, self.interpreter, self.target, self.excluded = "", 0, 0, 0, False
        self.counts = collections.Counter()
        self.weight_ns = 0


class Recording:
    def __init__(self, data):
        self.session = self.clock_ns = self.tally = None
        self.targets, self.threads, self.all_threads, self.facts, self.marks = {}, {}, [], {}, []
        self.ended = False
        self.first = self.last_thread = self.runs = 0
        self.ticks = [0] * 256
        self.reset()
        for _, _, (items, stacks, times) in blocks(data):
            while items.more():
                tag = items.take(1)[0]
                if tag & 0x80:
                    self.run(tag, items, stacks, times)
                else:
                    self.item(tag, Bytes(items.take(items.u())))

    def reset(self):
        self.symbols, self.files, self.stacks, self.last_symbol = [], [], [()], 0
        for thread in self.threads.values():
            thread.stack = 0

    def item(self, kind, body):
        if kind == 1:
            self.session = dict(zip(("unit_ns", "interval_ns", "interval", "mode"), (body.u(), body.u(), body.u(), body.u())))
            self.session["realtime_offset_ns"] = body.s()
        elif kind == 2:
            special, _, first_line, name, file = body.u(), body.u(), body.u(), body.text(), body.u()
            if file == 0:
                self.files.append(body.text())
            self.symbols.append((name or "<unknown>", self.files[file - 1], first_line, special))
        elif kind == 3:
            parent = len(self.stacks) - body.u()
            self.last_symbol += body.s()
            symbol = self.symbols[self.last_symbol - 1]
            self.stacks.append((parent, symbol, symbol[2] + body.s()))
        elif kind == 4:
            number, event, t_ns, pid = body.u(), body.u(), body.u(), body.u()
            body.u(), body.u(), body.u()
            name = body.text()
            self.targets[number] = (pid, name or self.targets.get(number, (0, ""))[1], event, t_ns)
        elif kind == 5:
            number, flags = body.u(), body.u()
            if flags & 8:
                self.threads[number] = Thread(number)
                self.all_threads.append(self.threads[number])
            thread = self.threads[number]
            thread.target, thread.interpreter, thread.tid = body.u(), body.s(), body.u()
            body.u()
            thread.name = body.text() or thread.name
        elif kind == 6:
            target, count = body.u(), body.u()
            before = self.facts.get(target, [0] * count)
            self.facts[target] = [value + body.s() for value in before]
        elif kind == 7:
            count = body.u()
            self.tally = [value + body.s() for value in self.tally or [0] * count]
        elif kind == 8:
            self.clock_ns = body.u()
        elif kind == 9:
            self.marks.append((body.u(), body.u()))
        elif kind == 10:
            self.threads[body.u()].weight_ns += body.s()
        elif kind == 11:
            self.reset()
        elif kind == 12:
            self.ended = True

    def expect(self, due):
        interval, due = self.session["interval"], due >> 4
        if interval == 0 or due < 0:
            return due
        known = [self.ticks[(due // interval + k) % 256] for k in (-1, 0, 1)]
        nearest = min(known, key=lambda t: abs(t - due))
        return nearest if abs(nearest - due) <= interval // 2 else due

    def observe(self, due, t):
        off, interval = t * 16 - due, self.session["interval"]
        if interval and t >= 0:
            self.ticks[t // interval % 256] = t
        return t * 16 if abs(off) > interval * 8 else due + (off >> 3)

    def run(self, tag, items, stacks, times):
        interval = self.session["interval"]
        number = items.u() if tag & 0x40 else self.threads[self.last_thread].next
        thread = self.threads[number]
        if tag & 0x10:
            thread.status = items.u()
        count = items.u() + 2 if tag & 0x08 else 1
        if tag & 0x20:
            thread.stack = stacks.u()
        due = thread.due + interval * 16 if thread.has_run else self.first * 16
        first = self.first if tag & 0x02 else self.expect(due) + times.s()
        due, last = self.observe(due, first), first
        if tag & 0x08:
            due += (count - 1) * interval * 16
            last = self.expect(due) + times.s()
            due = self.observe(due, last)
        weight = last - thread.last if thread.has_run else count * interval
        if tag & 0x04:
            weight += times.s()
        thread.due, thread.last, thread.has_run = due, last, True
        if self.last_thread in self.threads:
            self.threads[self.last_thread].next = number
        self.last_thread, self.first = number, first
        thread.counts[self.frames(thread.stack)] += count
        thread.weight_ns += weight * self.session["unit_ns"]
        self.runs += 1

    def frames(self, stack):
        frames = []
        while stack:
            parent, symbol, line = self.stacks[stack]
            frames.append((symbol, line))
            stack = parent
        return tuple(reversed(frames))


def clean(text):
    return text.replace(";", ":").replace("\n", " ").replace("\r", " ")


def collapsed(recording):
    lines = collections.Counter()
    for thread in recording.all_threads:
        head = ["process %d \"%s\"" % recording.targets[thread.target][:2]] if len(recording.targets) > 1 else []
        head += ["interpreter %d" % thread.interpreter] if thread.interpreter else []
        head.append("thread %s%s" % (thread.tid or "?", " \"%s\"" % thread.name if thread.name else ""))
        for frames, count in thread.counts.items():
            shown = [name if special else "%s (%s:%d)" % (name, file, line) for (name, file, _, special), line in frames]
            lines[";".join(clean(part) for part in head + shown)] += count
    return lines


def main():
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    if sys.argv[2:] == ["--columns"]:
        columns = [b"", b"", b""]
        for _, _, parts in blocks(data):
            columns = [whole + part.data for whole, part in zip(columns, parts)]
        for name, column in zip(("items", "stacks", "times"), columns):
            print("%-7s %9d bytes, %9d deflated" % (name, len(column), len(zlib.compress(column, 9))))
        return
    recording = Recording(data)
    if sys.argv[2:] == ["--collapsed"]:
        for line, count in collapsed(recording).items():
            print(line, count)
        return
    print("session", recording.session, "ended" if recording.ended else "cut off")
    print("%d targets, %d threads, %d runs, %d samples, %d marks" % (
        len(recording.targets), len(recording.all_threads), recording.runs,
        sum(sum(thread.counts.values()) for thread in recording.all_threads), len(recording.marks)))
    print("tally", recording.tally)


if __name__ == "__main__":
    main()
