"""`attnlab knowledge`, `pretrain`, `finetune`, `classify` and `resume`: a recipe and flags in, a run folder out."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab.base import console
from attnlab.base.children import MODULE
from attnlab.base.errors import UserError
from attnlab.cli.help import example
from attnlab.cli.launch_options import (
    check_files_exist,
    processes_per_node,
    refuse_with_slurm,
    resumed_processes_per_node,
    submit_command,
)
from attnlab.config import Section
from attnlab.config.flags import parameter_name, with_flags
from attnlab.config.recipe import Key, lay_over, leaves, load, value_of
from attnlab.config.sections import machine_of
from attnlab.jobs.registry import KINDS, kind_of_run, must_be_resumable, saved_config
from attnlab.launch.commandline import PROGRAM, typed_command
from attnlab.launch.config import LaunchConfig, launch_settings
from attnlab.runs.folder import ROOT, fresh_path, may_begin, read_record
from attnlab.runs.settings import MAY_GROW, grows

if TYPE_CHECKING:
    from attnlab.jobs.job import RunOptions

Recipe = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="RECIPE",
        help="YAML recipe: a file, or a name that `attnlab recipes` lists; flags override it.",
        rich_help_panel="Run",
    ),
]
Run = Annotated[
    Path | None,
    typer.Option(
        "--run", metavar="FOLDER", help="Folder of the run (default: a new one in runs/).", rich_help_panel="Run"
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing run folder.", rich_help_panel="Run")]
Resume = Annotated[bool, typer.Option("--resume", help="Resume the run in --run.", rich_help_panel="Run")]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Print configuration, parameters, steps, time and memory, and stop.", rich_help_panel="Run"
    ),
]


def _command(kind: str, doc: str) -> Any:
    @with_flags(LaunchConfig)
    @with_flags(KINDS[kind].config)
    def command(
        flags: dict[Key, Any],
        launching: dict[Key, Any],
        context: typer.Context,
        recipe: Recipe = None,
        run: Run = None,
        overwrite: Overwrite = False,
        resume: Resume = False,
        dry_run: DryRun = False,
    ) -> None:
        launch = launch_settings(LaunchConfig, launching) if launching else None
        if launch is not None:
            refuse_with_slurm(overwrite=overwrite, dry_run=dry_run)
        config = _resumed(kind, recipe, flags, run, overwrite) if resume else load(KINDS[kind].config, recipe, flags)
        if launch is not None:
            check_files_exist(config)
            folder = run or fresh_path(ROOT, kind)
            resume_command = [*PROGRAM, "resume", str(folder)]
            if not resume and folder.exists():
                may_begin(folder)
            per_node = (resumed_processes_per_node if resume else processes_per_node)(launch.slurm, machine_of(config))
            command = (
                resume_command if resume else _start_command(context, per_node * launch.slurm.nodes, config, folder)
            )
            submit_command(launch, kind, folder, command, resume_command, per_node)
            return
        from attnlab.jobs.job import RunOptions

        start(kind, config, RunOptions(run, overwrite, resume, dry_run))

    command.__doc__ = doc
    return command


def _start_command(context: typer.Context, processes: int, config: Section, folder: Path) -> list[str]:
    """The command as it was typed, with the number of processes on all nodes and the chosen folder."""
    if processes == machine_of(config).processes:
        return [*typed_command(context, "run"), f"--run={folder}"]
    number = parameter_name(("machine", "processes"))
    return [*typed_command(context, "run", number), f"--processes={processes}", f"--run={folder}"]


def start(kind: str, config: Section, options: RunOptions) -> None:
    """Run a job, in several processes if it is configured so, and print its results and folder."""
    from attnlab.distributed.team import find_rank

    if machine_of(config).processes > 1 and find_rank() is None and not options.dry_run:
        _start_several(kind, config, options)
    else:
        _start_one(kind, config, options)


def _start_several(kind: str, config: Section, options: RunOptions) -> None:
    """Run this command in each process: the first one writes the run and prints."""
    from attnlab.launch.processes import run_processes
    from attnlab.training.setup import must_be_possible

    machine = machine_of(config)
    must_be_possible(machine)
    path = options.path or fresh_path(options.root, kind)
    arguments = sys.argv[1:] if options.path else [*sys.argv[1:], f"--run={path}"]
    raise typer.Exit(run_processes(machine.processes, [*MODULE, "attnlab", *arguments], path))


def _start_one(kind: str, config: Section, options: RunOptions) -> None:
    from attnlab.distributed.team import joined

    with joined(machine_of(config).device) as team:
        if team.count > 1:
            chosen = team.from_first(lambda: options.path or fresh_path(options.root, kind))
            options = replace(options, path=chosen)
        path = KINDS[kind].job()(config).run(options)
    if path is not None:
        for name, value in read_record(path).get("results", {}).items():
            console.result(f"{name}: {value:.4f}" if isinstance(value, float) else f"{name}: {value}")
        console.result(f"run: {path}\nreport: {path / 'report.html'}")


def _resumed(kind: str, recipe: Path | None, flags: dict[Key, Any], run: Path | None, overwrite: bool) -> Section:
    """The configuration of the run to resume; raises for settings that would change it."""
    if run is None:
        raise UserError("--resume needs --run: the folder of the run to resume.")
    if overwrite:
        raise UserError("--resume and --overwrite contradict each other: give one of them.")
    name = read_record(run)["kind"]
    if name != kind:
        raise UserError(f"{run} is a {name} run: use 'attnlab resume {run}'.")
    saved = saved_config(run)
    if not recipe and not flags:
        must_be_resumable(run)
        return saved
    given = load(KINDS[kind].config, recipe, flags)
    more = more_steps(saved, given, flags)
    must_keep(saved, given, [key for key in flags if key not in more], recipe)
    if more:
        return lay_over(KINDS[kind].config, saved.model_dump(), more)
    must_be_resumable(run)
    return saved


def more_steps(saved: Section, given: Section, flags: Iterable[Key]) -> dict[Key, Any]:
    """The numbers of steps or epochs that were given and are larger than those of the run."""
    longer = {key: value_of(given, key) for key in flags if ".".join(key) in MAY_GROW}
    return {key: value for key, value in longer.items() if grows(value_of(saved, key), value)}


def must_keep(saved: Section, given: Section, flags: Iterable[Key], recipe: Path | None) -> None:
    """Raise for a given setting that differs: a resumed run keeps its configuration."""
    typed = set(flags)
    for key in sorted(typed if recipe is None else leaves(type(given))):
        old, new = value_of(saved, key), value_of(given, key)
        left_open = new == "auto" or (new is None and key not in typed)  # it was resolved when the run started
        if new != old and not left_open:
            raise UserError(
                f"a resumed run keeps its configuration, and {'.'.join(key)} is {old!r} "
                f"there, not {new!r}: leave it out or start a new run."
            )


@with_flags(LaunchConfig)
def resume(
    launching: dict[Key, Any], run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of the run.")]
) -> None:
    """Resume an interrupted or failed run, exactly from its last checkpoint."""
    from attnlab.jobs.job import RunOptions

    launch = launch_settings(LaunchConfig, launching) if launching else None
    name = read_record(run)["kind"]
    if name in ("compare", "sweep"):
        what = "comparison" if name == "compare" else name
        raise UserError(f"{run} is a {what}: resume it with 'attnlab {name} --run {run} --resume'.")
    kind = kind_of_run(run).name
    must_be_resumable(run)
    config = saved_config(run)
    if launch is not None:
        check_files_exist(config)
        command = [*PROGRAM, "resume", str(run)]
        submit_command(
            launch, kind, run, command, command, resumed_processes_per_node(launch.slurm, machine_of(config))
        )
        return
    start(kind, config, RunOptions(run, resume=True))


def register(app: typer.Typer) -> None:
    for kind, entry in KINDS.items():
        app.command(kind, epilog=example(entry.example))(_command(kind, entry.help))
    app.command(epilog=example("attnlab resume runs/my-run"))(resume)
