"""The calls of the Linux kernel that Python 3.11 has no name for. Each raises OSError where it is refused or absent."""

from __future__ import annotations

import ctypes
import os
import sys

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
NAMESPACES = {
    "mnt": CLONE_NEWNS,
    "uts": CLONE_NEWUTS,
    "ipc": CLONE_NEWIPC,
    "user": CLONE_NEWUSER,
    "pid": CLONE_NEWPID,
    "net": CLONE_NEWNET,
}
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 4, 24, 36, 38
LAST_CAPABILITY = 63
CAPABILITY_VERSION = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: int | bytes | None) -> None:
    if not sys.platform.startswith("linux"):
        raise OSError(f"{name} exists on Linux only")
    given = [ctypes.c_ulong(a) if isinstance(a, int) else a for a in arguments]
    if getattr(_libc, name)(*given) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def prctl(option: int, value: int) -> None:
    _call("prctl", option, value, 0, 0, 0)


def unshare(flags: int) -> None:
    _call("unshare", flags)


def enter(descriptor: int, flags: int) -> None:
    """Enter the namespaces of a process, given as its pidfd."""
    _call("setns", descriptor, flags)


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    _call("mount", source.encode(), target.encode(), kind.encode(), flags, options.encode())


def hide_memory() -> None:
    """No other process of the same user may read or trace this one, nor look into its folder in /proc."""
    try:
        prctl(PR_SET_DUMPABLE, 0)
    except OSError:  # not Linux
        return


def drop_capabilities() -> None:
    """Give up every capability, for good."""
    if not sys.platform.startswith("linux"):
        raise OSError("capabilities exist on Linux only")

    class Header(ctypes.Structure):
        _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))

    class Sets(ctypes.Structure):
        _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))

    for capability in range(LAST_CAPABILITY + 1):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:
            break  # the kernel knows no further ones
    header, empty = Header(CAPABILITY_VERSION, 0), (Sets * 2)()
    if _libc.capset(ctypes.byref(header), ctypes.byref(empty)) != 0:
        raise OSError(ctypes.get_errno(), "capset")
