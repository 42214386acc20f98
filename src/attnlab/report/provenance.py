"""With what a run was made: the part of a page that lets someone else do it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from attnlab.report.page import Passage, Table


def surroundings(record: Mapping[str, Any], data: Mapping[str, Any], threads: Any = None) -> Table:
    """Machine, versions, commit and data of a run, from its record."""
    machine, git = record["machine"], record.get("git")
    used = f" ({threads} used)" if threads else ""
    rows = [
        ["started", record["started"]],
        [
            "machine",
            f"{machine['cpu']}, {machine['cores']} cores{used}, {machine['memory_gib']} GiB, "
            f"{', '.join(machine['devices']) or 'no accelerator'}",
        ],
        ["versions", ", ".join(f"{name} {version}" for name, version in record["versions"].items())],
        ["git commit", f"{git['commit']}{' with changes' if git['changed'] else ''}" if git else "none"],
        ["data", yaml.safe_dump(dict(data), default_flow_style=True, width=10_000).strip()],
    ]
    return Table(["", ""], rows)


def again(record: Mapping[str, Any], config: Mapping[str, Any], data: Mapping[str, Any], threads: Any) -> Passage:
    """The last passage of a page about many runs: surroundings, command and settings."""
    settings = yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True).rstrip()
    printed = f"{record['command']}\n\n{settings}"
    return Passage("How to do it again", tables=[surroundings(record, data, threads)], printed=printed)
