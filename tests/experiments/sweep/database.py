"""A PostgreSQL server of its own on the loopback, in a temporary folder, that a test can stop and start."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SERVER = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


class Database:
    def __init__(self, folder: str) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.address = f"postgresql://lab@127.0.0.1:{self.port}/postgres"

    def initialise(self, method: str = "trust", password: str = "") -> None:
        file = Path(self.folder, "password.txt")
        file.write_text(password or "unused")
        file.chmod(0o644)
        self._call("initdb", "-U", "lab", "-A", method, f"--pwfile={file}", "-N", "--no-locale", "-E", "SQL_ASCII")

    def start(self) -> None:
        options = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder} -c fsync=off "
            f"-c log_statement=all -c log_connections=on"
        )
        self._call("pg_ctl", "-w", "-l", f"{self.folder}/log", "-o", options, "start")

    def stop(self, mode: str = "immediate") -> None:
        self._call("pg_ctl", "-w", "-m", mode, "stop")

    def _call(self, tool: str, *words: str) -> None:
        as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []  # the server refuses to run as root
        command = [*as_user, str(SERVER[-1].with_name(tool)), "-D", f"{self.folder}/data", *words]
        with open(f"{self.folder}/{tool}.txt", "w+") as output:  # a pipe would stay open in the server
            done = subprocess.run(command, stdout=output, stderr=output, cwd=self.folder)
            assert done.returncode == 0, Path(output.name).read_text()


@contextmanager
def running(method: str = "trust", password: str = "") -> Iterator[Database]:
    pytest.importorskip("psycopg")
    if not SERVER:
        pytest.skip("PostgreSQL's server is not installed: apt-get install postgresql")
    with tempfile.TemporaryDirectory(prefix="attnlab-") as folder:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        database = Database(folder)
        database.initialise(method, password)
        database.start()
        try:
            yield database
        finally:
            if Path(folder, "data", "postmaster.pid").exists():
                database.stop()
