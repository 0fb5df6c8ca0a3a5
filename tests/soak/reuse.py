# SPDX-License-Identifier: Apache-2.0
"""A pid that is used again, many times: reuse.py COUNT, in a pid namespace of its own, where the next pid can be chosen. Prints, as JSON, of
each process how many seconds it took until it was profiled, and how many of them the history tells apart."""
import json
import os
import subprocess
import sys
import time

import soaking


def start(service, python, pid):
    with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as file:
        file.write(str(pid - 1))
    process = subprocess.Popen([python, "-B", os.path.join(service.folder, "passing.py"), "live", "60"], stdin=subprocess.DEVNULL)
    assert process.pid == pid, "pid %d was wanted, it is %d" % (pid, process.pid)
    return process


def start_time(pid):
    with open("/proc/%d/stat" % pid, "rb") as file:
        return int(file.read().rpartition(b") ")[2].split()[19])


def profiled(service, pid):
    began, started = start_time(pid), time.monotonic()
    while time.monotonic() < started + 20:
        for target in service.list():
            if (target["pid"], target["start_time"], target["state"]) == (pid, began, "sampled"):
                return time.monotonic() - started
        time.sleep(0.02)
    return None


def main(count):
    pid, found = 20000, []
    with soaking.Service() as service:
        service.start()
        pythons = soaking.interpreters()
        for number in range(count):
            process = start(service, pythons[number % len(pythons)].argv[-1], pid)
            found.append(profiled(service, pid))
            time.sleep(0.3)
            process.kill()
            process.wait()
            time.sleep(number % 3 * 0.01)
        time.sleep(0.5)
        lines = [json.loads(line) for line in service.ask("dump", "-f", "jsonl").decode().splitlines()]
        versions = [line["python"] for line in lines if line["type"] == "process"]
        print(json.dumps({"found": found, "versions": versions, "listed": service.list(), "descriptors": service.descriptors()}))
        service.stop()


main(int(sys.argv[1]))
