"""From a configuration to a finished run folder: the path of every training command.

A job builds its parts (data, model, objective, evaluation); mistakes of the user are reported there, before
anything is written. The rest is the same for all: resolve 'auto', create or reopen the folder, train, report.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import torch

from attnlab.base import console
from attnlab.base.errors import RunFailed, UserError
from attnlab.base.interrupts import Interrupted, Stopped, StopRequest, listening
from attnlab.base.machine import facts
from attnlab.base.machine.facts import peak, start_peak
from attnlab.base.randomness import seed_everything, seed_process
from attnlab.config import TrainingSection
from attnlab.config.job import JobConfig
from attnlab.data.batching import Batches, BatchPlan
from attnlab.distributed.sharding import shard
from attnlab.distributed.team import current
from attnlab.jobs.job import Parts, RunOptions, TrainedModel
from attnlab.jobs.prepared import Prepared, sizes
from attnlab.jobs.unchanged import must_match, record_changes
from attnlab.report.page import Passage, write_run_page
from attnlab.runs import RunFolder, fresh_path, read_record
from attnlab.runs.checkpoints import Checkpoints, weights_of
from attnlab.runs.metrics import lost_metrics
from attnlab.runs.settings import text_checksum
from attnlab.runs.shared import open_shared
from attnlab.training import setup
from attnlab.training.batch_size import BatchSize, find_batch_size
from attnlab.training.callbacks import Callback, MetricsFile, RunLength, TensorBoard, TrainState
from attnlab.training.compile_choice import choose_compile
from attnlab.training.estimate import Estimate
from attnlab.training.loop import NOT_WRITTEN, Environment, Learner, Plan, Trainer
from attnlab.training.optimizers import Schedule, make_optimizer
from attnlab.training.precision_choice import choose_precision
from attnlab.training.progress import progress

C = TypeVar("C", bound=JobConfig)
KEPT = 2
"""Checkpoints of a run that need not be continued once it is finished; then only its weights."""


class TrainingJob(ABC, Generic[C]):
    """A job that is one training."""

    kind: ClassVar[str]
    prunable: ClassVar[bool] = True

    def __init__(self, config: C) -> None:
        self.config = config
        self.resumed: Path | None = None
        """The folder of the run that is resumed, if one is."""

    @abstractmethod
    def build(self, device: str) -> Parts:
        """Read the data and build the model; mistakes in settings or files are reported here, before any output."""

    def run(self, options: RunOptions) -> Path | None:
        self.resumed = options.path if options.resume else None
        return train_run(self, options)

    def estimate(self) -> Estimate | None:
        return _prepare(self, dry_run=True).estimate()

    def search_batch_size(self) -> BatchSize | None:
        """The batch size that 'auto' or 'largest' would find here and now; None if a number is given."""
        return _prepare(self, dry_run=True).batch_size

    @classmethod
    def score_test(cls, run: Path) -> dict[str, float]:
        """From the run's own results: it was scored on test when it finished."""
        return stored_scores(run)

    @classmethod
    @abstractmethod
    def load(cls, run: Path) -> TrainedModel: ...

    @classmethod
    def passages(cls, run: Path, record: dict[str, Any]) -> Sequence[Passage]:
        return ()


