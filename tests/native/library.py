# SPDX-License-Identifier: Apache-2.0
"""C code of the standard library and what it calls, in turn, for ever."""
import array
import hashlib
import json
import re
import struct
import zlib

STACKS = {
    "": ["module"],
    "module": ("python", "<module>", {"loop": ["loop"]}),
    "loop": ("python", "loop", {
        "compress": ["compress"], "digest": ["digest"], "dump": ["dump"], "parse": ["parse"], "replace": ["replace"], "order": ["order"],
        "pack": ["pack"], "numbers": ["numbers"]}),
    "compress": ("python", "compress", {"c_zlib": ["zlib", "libz"]}),
    "zlib": ("extension", r"zlib\.", ["libz"]),
    "libz": ("library", r"libz[.-]", ["zlib"]),
    "digest": ("python", "digest", {"c_sha256": ["sha256", "libcrypto"]}),
    "sha256": ("extension", r"_hashlib\.|_sha2", ["libcrypto"]),
    "libcrypto": ("library", r"libcrypto\.", []),
    "dump": ("python", "dump", {"c_dumps": ["json_python"]}),
    "parse": ("python", "parse", {"c_loads": ["json_python"]}),
    "json_python": ("modules", r"/json/", ["json"]),
    "json": ("extension", r"_json\.", []),
    "replace": ("python", "replace", {"c_sub": ["re_python"]}),
    "re_python": ("modules", r"/re\.py$|/sre_\w+\.py$|/re/|/enum\.py$", []),
    "order": ("python", "order", {"c_sorted": ["key"]}),
    "key": ("python", "key", {}),
    "pack": ("python", "pack", {"c_pack": ["struct"]}),
    "struct": ("extension", r"_struct\.", []),
    "numbers": ("python", "numbers", {"c_array": ["array"]}),
    "array": ("extension", r"array\.", []),
}

DATA = b"".join(hashlib.sha256(b"%d" % number).hexdigest().encode() for number in range(1500))
TABLE = {"key %d" % number: [number, number / 7, "text %d" % number, None, {"a": True}] for number in range(300)}
TEXT = json.dumps(TABLE)
PATTERN = re.compile(r"(\w+) (\d+)([^x]{0,60}?)a")
VALUES = [number * 7919 % 10007 for number in range(6000)]


def compress():
    return zlib.compress(DATA, 6)  #@ c_zlib


def digest():
    return hashlib.sha256(DATA * 15).digest()  #@ c_sha256


def dump():
    for _ in range(3):
        json.dumps(TABLE)  #@ c_dumps


def parse():
    for _ in range(5):
        json.loads(TEXT)  #@ c_loads


def replace():
    return PATTERN.sub(r"\2", TEXT)  #@ c_sub


def key(value):
    return value * 7 % 1009


def order():
    return sorted(VALUES, key=key)  #@ c_sorted


def pack():
    for _ in range(20):
        struct.pack("6000i", *VALUES)  #@ c_pack


def numbers():
    for _ in range(10):
        array.array("d", VALUES)  #@ c_array


def loop():
    while True:
        compress()  #@ compress
        digest()  #@ digest
        dump()  #@ dump
        parse()  #@ parse
        replace()  #@ replace
        order()  #@ order
        pack()  #@ pack
        numbers()  #@ numbers


if __name__ == "__main__":
    print("READY {}", flush=True)
    loop()  #@ loop
