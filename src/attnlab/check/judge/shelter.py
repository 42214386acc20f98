"""Start a person's process with the strongest protection that works here."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import site
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from attnlab.check.judge.inside.confine import PRIVATE, Confinement
from attnlab.check.judge.inside.frames import Channel, Closed, Kind, Late, Malformed
from attnlab.check.judge.inside.limits import Limits
from attnlab.check.judge.protection import PROTECTIONS, Protection

START_SECONDS = 60.0  # of a machine that is very busy
SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
UNUSED_USERS = range(61184, 65520)  # kept free for users that come and go, as systemd does
HOLD = "echo ready; exec cat"  # bubblewrap holds the sandbox until its input is closed


class Refused(Exception):
    """A protection does not work here; the message says why."""


@dataclass
class PersonProcess:
    """A running process with its two sockets; `end` leaves nothing of it."""

    channel: Channel
    control: socket.socket
    folder: Path
    holder: subprocess.Popen[str] | None
    own_root: bool = False

    def status(self) -> int | None:
        """The exit code of a process that has ended by itself, negative for a signal; None if it has to be killed."""
        try:
            self.control.shutdown(socket.SHUT_WR)
            return _line(self.control).get("status")
        except (OSError, ValueError):
            return None

    def end(self) -> None:
        self.channel.close()
        with contextlib.suppress(OSError):
            self.control.shutdown(socket.SHUT_WR)  # the keeper ends everything, then closes its end
            self.control.settimeout(START_SECONDS)
            while self.control.recv(1024):
                pass
        self.control.close()
        if self.holder:
            _close(self.holder)
        shutil.rmtree(self.folder, ignore_errors=True)


class Shelter:
    """Starts the processes of one judge; a protection that has failed once is not tried again."""

    def __init__(
        self, orders: socket.socket, folder: Path, limits: Limits, allowed: Sequence[Protection] = PROTECTIONS
    ) -> None:
        self.orders, self.folder, self.limits = orders, folder, limits
        self.left = list(allowed)
        self.hidden = _hidden_folders()
        self.visible = _visible_folders()

    @property
    def protection(self) -> Protection:
        return self.left[0]

    def start(self) -> PersonProcess:
        """A process that is ready to load a file."""
        while True:
            try:
                return self._start(self.protection)
            except Refused:
                if len(self.left) == 1:
                    raise
                del self.left[0]

    def _start(self, protection: Protection) -> PersonProcess:
        if protection == "user" and os.getuid() != 0:
            raise Refused("only root can give a process a user of its own")
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        user = _unused_user() if os.getuid() == 0 and protection != "limits" else 0
        if user:
            os.chown(folder, user, user)
        holder, inside = self._bubblewrap() if protection == "bubblewrap" else (None, 0)
        confinement = Confinement(
            protection, str(folder), self.visible, self.hidden, holder=inside, user=user, limits=self.limits
        )
        control, channel = self._order(confinement)
        process = PersonProcess(channel, control, folder, holder)
        try:
            process.own_root = _started(control)
            if channel.receive(START_SECONDS)[0] is not Kind.READY:
                raise Refused("it did not say that it is ready")
        except (Closed, Late, Malformed, Refused) as error:
            process.end()
            raise Refused(f"{protection}: {error}") from None
        return process

    def _order(self, confinement: Confinement) -> tuple[socket.socket, Channel]:
        """Have the zygote fork a keeper, with the other ends of two new pairs of sockets."""
        ours, theirs = socket.socketpair()
        control, keepers = socket.socketpair()
        try:
            socket.send_fds(
                self.orders, [json.dumps(asdict(confinement)).encode()], [theirs.fileno(), keepers.fileno()]
            )
        except OSError as error:
            raise Refused(f"the zygote is gone ({error})") from None
        finally:
            theirs.close()
            keepers.close()
        return control, Channel(ours)

    def _bubblewrap(self) -> tuple[subprocess.Popen[str], int]:
        """A sandbox that only waits; returns it and the id of the process inside."""
        program = shutil.which("bwrap")
        if not program or not hasattr(os, "pidfd_open"):
            raise Refused("bubblewrap is not installed")
        reading, writing = os.pipe()
        try:
            holder = subprocess.Popen(
                [program, *self._sandbox_options(), "--info-fd", str(writing), "/bin/sh", "-c", HOLD],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                pass_fds=(writing,),
                env={},
            )
        except OSError as error:
            os.close(reading)
            raise Refused(f"bubblewrap cannot be run ({error})") from None
        finally:
            os.close(writing)
        with os.fdopen(reading, encoding="utf-8") as facts:
            text = facts.read()
        assert holder.stdout
        if holder.stdout.readline().strip() != "ready":
            _close(holder)
            raise Refused("bubblewrap cannot set up a sandbox here")
        return holder, json.loads(text)["child-pid"]

    def _sandbox_options(self) -> list[str]:
        options = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--die-with-parent"]
        options += ["--new-session", "--cap-drop", "ALL", "--dev", "/dev"]  # no /proc: nothing there is needed
        if os.getuid():
            options.append("--unshare-user")
        options += ["--perms", "1777", "--size", str(self.limits.folder_bytes), "--tmpfs", PRIVATE]
        for parent in _parents(self.visible):
            options += ["--perms", "0755", "--dir", parent]  # else readable by root alone
        for path in self.visible:
            options += ["--ro-bind", path, path]
        for path in self.hidden:
            if any(_within(path, top) for top in self.visible):
                options += ["--perms", "0000", "--tmpfs", path, "--remount-ro", path]
        return [*options, "--chdir", PRIVATE]


def _started(control: socket.socket) -> bool:
    """Wait until the keeper has started the process; returns whether it has a root of its own."""
    facts = _line(control)
    if not facts.get("started"):
        raise Refused(facts.get("failed", "its keeper did not start"))
    return bool(facts["own_root"])


def _line(control: socket.socket) -> dict[str, Any]:
    """The next line of a keeper; nothing if it is gone."""
    control.settimeout(START_SECONDS)
    line = b""
    with contextlib.suppress(OSError):
        while not line.endswith(b"\n") and (part := control.recv(1)):
            line += part
    return json.loads(line or "{}")


def _close(holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.communicate()


def _unused_user() -> int:
    used = set()
    for entry in os.scandir("/proc"):
        with contextlib.suppress(OSError):  # it has ended
            used.add(entry.stat().st_uid)
    return random.SystemRandom().choice([user for user in UNUSED_USERS if user not in used])


def _visible_folders() -> list[str]:
    """What Python and its packages need; nothing of the person who runs the check."""
    packages = [entry for entry in sys.path if os.path.isdir(os.path.join(entry, "torch"))]
    wanted = [*SYSTEM_FOLDERS, sys.base_prefix, sys.prefix, site.getusersitepackages(), *packages]
    existing = sorted({os.path.abspath(path) for path in wanted if os.path.isdir(path)})
    return [path for path in existing if not any(_within(path, other) for other in existing if other != path)]


def _hidden_folders() -> list[str]:
    """Every copy of the lab that Python would find."""
    own = Path(__file__).resolve().parents[2]
    others: Iterable[Path] = (Path(entry, own.name) for entry in sys.path)
    return sorted({str(folder.resolve()) for folder in (own, *others) if folder.is_dir()})


def _parents(paths: Iterable[str]) -> list[str]:
    """The folders above these, topmost first, without those that are there already."""
    above = {str(parent) for path in paths for parent in Path(path).parents}
    return sorted(above - {"/", PRIVATE})


def _within(path: str, top: str) -> bool:
    return path == top or path.startswith(top.rstrip("/") + "/")
