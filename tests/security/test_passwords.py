"""No password of a store is written or printed, whatever it looks like."""

from __future__ import annotations

import json
import os
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.experiments.sweep.database import running
from tests.security.cases import TEXT
from tests.security.test_hostile_files import in_this_process

from attnlab.experiments.addresses import store_address

PASSWORDS = [
    "secretpw",
    "secret/pw",
    "secret@pw",
    "secret:pw",
    "secret%pw",
    "secret#pw",
    "secret?pw",
    "/@:%#?&='secretpw",
]
TINY = {"data.corpus": "{text}", "training.steps": 2, "model.layers": 1, "model.heads": 2, "model.width": 16}
PARTS = ("secret", "pw@", "%pw", "#pw")


def addresses(password: str) -> list[str]:
    """The ways in which one may write it."""
    written = [password, quote(password, safe="")]
    forms = [
        "postgresql://lab:{}@127.0.0.1:1/db",
        "postgresql://:{}@127.0.0.1/db",
        "postgresql://127.0.0.1/db?password={}",
    ]
    more = [
        "sqlite:///lab.db?key={}",
        "postgres://lab:{}@127.0.0.1/db",
        "postgresql+psycopg://lab:{}@h/db",
        "mysql://lab:{}@h/db",
    ]
    return [form.format(text) for form in (*forms, *more) for text in written]


@pytest.mark.parametrize("password", PASSWORDS)
def test_an_address_with_a_password_is_refused_and_not_repeated(
    password: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number, address in enumerate(addresses(password)):
        recipe = tmp_path / "recipe.yaml"
        recipe.write_text(f"sweep: {{job: language, vary: {{optimizer.lr: [1, 2]}}, store: {json.dumps(address)}}}\n")
        vary = ["sweep", "--job", "language", "--vary", "optimizer.lr=1,2", "--run", f"run-{number}"]
        for words in (
            [*vary, "--store", address],
            [*vary, "--set", f"sweep.store={address}"],
            [*vary, "--launch", "slurm", "--at-once", "1", "--store", address],
            ["sweep", "--config", str(recipe), "--run", f"run-{number}"],
        ):
            told = in_this_process(words, "")
            assert told.code == 2 and not any(part in told.output for part in PARTS), told.output
            assert not Path(f"run-{number}").exists()


@pytest.mark.parametrize("password", PASSWORDS)
def test_a_saved_sweep_with_a_password_is_refused_and_not_repeated(password: str, tmp_path: Path) -> None:
    """As an earlier version may have stored it."""
    (tmp_path / "run.json").write_text(json.dumps({"kind": "sweep", "study": "a"}))
    for address in addresses(password):
        values = {"sweep": {"job": "language", "vary": {"optimizer.lr": [1, 2]}, "store": address}}
        (tmp_path / "config.yaml").write_text(json.dumps(values))
        for words in (["sweep", "--resume", "--run", str(tmp_path)], ["sweep", "--worker", "--run", str(tmp_path)]):
            told = in_this_process(words, "")
            assert told.code == 2 and not any(part in told.output for part in PARTS), told.output


@pytest.mark.parametrize(
    "address",
    [
        *("journal", "postgresql://host/db", "postgresql://me@host:5432/db", "postgresql://me@[::1]:5432/db"),
        *("postgresql:///db?host=/var/run/postgresql", "postgresql:///?service=lab", "postgresql://me%40org@host/db"),
        *("postgresql://host/db?sslmode=verify-full&passfile=/home/me/.pgpass", "sqlite:////tmp/a.db"),
    ],
)
def test_an_address_without_one_is_taken_as_it_is(address: str) -> None:
    assert store_address(address) == address


@pytest.mark.slow
@pytest.mark.parametrize("means", ["PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE"])
def test_libpq_s_own_means_reach_the_server_and_leave_no_trace(
    means: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    password = "/@:%#?&='secretpw"
    with running("scram-sha-256", password) as database:
        address = database.address
        if means == "PGPASSWORD":
            monkeypatch.setenv(means, password)
        else:
            file = tmp_path / "outside" / "file"
            file.parent.mkdir()
            escaped = password.replace("\\", "\\\\").replace(":", "\\:")
            where = f"host=127.0.0.1\nport={database.port}\nuser=lab\ndbname=postgres\n"
            line = f"127.0.0.1:{database.port}:*:lab:{escaped}\n"
            file.write_text(line if means == "PGPASSFILE" else f"[lab]\n{where}password={password}\n")
            file.chmod(0o600)
            monkeypatch.setenv(means, str(file))
            if means == "PGSERVICEFILE":
                address = "postgresql:///?service=lab"
        (tmp_path / "text.txt").write_text(TEXT)
        sets = [f"--set={name}={value}".format(text=tmp_path / "text.txt") for name, value in TINY.items()]
        words = ["sweep", "--job", "language", "--vary", "optimizer.lr=1e-3,1e-2", *sets, "--set", "model.context=16"]
        words += ["--threads", "1", "--precision", "fp32", "--store", address, "--run", str(tmp_path / "run")]
        told = [in_this_process(words, "")]
        assert told[0].code == 0, told[0].output
        monkeypatch.setenv("PGPASSWORD", "secretpw-that-is-wrong")
        monkeypatch.delenv("PGPASSFILE", raising=False)
        monkeypatch.delenv("PGSERVICEFILE", raising=False)
        told.append(in_this_process(["sweep", "--resume", "--run", str(tmp_path / "run")], ""))
        assert told[1].code == 2
    assert not any("secretpw" in outcome.output for outcome in told)
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert len(files) > 10 and not [path for path in files if b"secretpw" in path.read_bytes()]
    assert os.environ["PGPASSWORD"] not in "".join(outcome.output for outcome in told)
