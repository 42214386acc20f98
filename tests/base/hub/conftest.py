"""A stand-in for the hub: the part of its HTTP interface that `huggingface_hub` calls, on this machine."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

LARGE = 20_000
"""From here on a file has a checksum in listings, as large files have on the hub."""
ADDRESS = re.compile(r"/api/(models|datasets)/(?P<id>[^/]+/[^/]+)/(?P<what>revision|tree)/(?P<revision>[^/]+)")
FILE = re.compile(r"/(?P<data>datasets/)?(?P<id>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<file>.+)")


class StandIn(ThreadingHTTPServer):
    """Repositories in memory; `asked` has the paths of all files that were fetched."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.repositories: dict[tuple[str, str, str], dict[str, bytes]] = {}
        self.asked: list[str] = []
        self.failing = False
        self.cut: str | None = None
        """A file that is sent by half."""
        self.spoilt: str | None = None
        """A file whose last byte is another."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def add(self, repo: str, files: dict[str, bytes], kind: str = "model", revision: str = "main") -> None:
        self.repositories[kind, repo, revision] = files
        self.repositories[kind, repo, self.commit(kind, repo, revision)] = files

    def add_folder(self, repo: str, folder: Path) -> None:
        self.add(repo, {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.*")})

    def stop(self) -> None:
        self.shutdown()
        self.server_close()

    @staticmethod
    def commit(kind: str, repo: str, revision: str) -> str:
        return hashlib.sha1(f"{kind} {repo} {revision}".encode()).hexdigest()


class Handler(BaseHTTPRequestHandler):
    server: StandIn

    def do_GET(self) -> None:
        address = urlsplit(self.path).path
        if self.server.failing:
            self._answer(500, b"out of order")
        elif found := ADDRESS.fullmatch(address):
            kind = "dataset" if address.startswith("/api/datasets") else "model"
            self._api(kind, found["id"], found["what"], unquote(found["revision"]))
        elif found := FILE.fullmatch(address):
            self._file("dataset" if found["data"] else "model", found["id"], unquote(found["revision"]), found["file"])
        else:
            self._answer(404, b"")

    do_HEAD = do_GET

    def _api(self, kind: str, repo: str, what: str, revision: str) -> None:
        files = self.server.repositories.get((kind, repo, revision))
        if files is None:
            known = any(key[:2] == (kind, repo) for key in self.server.repositories)
            self._answer(404, b"{}", {"X-Error-Code": "RevisionNotFound" if known else "RepoNotFound"})
            return
        entries = []
        for name, content in files.items():
            sha, oid = hashlib.sha256(content).hexdigest(), hashlib.sha1(content).hexdigest()
            large = {"size": len(content), "pointerSize": 100}
            if what == "tree":
                entry = {"type": "file", "path": name, "size": len(content), "oid": oid}
                entries.append(entry | ({"lfs": large | {"oid": sha}} if len(content) >= LARGE else {}))
            else:
                entry = {"rfilename": name, "size": len(content), "blobId": oid}
                entries.append(entry | ({"lfs": large | {"sha256": sha}} if len(content) >= LARGE else {}))
        sha = revision if len(revision) == 40 else self.server.commit(kind, repo, revision)
        found = entries if what == "tree" else {"id": repo, "sha": sha, "siblings": entries}
        self._answer(200, json.dumps(found).encode(), {"Content-Type": "application/json"})

    def _file(self, kind: str, repo: str, revision: str, name: str) -> None:
        name = unquote(name)
        content = self.server.repositories.get((kind, repo, revision), {}).get(name)
        if content is None:
            self._answer(404, b"", {"X-Error-Code": "EntryNotFound"})
            return
        self.server.asked.append(name)
        sha = hashlib.sha256(content).hexdigest()
        if self.command == "GET" and self.server.cut == name:
            content = content[: len(content) // 2]
        elif self.command == "GET" and self.server.spoilt == name:
            content = content[:-1] + bytes([content[-1] ^ 1])
        commit = revision if len(revision) == 40 else self.server.commit(kind, repo, revision)
        self._answer(200, content, {"X-Repo-Commit": commit, "ETag": f'"{sha}"'})

    def _answer(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(content))} | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *words: object) -> None:
        """Nothing on standard error."""


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """An empty hub, and an empty cache, for this process and its children."""
    constants = pytest.importorskip("huggingface_hub.constants")
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "ATTNLAB_MODELS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with StandIn() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server
        server.stop()
    import huggingface_hub

    huggingface_hub.close_session()
