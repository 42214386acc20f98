"""Where the trials of a sweep are stored: a journal file, SQLite or PostgreSQL, behind Optuna's one interface."""

from __future__ import annotations

import importlib.util
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.base.errors import RunFailed, UserError
from attnlab.config.axes import Axis, Choices, varied
from attnlab.experiments.addresses import JOURNAL, POSTGRES, SQLITE
from attnlab.experiments.results import SweepResults

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler
    from optuna.storages import BaseStorage


WAIT = 30  # seconds for another worker's transaction to end
DAMAGED = (OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError, AssertionError)
"""What Optuna raises about a journal or a database with other contents than it has written."""


class StoreFailed(RunFailed):
    """The store could not be read or written: not the fault of the trial, which is requeued."""


def must_have_optuna() -> None:
    """One sentence where the extra is missing; Optuna prints warnings only."""
    if importlib.util.find_spec("optuna") is None:
        raise UserError("a sweep needs Optuna, which is not installed: pip install 'attnlab[search]'.")
    import optuna

    optuna.logging.set_verbosity(logging.WARNING)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)


def open_store(address: str, root: Path, known: bool = False) -> BaseStorage:
    """The store at an address; one that is missing, locked or broken is one sentence.

    A `known` one is that of an existing sweep: nothing is created in it.
    """
    must_have_optuna()
    if address.startswith(POSTGRES) and importlib.util.find_spec("psycopg") is None:
        raise UserError("a store in PostgreSQL needs psycopg, which is not installed: pip install 'attnlab[postgres]'.")
    with errors_explained(address, root, UserError):
        if address == JOURNAL:
            return _open_journal(root / "journal.log", known)
        if address.startswith(SQLITE):
            return _open_sqlite(address, known)
        return _open_postgres(address, known)


def _open_journal(path: Path, known: bool) -> BaseStorage:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    from attnlab.experiments.journal import JournalLock

    if known and not path.is_file():
        raise FileNotFoundError("there is no such file")
    return JournalStorage(JournalFileBackend(str(path), JournalLock(path)))


def _open_sqlite(address: str, known: bool) -> BaseStorage:
    from optuna.storages import RDBStorage

    if known and not Path(address.removeprefix(SQLITE)).is_file():
        raise FileNotFoundError("there is no such file")
    return RDBStorage(address, engine_kwargs={"connect_args": {"timeout": WAIT}}, skip_table_creation=known)


def _open_postgres(address: str, known: bool) -> BaseStorage:
    from optuna.storages import RDBStorage, get_storage

    from attnlab.experiments.retrying import retrying

    url = address.replace(POSTGRES, "postgresql+psycopg://", 1)
    # A database created with SQL_ASCII does not name the encoding of its texts.
    arguments = {"connect_timeout": WAIT, "client_encoding": "utf8"}
    engine = {"pool_pre_ping": True, "connect_args": arguments}
    database = RDBStorage(url, engine_kwargs=engine, skip_table_creation=known)
    return retrying(get_storage(database), reset=database.remove_session)


@contextmanager
def errors_explained(address: str, root: Path, kind: type[Exception] = StoreFailed) -> Iterator[None]:
    """Turn any error of a store into one sentence that names it."""
    from optuna.exceptions import OptunaError, UpdateFinishedTrialError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except UpdateFinishedTrialError:
        raise
    except (OptunaError, SQLAlchemyError, *DAMAGED) as error:
        cause = error.__cause__ if isinstance(error, OptunaError) and error.__cause__ else error
        reason = " ".join(str(getattr(cause, "orig", None) or cause).split()) or type(cause).__name__
        where = root / "journal.log" if address == JOURNAL else address
        kept = (
            f" Its trials are kept: resume with 'attnlab sweep --run {root} --resume'." if kind is StoreFailed else ""
        )
        raise kind(
            f"the store {where} cannot be used ({reason.rstrip('.')}): does it exist, undamaged and not locked?{kept}"
        ) from None


STARTUP = 8  # trials a guided search draws at random first
LOOKS = 2  # evaluations before a run may be pruned: the first says little
ENOUGH = 8  # finished cells below which importances would be noise


def sampler(search: str, seed: int, number: int) -> BaseSampler:
    """The sampler of one trial, seeded by its number, so that no two workers draw the same."""
    from optuna.samplers import RandomSampler, TPESampler

    seed = seed * 1_000_003 + number
    if search == "guided":
        return TPESampler(seed=seed, n_startup_trials=STARTUP, constant_liar=True)
    return RandomSampler(seed=seed)


def pruner(name: str) -> BasePruner:
    from optuna.pruners import MedianPruner, NopPruner, SuccessiveHalvingPruner

    if name == "median":
        return MedianPruner(n_startup_trials=4, n_warmup_steps=LOOKS)
    return SuccessiveHalvingPruner(min_resource=LOOKS, reduction_factor=3) if name == "halving" else NopPruner()


def distributions(axes: Mapping[str, Axis]) -> dict[str, BaseDistribution]:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    def of(axis: Axis) -> BaseDistribution:
        if isinstance(axis, Choices):
            return CategoricalDistribution(axis.values)
        if axis.whole:
            return IntDistribution(int(axis.low), int(axis.high), log=axis.log)
        return FloatDistribution(float(axis.low), float(axis.high), log=axis.log)

    return {name: of(axis) for name, axis in axes.items()}


def importances(results: SweepResults) -> dict[str, float]:
    """Shares by setting, the most important first, by Optuna's PED-ANOVA (Watanabe et al. 2023).

    Empty where there are too few trials or only one setting varies.
    """
    names = varied(results.axes)
    if len(results.finished) < ENOUGH or len(names) < 2:
        return {}
    import optuna

    drawn = distributions({name: results.axes[name] for name in names})
    study = optuna.create_study(direction="maximize" if results.measure.sign > 0 else "minimize")
    for row in results.finished:
        settings = {name: row.settings[name] for name in names}
        study.add_trial(optuna.create_trial(params=settings, distributions=drawn, value=results.score(row).mean))
    try:
        return {name: float(share) for name, share in optuna.importance.get_param_importances(study).items()}
    except (ValueError, RuntimeError):  # all scores equal: nothing matters
        return {}
