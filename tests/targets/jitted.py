# SPDX-License-Identifier: Apache-2.0
"""Code made while the program runs, and told in its perf map a while later: jitted.py SECONDS. x86-64 only."""
import ctypes
import mmap
import os
import sys
import time

# push rbp; mov rbp, rsp; mov ecx, 2000000; again: dec ecx; jnz again; pop rbp; ret
CODE = bytes.fromhex("554889e5b980841e00ffc975fc5dc3")

memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
memory.write(CODE)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
function = ctypes.CFUNCTYPE(None)(address)


def call():
    function()


told = time.monotonic() + float(sys.argv[1])
print("READY {}", flush=True)
while True:
    call()
    if told and time.monotonic() > told:
        with open("/tmp/perf-%d.map" % os.getpid(), "w", encoding="ascii") as file:
            file.write("%x %x made later\n" % (address, len(CODE)))
        told = None
