# SPDX-License-Identifier: Apache-2.0
"""Makes a database as the Ascend PyTorch profiler (torch_npu) writes it: make_ascend.py OUT [CALLS]. Nested calls in several threads
of two processes, and what real files have too: steps of the profiler, calls without times, backwards, overlapping, without a name.
The same number gives the same calls."""
import random
import sqlite3
import sys

SCHEMA = """
CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE ENUM_API_TYPE (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE CONNECTION_IDS (id INTEGER, connectionId INTEGER);
CREATE TABLE PYTORCH_API (startNs TEXT, endNs TEXT, globalTid INTEGER, connectionId INTEGER, name INTEGER, sequenceNumber INTEGER,
    fwdThreadId INTEGER, inputDtypes INTEGER, inputShapes INTEGER, callchainId INTEGER, type INTEGER);
INSERT INTO ENUM_API_TYPE VALUES (50001, 'op'), (50002, 'queue'), (50003, 'mstx'), (50004, 'python_trace');
"""
NAMES = (
    ["ProfilerStep#%d" % step for step in range(20)]
    + ["aten::%s" % op for op in ("matmul", "add_", "linear", "layer_norm", "softmax", "copy_", "empty", "to", "view", "cat")]
    + ["torch/nn/modules/module.py(%d): _call_impl" % line for line in (1501, 1518, 1527)]
    + ["train.py(%d): %s" % (line, name) for line, name in ((12, "main"), (40, "epoch"), (77, "batch"), (99, "forward"))]
    + ["aclnnMatmul", "aclnnAddmm", "AscendCL@aclrtMemcpyAsync", "hcclAllReduce", "Dequeue@Mul", "Enqueue", "nn.Module: Net_0"]
    + ["<built-in method </script><script> of type object>", "tab\tand\nnewline", "\u51fd\u6570", ""]
)
SHAPES = 5000  # other strings, which no call has as its name
THREADS = [(4711, 4711), (4711, 4712), (4711, 4790), (4999, 4999), (4999, 5002), (4999, 5003)]
EPOCH_NS = 1_700_000_000_000_000_000
BAD_EVERY = 500  # one call in so many is bad in some way


def thread_rows(random_, count, pid, tid):
    """(start, end, globalTid, name id), in the order of their ends, as a profiler writes them."""
    made, now, open_calls = 0, EPOCH_NS + random_.randrange(10**6), []
    steps = sum(name.startswith("ProfilerStep") for name in NAMES)
    tid = pid << 32 | tid
    while made < count:
        now += 1 + int(3000 * random_.random())
        if open_calls and (len(open_calls) > 30 or random_.random() < 0.48):
            start, name = open_calls.pop()
        else:
            depth = len(open_calls)
            # As in a training loop, the deeper the call the less there is to choose from.
            choice = int(random_.random() * (len(NAMES) - steps if depth < 3 else 3 if depth < 6 else 1))
            open_calls.append((now, steps + (7 * depth + choice) % (len(NAMES) - steps)))
            continue
        made += 1
        end = now
        if made % BAD_EVERY == 0:
            kind = random_.randrange(7)
            start, end, name = [
                (start, None, name),
                (None, end, name),
                (end, start, name),
                (start, start, name),
                (start, end + 20000, name),  # it ends after its caller
                (start, end, 10**9),  # no such string
                (start, end, random_.randrange(steps)),
            ][kind]
        yield start, end, tid, name
    while open_calls and made < count:
        start, name = open_calls.pop()
        now += 10
        yield start, now, tid, name


def rows(count, seed=1):
    random_ = random.Random(seed)
    for index, (pid, tid) in enumerate(THREADS):
        share = count // len(THREADS) + (index < count % len(THREADS))
        for start, end, global_tid, name in thread_rows(random_, share, pid, tid):
            yield start, end, global_tid, None, name, 0, 0, len(NAMES), len(NAMES) + 1, None, 50001


def make(path, count, seed=1):
    with sqlite3.connect(path) as db:
        db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;" + SCHEMA)
        db.executemany("INSERT INTO STRING_IDS VALUES (?, ?)", enumerate(NAMES))
        db.executemany("INSERT INTO STRING_IDS VALUES (?, ?)", ((len(NAMES) + i, "[%d, 4096]" % i) for i in range(SHAPES)))
        db.executemany("INSERT INTO PYTORCH_API VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows(count, seed))
    db.close()


if __name__ == "__main__":
    make(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200_000)