def stored_scores(run: Path) -> dict[str, float]:
    """Every number among the results of a finished run."""
    results = read_record(run).get("results", {})
    return {
        name: float(value)
        for name, value in results.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


class Trainable(Protocol[C]):
    """The part of a job that training needs."""

    config: C

    @property
    def kind(self) -> str: ...

    def build(self, device: str) -> Parts: ...


def train_run(job: Trainable[C], options: RunOptions) -> Path | None:
    """Train; returns the run folder, or None after a dry run."""
    start_peak()
    with console.working(f"{options.label or job.kind}: reading data and building the model ..."):
        prepared = _prepare(job, options.dry_run)
    if options.dry_run:
        prepared.describe()
        return None
    run = open_shared(lambda: _open_run(prepared, options))
    with listening() as stop:
        try:
            _train(prepared, run, options, stop)
        except Stopped as end:
            _end(run, "interrupted", str(end))
            if isinstance(end, Interrupted):
                console.say(f"saved; resume with: {options.resume_command or f'attnlab resume {run.path}'}")
            raise
        except (RunFailed, UserError) as failure:
            _end(run, "failed", str(failure))
            raise
        except KeyboardInterrupt:
            _end(run, "interrupted", "stopped immediately, without saving")
            raise
        except Exception as failure:
            sentence = _not_written(run, failure) if isinstance(failure, OSError) else ""
            _end(run, "failed", sentence or f"{type(failure).__name__}: {failure}")
            if sentence:
                raise RunFailed(sentence) from failure
            raise
        finally:
            run.close()
    return run.path


def _prepare(job: Trainable[C], dry_run: bool) -> Prepared:
    team = current()
    config = job.config = job.config.model_copy(deep=True)  # building may fill in more of it
    config.machine = team.from_first(lambda: setup.resolve(config.machine))
    if not dry_run:
        setup.must_be_together(config.machine)
    setup.must_be_shardable(config.machine, config.optimizer.name)
    if config.training.epochs is None and config.training.steps is None:
        config.training.epochs = config.default_epochs
    torch.set_num_threads(int(config.machine.threads))
    seed_everything(config.training.seed)
    parts = job.build(config.machine.device)
    if not len(parts.data.lengths):
        raise UserError("the training set is empty: there is nothing to train on.")
    changes = list(parts.changes)
    if parts.fit is not None:
        if config.machine.processes > 1:
            raise UserError("a logistic regression is fitted by one process: leave out --processes.")
        return Prepared(job.kind, config, parts, _batches(parts, config, size=1), 0, changes)
    if config.machine.device == "cpu" and team.local_count > facts.cores():
        changes.append(f"{team.local_count} processes share {facts.cores()} cores: fewer would be as fast.")
    found = team.from_first(lambda: _search_batch_size(parts, config))
    if found is not None:
        config.batch.size = found.size
        changes.append(found.sentence())
    batches = _batches(parts, config, size=config.batch.size)
    steps = _steps(batches, config.training)
    if config.machine.precision == "auto":
        config.machine.precision, sentence = team.from_first(
            lambda: choose_precision(parts.model, parts.objective, batches, config, steps)
        )
        changes.append(sentence)
    if config.machine.compile == "auto":
        config.machine.compile, sentence = team.from_first(
            lambda: choose_compile(parts.model, parts.objective, batches, config, steps)
        )
        changes.append(sentence)
    return Prepared(job.kind, config, parts, batches, steps, changes, found)


def _search_batch_size(parts: Parts, config: JobConfig) -> BatchSize | None:
    """None if a size, or a number of tokens, is given."""
    if not isinstance(config.batch.size, str):
        return None
    return find_batch_size(
        parts.model,
        parts.objective,
        _batches(parts, config, size=1),
        config.machine.device,
        config.batch.size,
        config.batch.memory * facts.GIB if config.batch.memory else None,
        config.machine.processes,
        current().local_count if current().count > 1 else None,
    )


def _batches(parts: Parts, config: JobConfig, size: Any) -> Batches:
    batch = config.batch
    plan = BatchPlan(parts.data.lengths, size, batch.tokens, batch.by_length, config.training.seed)
    return Batches(
        parts.data, plan, batch.accumulate, current().rank, config.machine.processes, batch.pieces, batch.workers
    )


def _steps(batches: Batches, training: TrainingSection) -> int:
    if training.steps is not None:
        return training.steps
    return sum(batches.steps_in(epoch) for epoch in range(training.epochs or 0))


def _open_run(prepared: Prepared, options: RunOptions) -> RunFolder:
    """Create the folder of a run, or reopen and complete it."""
    parts = prepared.parts
    search = {"batch_size": asdict(prepared.batch_size)} if prepared.batch_size else {}
    facts = {"data": parts.facts, "steps": prepared.steps, **sizes(parts), **search}
    if options.resume:
        assert options.path is not None
        must_match(options.path, prepared)
        run = RunFolder.reopen(options.path)
        try:
            run.complete(parts.files, files={name: text_checksum(text) for name, text in parts.files.items()}, **facts)
            record_changes(run, prepared)
        except BaseException:
            run.close()
            raise
        return run
    run = RunFolder.create(
        options.path or fresh_path(options.root, prepared.kind),
        prepared.kind,
        config := prepared.config.model_dump(mode="json"),
        prepared.config.training.seed,
        options.overwrite,
        parts.files,
        settings=config,
        changes=[*options.changes, *prepared.changes],
        **facts,
    )
    for change in prepared.changes:
        console.warn(change)
    return run


def _train(prepared: Prepared, run: RunFolder, options: RunOptions, stop: StopRequest) -> None:
    config, parts, team = prepared.config, prepared.parts, current()
    callbacks = list(parts.callbacks)
    if team.first:
        callbacks = [MetricsFile(run.metrics), progress(options.label or prepared.kind), *callbacks]
        if TensorBoard.installed():
            callbacks.append(TensorBoard(run.path / "tensorboard"))
        callbacks += options.callbacks
    seed_process(config.training.seed, team.rank)
    checkpoints = Checkpoints(run.checkpoints, KEPT if config.training.keep is None else config.training.keep)
    if parts.fit is not None:
        told = [MetricsFile(run.metrics), *parts.callbacks, *options.callbacks]
        _conclude(run, prepared, _fit(parts, parts.fit, checkpoints, told, stop))
        return
    sharded = config.machine.sharding == "fsdp"
    model = shard(parts.model, config.machine.device) if sharded else parts.model
    trainer = Trainer(
        Learner(
            model, parts.objective, prepared.batches, parts.evaluate, parts.metric, parts.model if sharded else None
        ),
        Plan(
            make_optimizer(model, config.optimizer, config.machine.precision),
            Schedule(config.schedule, prepared.steps),
            config.training,
            config.optimizer.clip,
        ),
        Environment(
            setup.make_accelerator(config.machine), team, checkpoints, callbacks, stop, config.machine.compile == "on"
        ),
    )
    if options.resume:
        _report_resumed(trainer.restore(), trainer.state, run)
    state = trainer.fit()
    team.from_first(lambda: _conclude(run, prepared, state))


def _fit(
    parts: Parts, fit: Callable[[], int], checkpoints: Checkpoints, callbacks: Sequence[Callback], stop: StopRequest
) -> TrainState:
    """Weights that are found at once are the best there are; interrupted, it begins anew."""
    start, state = time.perf_counter(), TrainState(examples=len(parts.data.lengths))
    for callback in callbacks:
        callback.on_start(state, RunLength(1, 1.0))
    with stop.at_once():
        state.step = state.best_step = state.evaluated_at = fit()
        state.seconds = time.perf_counter() - start
        values = parts.evaluate(parts.model) if parts.evaluate is not None else {}
    state.last, state.best = values, values.get(parts.metric.name) if parts.metric is not None else None
    checkpoints.save_best(state.step, weights_of(parts.model), {"step": state.step, **values})
    for callback in callbacks:
        callback.on_evaluate(state, values, True)
        callback.on_end(state)
    return state


def _conclude(run: RunFolder, prepared: Prepared, state: TrainState) -> None:
    """Score the model, record the results and write the report; then, and only then, the run is finished."""
    with console.working("reporting ..."):
        results = prepared.parts.finish(run, state) if prepared.parts.finish else {}
    padding = 1 - state.tokens / max(1, state.positions)
    run.update_record(
        results=results,
        training=state.to_dict(),
        padding=round(padding, 4),
        peak_memory=peak(prepared.config.machine.device),
    )
    passages, reason = prepared.parts.passages, "stopped early" if state.stopped_early else ""
    shown = passages(run.path, read_record(run.path)) if passages else ()
    write_run_page(run.path, shown, {"state": "finished", "reason": reason})
    run.set_status("finished", reason)
    if prepared.config.training.keep is None:
        Checkpoints(run.checkpoints).keep_weights()


def _report_resumed(has_checkpoint: bool, state: TrainState, run: RunFolder) -> None:
    if has_checkpoint:
        console.say(f"{run.path}: resuming after step {state.step}.")
    else:
        console.warn(f"{run.path}: there is no checkpoint yet, starting from step 0.")
    if lost := lost_metrics(run.metrics, state.metrics_position):
        run.note_change(lost)


def _not_written(run: RunFolder, failure: OSError) -> str:
    """One sentence if a file of the run could not be written; empty for any other failure."""
    inside = failure.filename is not None and Path(str(failure.filename)).is_relative_to(run.path)
    if failure.errno not in NOT_WRITTEN and not inside:
        return ""
    why = NOT_WRITTEN.get(failure.errno or 0, failure.strerror)
    return f"{failure.filename or run.path} could not be written: {why}. Mend that, then 'attnlab resume {run.path}'."


def _end(run: RunFolder, state: str, reason: str) -> None:
    try:
        run.set_status(state, reason)
    except OSError:
        console.warn(f"{run.path}: the reason could not be written to status.json.")
