"""Run folders: everything about a run is in its folder."""

from attnlab.runs.folder import ROOT, RunFolder, fresh_path, is_run, read_config, read_record, read_status
from attnlab.runs.metrics import MetricsWriter, read_metrics, series

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
