"""`attnlab knowledge`, `pretrain`, `finetune`, `classify` and `resume`: a recipe and flags in, a run folder out."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab.base import console
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
from attnlab.config.recipe import Key, leaves, load, value_of
from attnlab.jobs.registry import KINDS, config_of
from attnlab.launch.commandline import PROGRAM, typed_command
from attnlab.launch.config import LaunchConfig, launch_settings
from attnlab.runs.folder import ROOT, fresh_path, may_begin

if TYPE_CHECKING:
    from attnlab.jobs.engine import JobConfig, RunOptions

Recipe = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="RECIPE", help="YAML recipe; flags override it.", rich_help_panel="Run"),
]
Run = Annotated[
    Path | None,
    typer.Option(
        "--run", metavar="FOLDER", help="Folder of the run (default: a new one in runs/).", rich_help_panel="Run"
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing run folder.", rich_help_panel="Run")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in --run.", rich_help_panel="Run")]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Print configuration, parameters, steps, time and memory, and stop.", rich_help_panel="Run"
    ),
]


def _command(kind: str, doc: str) -> Any:
    @with_flags(LaunchConfig)
    @with_flags(config_of(kind))
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
        launch = launch_settings(LaunchConfig, launching)
        if launch is not None:
            refuse_with_slurm(overwrite=overwrite, dry_run=dry_run)
        config = _resumed(kind, recipe, flags, run, overwrite) if resume else load(config_of(kind), recipe, flags)
        if launch is not None:
            check_files_exist(config)
            folder = run or fresh_path(ROOT, kind)
            again = [*PROGRAM, "resume", str(folder)]
            if not resume and folder.exists():
                may_begin(folder)
            on_each = (resumed_processes_per_node if resume else processes_per_node)(launch.slurm, config.machine)
            begin = again if resume else _begin(context, on_each * launch.slurm.nodes, config, folder)
            submit_command(launch, kind, folder, begin, again, on_each)
            return
        from attnlab.jobs.engine import RunOptions

        start(kind, config, RunOptions(run, overwrite, resume, dry_run))

    command.__doc__ = doc
    return command


def _begin(context: typer.Context, processes: int, config: JobConfig, folder: Path) -> list[str]:
    """The command as it was typed, with the processes of all nodes and the folder that was chosen."""
    if processes == config.machine.processes:
        return [*typed_command(context, "run"), f"--run={folder}"]
    number = parameter_name(("machine", "processes"))
    return [*typed_command(context, "run", number), f"--processes={processes}", f"--run={folder}"]


def start(kind: str, config: JobConfig, options: RunOptions) -> None:
    """Run a job, in several processes if it asks for them, and say where its folder is."""
    from attnlab.distributed.rank import find_rank

    if config.machine.processes > 1 and find_rank() is None and not options.dry_run:
        _start_several(kind, config, options)
    else:
        _start_one(kind, config, options)


def _start_several(kind: str, config: JobConfig, options: RunOptions) -> None:
    """This command again in each process: the first one makes the run and speaks."""
    from attnlab.launch.processes import run_processes
    from attnlab.runs import fresh_path
    from attnlab.training.setup import must_be_possible

    must_be_possible(config.machine)
    path = options.path or fresh_path(options.root, kind)
    words = sys.argv[1:] if options.path else [*sys.argv[1:], f"--run={path}"]
    code = run_processes(config.machine.processes, [sys.executable, "-m", "attnlab", *words], path)
    raise typer.Exit(code)


def _start_one(kind: str, config: JobConfig, options: RunOptions) -> None:
    from attnlab.distributed.team import joined
    from attnlab.jobs.registry import run_kind
    from attnlab.runs import fresh_path, read_record

    with joined(config.machine.device) as team:
        if team.count > 1:
            chosen = team.from_first(lambda: options.path or fresh_path(options.root, kind))
            options = replace(options, path=chosen)
        path = run_kind(kind, config, options)
    if path is not None:
        for name, value in read_record(path).get("results", {}).items():
            console.result(f"{name}: {value:.4f}" if isinstance(value, float) else f"{name}: {value}")
        console.result(f"run: {path}\nreport: {path / 'report.html'}")


def _resumed(kind: str, recipe: Path | None, flags: dict[Key, Any], run: Path | None, overwrite: bool) -> JobConfig:
    """The configuration of the run to go on with; flags that would change it are refused."""
    from attnlab.jobs.engine import must_be_resumable, saved_config
    from attnlab.runs import read_record

    if run is None:
        raise UserError("--resume needs --run: the folder of the run to go on with.")
    if overwrite:
        raise UserError("--resume and --overwrite contradict each other: give one of them.")
    found = read_record(run)["kind"]
    if found != kind:
        raise UserError(f"{run} is a {found} run: use 'attnlab resume {run}'.")
    must_be_resumable(run)
    saved = saved_config(run, config_of(kind))
    if recipe or flags:
        must_keep(saved, load(config_of(kind), recipe, flags), flags, recipe)
    return saved


def must_keep(saved: Section, asked: Section, flags: Iterable[Key], recipe: Path | None) -> None:
    """What continues keeps its configuration: a setting that was given and differs is refused."""
    for key in sorted(flags if recipe is None else leaves(type(asked))):
        kept, wanted = value_of(saved, key), value_of(asked, key)
        if wanted not in (kept, "auto"):  # 'auto' was settled when the run began
            raise UserError(
                f"a resumed run keeps its configuration, and {'.'.join(key)} is {kept!r} "
                f"there, not {wanted!r}: leave it out or start a new run."
            )


@with_flags(LaunchConfig)
def resume(
    launching: dict[Key, Any], run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of the run.")]
) -> None:
    """Go on with an interrupted or failed run, exactly where its last checkpoint is."""
    from attnlab.jobs.engine import RunOptions, must_be_resumable, saved_config
    from attnlab.runs import read_record

    launch = launch_settings(LaunchConfig, launching)
    kind = read_record(run)["kind"]
    if kind == "compare":
        raise UserError(f"{run} is a comparison: go on with 'attnlab compare --run {run} --resume'.")
    if kind == "sweep":
        raise UserError(f"{run} is a sweep: go on with 'attnlab sweep --run {run} --resume'.")
    if kind not in KINDS:
        raise UserError(f"{run} is a {kind} run, which cannot be resumed: start it again.")
    must_be_resumable(run)
    config = saved_config(run, config_of(kind))
    if launch is not None:
        check_files_exist(config)
        again = [*PROGRAM, "resume", str(run)]
        submit_command(launch, kind, run, again, again, resumed_processes_per_node(launch.slurm, config.machine))
        return
    start(kind, config, RunOptions(run, resume=True))


def register(app: typer.Typer) -> None:
    for kind, entry in KINDS.items():
        app.command(kind, epilog=example(entry.example))(_command(kind, entry.help))
    app.command(epilog=example("attnlab resume runs/my-run"))(resume)
