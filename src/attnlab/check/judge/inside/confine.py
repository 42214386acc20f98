"""Shut a person's process in, by the strongest of three means that works here.

    bubblewrap   the namespaces of a sandbox that `bwrap` has set up: own processes, no network, only the files
                 that Python needs, read-only, and a small private folder; as root also a user of its own
    user         as root without bwrap: a user of its own, and where the kernel allows it the same namespaces
    limits       limits, a private folder and the import guard alone: all that an ordinary user can do by himself

`enter` is called by the keeper, `shed` in the person's process, which is its child.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field

from . import limits, system

PRIVATE = "/tmp"  # the private folder, where there is a root of its own
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")


@dataclass(frozen=True)
class Confinement:
    """How one person's process is shut in; everything here may be known to it."""

    protection: str
    folder: str
    """Empty; its own, in so far as it has no root of its own."""
    visible: list[str] = field(default_factory=list)
    """Folders that may be read, where there is a root of its own."""
    hidden: list[str] = field(default_factory=list)
    """The lab itself."""
    holder: int = 0
    """bubblewrap: the process in the sandbox."""
    user: int = 0
    """The user that it becomes; 0: it remains the same."""
    limits: limits.Limits = field(default_factory=limits.Limits)


@dataclass
class Room:
    """Where the keeper is after `enter`."""

    folder: str
    own_processes: bool
    """The first process of a process namespace: what it leaves behind ends with it."""
    own_root: bool
    mapped: int
    others: int


def enter(confinement: Confinement) -> Room:
    """Enter the place in which the person's process is to run; raises OSError if that is refused."""
    others = 0 if confinement.user else limits.tasks_of(os.getuid())
    room = Room(confinement.folder, False, False, limits.mapped_bytes(), others)
    if confinement.protection == "bubblewrap":
        _join(confinement.holder)
        room.folder, room.own_processes, room.own_root = PRIVATE, True, True
    elif confinement.protection == "user":
        with contextlib.suppress(OSError):
            system.unshare(system.CLONE_NEWNET | system.CLONE_NEWIPC | system.CLONE_NEWUTS | system.CLONE_NEWPID)
            room.own_processes = True
        with contextlib.suppress(OSError):
            _build_root(confinement)
            room.folder, room.own_root = PRIVATE, True
    os.chdir(room.folder)
    return room


def shed(confinement: Confinement, room: Room) -> None:
    """In the person's process: limits, then no rights that are left to give up."""
    limits.apply(confinement.limits, room.mapped, room.others)
    if confinement.user:
        os.setgroups([])
        os.setresgid(confinement.user, confinement.user, confinement.user)
        os.setresuid(confinement.user, confinement.user, confinement.user)
    refusals = contextlib.suppress(OSError) if confinement.protection == "limits" else contextlib.nullcontext()
    with refusals:  # not Linux
        system.drop_capabilities()
        system.prctl(system.PR_SET_NO_NEW_PRIVS, 1)


def _join(holder: int) -> None:
    """Enter the namespaces of this process, except those that are ours already."""
    flags = 0
    for name, flag in system.NAMESPACES.items():
        if os.stat(f"/proc/{holder}/ns/{name}").st_ino != os.stat(f"/proc/self/ns/{name}").st_ino:
            flags |= flag
    if not flags & system.CLONE_NEWNS or not flags & system.CLONE_NEWPID:
        raise OSError("the sandbox shares its files or processes with this process")
    descriptor = os.pidfd_open(holder)
    try:
        system.enter(descriptor, flags)
    finally:
        os.close(descriptor)


def _build_root(confinement: Confinement) -> None:
    """A root of its own that holds the visible folders, read-only, a few devices and a small private folder."""
    system.unshare(system.CLONE_NEWNS)
    system.mount("none", "/", flags=system.MS_REC | system.MS_PRIVATE)
    root, quiet = confinement.folder, system.MS_NOSUID | system.MS_NODEV
    system.mount("none", root, "tmpfs", quiet, "mode=755")
    os.makedirs(root + PRIVATE, exist_ok=True)
    system.mount("none", root + PRIVATE, "tmpfs", quiet, f"mode=1777,size={confinement.limits.folder_bytes}")
    for path in confinement.visible:
        os.makedirs(root + path, exist_ok=True)
        system.mount(path, root + path, flags=system.MS_BIND)
        system.mount("none", root + path, flags=system.MS_BIND | system.MS_REMOUNT | system.MS_RDONLY | quiet)
    for path in confinement.hidden:
        if os.path.isdir(root + path):
            system.mount("none", root + path, "tmpfs", quiet | system.MS_RDONLY, "mode=000")
    os.makedirs(root + "/dev", exist_ok=True)
    for device in DEVICES:
        with open(root + device, "w", encoding="ascii"):
            pass
        system.mount(device, root + device, flags=system.MS_BIND)
    os.chroot(root)
    os.chdir("/")
