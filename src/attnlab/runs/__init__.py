"""Run folders: everything about a run is in its folder."""

from attnlab.runs.folder import ROOT, RunFolder, fresh_path
from attnlab.runs.metrics import MetricsWriter, read_metrics, series
from attnlab.runs.record import is_run, read_record
from attnlab.runs.settings import read_config
from attnlab.runs.status import read_status

__all__ = [
    "ROOT",
    "MetricsWriter",
    "RunFolder",
    "fresh_path",
    "is_run",
    "read_config",
    "read_metrics",
    "read_record",
    "read_status",
    "series",
]
