# SPDX-License-Identifier: Apache-2.0
"""A small realistic program to look at in a flame graph: a web shop's evening in five threads. Runs until killed."""
import json
import random
import re
import threading
import time

LOG_LINE = re.compile(r"(?P<host>\S+) \[(?P<time>[^\]]+)\] \"(?P<verb>[A-Z]+) (?P<path>\S+)\" (?P<status>\d{3})")
ORDERS = [
    {"id": n, "customer": "customer-%d" % (n % 97), "items": [{"sku": "A%03d" % k, "price": k * 1.25} for k in range(n % 9)]}
    for n in range(400)
]


def category_tree(depth, width):
    """A tree of categories, built by recursion."""
    if depth == 0:
        return {"name": "leaf", "weight": random.random()}
    return {"name": "level %d" % depth, "children": [category_tree(depth - 1, width) for _ in range(width)]}


def weigh(category):
    if "weight" in category:
        return category["weight"]
    return sum(weigh(child) for child in category["children"])


def rank_categories():
    while True:
        trees = [category_tree(6, 3) for _ in range(4)]
        trees.sort(key=weigh)


def encode_orders():
    return json.dumps(ORDERS, sort_keys=True, indent=1)


def price_of(order):
    return sum(item["price"] for item in order["items"])


def serve_orders():
    while True:
        orders = json.loads(encode_orders())
        sorted(orders, key=price_of)
        wait_for_request()


def wait_for_request():
    time.sleep(0.01)


def make_lines(count):
    verbs = ("GET", "POST", "PUT")
    return [
        '10.0.0.%d [12:%02d] "%s /shop/%d" %d' % (n % 250, n % 60, verbs[n % 3], n, 200 + n % 300) for n in range(count)
    ]


def parse_line(line):
    match = LOG_LINE.match(line)
    return match.group("path"), int(match.group("status"))


def read_logs():
    while True:
        counts = {}
        for line in make_lines(3000):
            path, status = parse_line(line)
            counts[status] = counts.get(status, 0) + 1
        time.sleep(0.02)


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def forecast():
    while True:
        fibonacci(20)


def heartbeat():
    while True:
        time.sleep(1)


def main():
    threads = {
        "ranking": rank_categories,
        "orders": serve_orders,
        "logs": read_logs,
        "forecast": forecast,
        "heartbeat": heartbeat,
    }
    for name, function in threads.items():
        threading.Thread(target=function, name=name, daemon=True).start()
    print("demo.py is running", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
