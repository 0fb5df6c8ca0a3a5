#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a recording by docs/RECORDING.md alone, sharing nothing with the program: read_recording.py FILE [--collapsed | --cpu | --columns].

Prints what is in it; --collapsed: its stacks as the program writes them, unsorted; --cpu: so, too, with their nanoseconds on a CPU and waiting
for one instead of samples; --columns: how many bytes each column has, packed each by itself. Packed blocks need the system's libzstd."""
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


# What samples did, for CPU time.
OTHER, BLOCKED, HELD, WAITED, RAN = range(5)

# kind: 0 Python, 1 native, 2 special. Of a mapping, whose lines are places, first_line is 0, and mapping is as in the recording's MAPPING.
Symbol = collections.namedtuple("Symbol", "name file first_line kind module mapping")


class Thread:
    def __init__(self, number):
        self.next, self.stack, self.status, self.has_run, self.last, self.due = number, 0, 0, False, 0, 0
        self.name, self.tid, self.interpreter, self.target, self.excluded = "", 0, 0, 0, False
        self.counts = collections.Counter()
        self.weight_ns = 0
        self.cpu, self.wait = collections.Counter(), collections.Counter()
        self.parts, self.latest, self.told = [], None, [0, 0]
        self.alone, self.owed = [0, 0, 0], 0

    def spread(self, frames, weight_ns):
        """Notes samples for the next TIME."""
        waits = self.status & 4
        rank = (WAITED if waits else RAN) if self.status & 1 else HELD if self.status & 2 else BLOCKED if waits else OTHER
        self.latest = frames
        self.parts.append((rank, frames, weight_ns))

    def weight_of(self, *ranks):
        return sum(weight for which, _, weight in self.parts if which in ranks)

    def share(self, left, ranks, whole):
        """Gives the runs of these ranks their parts of [cpu, wait]; takes them off what is left."""
        all_of, upto, given = self.weight_of(*ranks), 0, [0, 0]
        for which_rank, frames, part in self.parts if all_of else []:
            if which_rank not in ranks:
                continue
            upto += part
            for which, counter in enumerate((self.cpu, self.wait)):
                now = whole[which] * upto // all_of
                counter[frames] += now - given[which]
                given[which] = now
        return [left[which] - given[which] for which in range(2)]

    def part_of_waiting(self, cpu_ns, wait_ns):
        ran, waited = self.weight_of(RAN), self.weight_of(WAITED)
        part = min(waited, max(0, cpu_ns - ran - self.owed))
        parts = [part, min(waited - part, wait_ns)]
        self.owed = min(max(0, ran + self.owed - (cpu_ns - part)), 10_000_000)
        if self.alone[2]:
            waited += self.weight_of(BLOCKED)
            parts = [min(waited, waited * alone // self.alone[2], most) for alone, most in zip(self.alone, (cpu_ns, wait_ns))]
        return parts

    def time(self, cpu_ns, wait_ns):
        left = [self.told[0] + cpu_ns, self.told[1] + wait_ns]
        best = max((rank for rank, _, _ in self.parts), default=OTHER)
        waited = self.weight_of(WAITED, BLOCKED)
        if best == RAN:
            left = self.share(left, [WAITED if self.weight_of(WAITED) else BLOCKED], self.part_of_waiting(*left))
        elif best != HELD and waited:
            self.alone = [old - old // 16 + new for old, new in zip(self.alone, left + [waited])]
        self.told = self.share(left, [best] if best > BLOCKED else [OTHER, BLOCKED], left)
        if self.latest is not None:
            self.cpu[self.latest] += self.told[0]
            self.wait[self.latest] += self.told[1]
            self.told = [0, 0]
        self.parts = []


class Recording:
    def __init__(self, data):
        self.session = self.clock_ns = self.tally = None
        self.targets, self.threads, self.all_threads, self.facts, self.marks = {}, {}, [], {}, []
        self.mappings, self.named_frames, self.names = [], [], {}
        self.ended = False
        self.first = self.last_thread = self.runs = 0
        self.ticks = [0] * 256
        self.version = struct.unpack_from("<H", data, 8)[0]
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
            kind_of, flags, first_line, name, file = body.u(), body.u(), body.u(), body.text(), body.u()
            if file == 0:
                self.files.append(body.text())
            symbol = Symbol(name or "<unknown>", self.files[file - 1], first_line, kind_of, "", None)
            if kind_of == 1 and body.more():
                if body.u():
                    key, _, _, build_id = body.u(), body.u(), body.u(), body.text()
                    symbol = symbol._replace(mapping=(flags, key, name, symbol.file, build_id), module=symbol.file)
                else:
                    symbol = symbol._replace(module=body.text())
            self.symbols.append(symbol)
        elif kind == 3:
            parent = len(self.stacks) - body.u()
            self.last_symbol += body.s()
            symbol = self.symbols[self.last_symbol - 1]
            self.stacks.append((parent, symbol, symbol.first_line + body.s()))
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
        elif kind == 13:
            self.mappings.append((body.u(), body.u(), body.text(), body.text(), body.text()))
        elif kind == 14:
            self.named_frames.append((body.u(), body.u(), body.text(), body.text(), body.text(), body.text()))
        elif kind == 15:
            mapping, place, count = self.mappings[body.u() - 1], body.u(), body.u()
            self.names.setdefault((mapping, place), [(self.named_frames[body.u() - 1], body.u()) for _ in range(count)])
        elif kind == 16:
            self.threads[body.u()].time(body.u(), body.u())
        elif kind == 17:
            thread, frames = self.threads[body.u()], self.frames(body.u())
            thread.cpu[frames] += body.u()
            thread.wait[frames] += body.u()

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
        even = not thread.has_run or (self.version > 1 and interval)
        weight = count * interval if even else last - thread.last
        if tag & 0x04:
            weight += times.s()
        thread.due, thread.last, thread.has_run = due, last, True
        if self.last_thread in self.threads:
            self.threads[self.last_thread].next = number
        self.last_thread, self.first = number, first
        frames = self.frames(thread.stack)
        thread.counts[frames] += count
        thread.weight_ns += weight * self.session["unit_ns"]
        thread.spread(frames, weight * self.session["unit_ns"])
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


def frame_text(name, file, line, kind, module):
    if kind == 1 and module and not file:
        return name if "+0x" in name else "%s (%s)" % (name, module.rpartition("/")[2])
    if kind == 2 or not file:
        return name
    return "%s (%s)" % (name, file) if module and not line else "%s (%s:%d)" % (name, file, line)


def shown(recording, frames):
    """The texts of frames, places by their names."""
    texts = []
    for symbol, line in frames:
        if symbol.mapping is None:
            texts.append(frame_text(symbol.name, symbol.file, line, symbol.kind, symbol.module))
        elif (symbol.mapping, line) not in recording.names:
            texts.append("%s+0x%x" % (symbol.name, line))
        else:
            for (kind, _, name, file, module, _), at in recording.names[symbol.mapping, line]:
                texts.append(frame_text(name, file, at, kind, module))
    return texts


def collapsed(recording, values):
    """{stack: number}; values(thread) is {frames: number}."""
    lines = collections.Counter()
    for thread in recording.all_threads:
        head = ["process %d \"%s\"" % recording.targets[thread.target][:2]] if len(recording.targets) > 1 else []
        head += ["interpreter %d" % thread.interpreter] if thread.interpreter else []
        head.append("thread %s%s" % (thread.tid or "?", " \"%s\"" % thread.name if thread.name else ""))
        for frames, count in values(thread).items():
            lines[";".join(clean(part) for part in head + shown(recording, frames))] += count
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
        for line, count in collapsed(recording, lambda thread: thread.counts).items():
            print(line, count)
        return
    if sys.argv[2:] == ["--cpu"]:
        cpu, wait = collapsed(recording, lambda thread: thread.cpu), collapsed(recording, lambda thread: thread.wait)
        for line in sorted({*cpu, *wait}):
            print(line, cpu[line], wait[line])
        return
    print("session", recording.session, "ended" if recording.ended else "cut off")
    print("%d targets, %d threads, %d runs, %d samples, %d marks" % (
        len(recording.targets), len(recording.all_threads), recording.runs,
        sum(sum(thread.counts.values()) for thread in recording.all_threads), len(recording.marks)))
    print("tally", recording.tally)


if __name__ == "__main__":
    main()
