# SPDX-License-Identifier: Apache-2.0
"""Waits in a function that has a variable for each kind of value. READY tells what sampled is to show of each: what repr() says, but for the
last ones."""
import array
import collections
import datetime
import decimal
import enum
import functools
import json
import os
import pathlib
import sys
import threading
import time
import types
import uuid


class Plain:
    def __init__(self):
        self.number = 7
        self.word = "seven"
        self.password = "swordfish"

    def method(self):
        pass


class Slotted:
    __slots__ = ("left", "right", "unset")

    def __init__(self):
        self.left, self.right = 1, [2]


class Color(enum.Enum):
    RED = 1


class Number(enum.IntEnum):
    ONE = 1


class Words(list):
    pass


class Text(str):
    pass


class Loud(dict):
    def __repr__(self):
        return "LOUD"


Pair = collections.namedtuple("Pair", "first second")


class Failure(Exception):
    pass


def values(argument, other=2, *more, only=3, **rest):
    captured = [argument]

    def inside():
        return captured, other

    none, true, false, dots, never = None, True, False, Ellipsis, NotImplemented
    zero, small, negative, digit, two_digits, huge = 0, 5, -17, 2**30, -(2**59), 3**2000
    most_digits = 10**4299
    half, tenth, large, tiny, million, below, infinite, minus_zero = 0.5, 0.1, 1e16, 1e-5, 1234567.0, 123456789012345.6, float("-inf"), -0.0
    least, third, not_a_number = 5e-324, 1 / 3, float("nan")
    imaginary, both, mixed = 2j, 1.5 - 2j, complex(-0.0, float("nan"))
    empty_text, text, quotes, both_quotes, lines = "", "plain", "it's", "'\"", "a\n\t\r\\\x00\x7f"
    latin, greek, emoji, surrogate, invisible = "caf\xe9", "\u03b1\u03b2", "\U0001f40d", "\ud800x", "\xad\u2028\u200b\ue000"
    empty_bytes, some_bytes, changeable = b"", b"a'\x00\xff\n", bytearray(b"abc")
    empty_list, numbers, nested, itself = [], [1, 2, 3], [[1], (2, {"k": [3]})], []
    itself.append(itself)
    empty_tuple, single, triple = (), (1,), (1, "b", None)
    empty_dict, mapping, ring = {}, {"a": 1, 2: "b", None: [True]}, {}
    ring["ring"] = ring
    removed = {number: number for number in range(10)}
    for number in range(7):
        del removed[number]
    empty_set, some_set, frozen, no_frozen = set(), {1}, frozenset((2,)), frozenset()
    many_set = set(range(15))
    many_set.discard(3)
    span, stepped, part = range(10), range(0, -10, -3), slice(None, 2, 3)
    queue, bounded = collections.deque([1, "two"]), collections.deque(range(100), maxlen=5)
    rotated = collections.deque(range(70))
    for number in range(60):
        rotated.popleft()
    default, ordered = collections.defaultdict(list, {"x": [1]}), collections.OrderedDict([("a", 1), ("b", 2)])
    space, proxy = types.SimpleNamespace(a=1), types.MappingProxyType({"m": 1})
    names_view, values_view, items_view = {"v": 1}.keys(), {"v": 1}.values(), {"v": 1}.items()
    day, clock, short_clock = datetime.date(2026, 11, 29), datetime.time(8, 30, 15, 250), datetime.time(8, 30)
    moment, exact_moment = datetime.datetime(2026, 11, 29, 8, 30), datetime.datetime(2026, 11, 29, 8, 30, 1, 5, datetime.timezone.utc)
    elsewhere = datetime.datetime(2026, 1, 1, 0, 0, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=-5)))
    folded, named_zone = datetime.datetime(2026, 1, 1, 1, 1, fold=1), datetime.timezone(datetime.timedelta(seconds=60), "Z")
    no_time, some_time, back = datetime.timedelta(0), datetime.timedelta(1, 2, 3), datetime.timedelta(seconds=-1)
    money, no_money, scientific, small_money, long_money = (decimal.Decimal(text) for text in ("1.50", "0.00", "1E+30", "-1E-10", "9" * 60 + ".5"))
    not_decimal, endless = decimal.Decimal("NaN"), decimal.Decimal("-Infinity")
    identity = uuid.UUID("12345678-1234-5678-1234-567812345678")
    path, relative, untidy = pathlib.PosixPath("/srv", "app.py"), pathlib.PurePosixPath("a/b"), pathlib.PosixPath("//x/./y//z/")
    here, shown_path = pathlib.PosixPath("."), pathlib.PosixPath("/shown")
    str(shown_path)
    color, one, pair = Color.RED, Number.ONE, Pair(1, "x")
    words, word = Words(["w"]), Text("sub")
    error, bare_error, own_error, file_error = ValueError("bad", 1), KeyError(), Failure("f"), FileNotFoundError(2, "no")
    kind, builtin_kind, nested_kind = Plain, dict, collections.deque
    function, lambda_function, builtin, builtin_method = values, lambda: 0, len, [].append
    generator = (number for number in [])
    instance, slotted, method, module = Plain(), Slotted(), None, sys
    method = instance.method
    told = {name: repr(value) for name, value in dict(locals()).items() if name not in ("told", "number")}
    told.update(
        instance="<Plain at %#x>" % id(instance),
        slotted="<Slotted at %#x>" % id(slotted),
        method="<bound method Plain.method of <Plain at %#x>>" % id(instance),
        module="<module 'sys'>",
    )
    loud, counted, cells, partial = Loud(a=1), collections.Counter("aab"), inside.__closure__, functools.partial(int, base=2)
    lock, numbers_array = threading.Lock(), array.array("i")
    told.update(
        loud="Loud({'a': 1})",
        counted="Counter({'a': 2, 'b': 1})",
        cells="(<cell: [1]>, <cell: 2>)" if inside.__code__.co_freevars[0] == "captured" else "(<cell: 2>, <cell: [1]>)",
        partial="<partial of <class 'int'>>",
        lock="<%s at %#x>" % ("_thread.lock", id(lock)),
        numbers_array="<array.array at %#x>" % id(numbers_array),
    )
    if sys.version_info >= (3, 14):
        told["lock"] = "<_thread.lock at %#x>" % id(lock)
    long_text, long_list, deep, long_int = "x" * 300, list(range(1010)), [[[[[1]]]]], 1 << 20000
    hundred_deep = []
    for number in range(100):
        hundred_deep = [hundred_deep]
    told.update(
        long_text="'%s'… 100 more" % ("x" * 200),
        long_list="[%s, … 990 more]" % ", ".join(str(number) for number in range(20)),
        deep="[[[[[… 1 more]]]]]",
        hundred_deep="[[[[[… 1 more]]]]]",
        long_int="<int of 20001 bits>",
    )
    api_key, users, address = "hunter2", {"name": "ann", "password": "hunter2", b"token": 3}, "postgres://ann:hunter2@db/shop"
    told.update(api_key="<hidden>", users="{'name': 'ann', 'password': <hidden>, b'token': <hidden>}", address="'postgres://ann:***@db/shop'")
    headers = [(b"host", b"shop"), (b"authorization", b"Basic aHVudGVyMg=="), ["x-api-key", "hunter2"]]
    command, pair = ["mysql", "--user", "ann", "--password", "hunter2", "shop"], ("the key", 1)
    told.update(headers="[(b'host', b'shop'), (b'authorization', <hidden>), ['x-api-key', <hidden>]]",
                command="['mysql', '--user', 'ann', '--password', <hidden>, 'shop']", pair="('the key', 1)")
    unbound = 1
    del unbound
    told.pop("told", None)
    print("READY " + json.dumps({"values": told, "attributes": "<Plain at %#x: number=7, word='seven', password=<hidden>>" % id(instance),
                                 "slots": "<Slotted at %#x: left=1, right=[2]>" % id(slotted)}), flush=True)
    while True:
        time.sleep(60)


values(1, 2, "more", only=4, rest=5)
