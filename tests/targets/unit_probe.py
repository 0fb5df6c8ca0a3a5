# SPDX-License-Identifier: Apache-2.0
"""Runs as a service of Type=notify and writes what its unit lets it do to standard output, as a line of JSON: tests/integration/test_units.py.

unit_probe.py PID ADDRESS: a process and where the number 4711 stands in it. With "-" it only waits to be stopped."""
import ctypes
import json
import os
import signal
import socket
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
SYS_PIDFD_OPEN = 434


class Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def tell(text):
    path = os.environ.get("NOTIFY_SOCKET")
    if path:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.sendto(text.encode(), path)


def number_at(call, pid, address, number):
    """process_vm_readv or process_vm_writev of an int."""
    own = ctypes.c_int(number)
    local, remote = Iovec(ctypes.addressof(own), 4), Iovec(address, 4)
    if getattr(LIBC, call)(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) != 4:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return own.value


def memory_file(pid, address, flags):
    fd = os.open("/proc/%d/mem" % pid, flags)
    try:
        return int.from_bytes(os.pread(fd, 4, address), "little")
    finally:
        os.close(fd)


def new_file(folder):
    path = os.path.join(folder, "probe")
    with open(path, "w", encoding="ascii") as file:
        file.write("x")
    os.unlink(path)
    return True


def libc_call(name, *args):
    if getattr(LIBC, name)(*args) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return True


def status():
    with open("/proc/self/status", encoding="ascii") as file:
        lines = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    return {name: lines[name] for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")}


def attempts(pid, address):
    return {
        "status": status,
        "comm of another": lambda: open("/proc/%d/comm" % pid, encoding="ascii").read().strip(),
        "executable of another": lambda: bool(os.readlink("/proc/%d/exe" % pid)),
        "file in the root of another": lambda: bool(os.stat("/proc/%d/root/etc/passwd" % pid)),
        "read memory": lambda: number_at("process_vm_readv", pid, address, 0),
        "write memory": lambda: number_at("process_vm_writev", pid, address, 1),
        "read /proc/PID/mem": lambda: memory_file(pid, address, os.O_RDONLY),
        "write /proc/PID/mem": lambda: memory_file(pid, address, os.O_RDWR),
        "read /proc/PID/task/TID/syscall": lambda: bool(open("/proc/%d/task/%d/syscall" % (pid, pid), encoding="ascii").read()),
        "pidfd": lambda: libc_call("syscall", SYS_PIDFD_OPEN, pid, 0),
        "ptrace": lambda: libc_call("ptrace", 0x4206, pid, 0, 0),
        "signal another": lambda: bool(os.kill(pid, 0) is None),
        "unix socket": lambda: bool(socket.socket(socket.AF_UNIX)),
        "inet socket": lambda: bool(socket.socket(socket.AF_INET)),
        "netlink socket": lambda: bool(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)),
        "interfaces": lambda: sorted(os.listdir("/sys/class/net")),
        "state": lambda: new_file("/var/lib/sampled"),
        "runtime": lambda: new_file("/run/sampled"),
        "spool": lambda: new_file("/var/spool/sampled"),
        "temporary": lambda: new_file("/tmp"),
        "etc": lambda: new_file("/etc/sampled"),
        "home": lambda: os.listdir("/root"),
        "shadow": lambda: bool(open("/etc/shadow", encoding="ascii").read()),
        "mount": lambda: libc_call("mount", b"none", b"/tmp", b"tmpfs", 0, None),
        "processes": lambda: len([name for name in os.listdir("/proc") if name.isdigit()]),
    }


def main():
    said = {}
    if sys.argv[1] != "-":
        for name, attempt in attempts(int(sys.argv[1]), int(sys.argv[2], 0)).items():
            try:
                said[name] = attempt()
            except OSError as error:
                said[name] = "OSError %d" % error.errno
    print("PROBE " + json.dumps(said), flush=True)
    tell("READY=1\nSTATUS=probed")
    signal.pause()


if __name__ == "__main__":
    main()
