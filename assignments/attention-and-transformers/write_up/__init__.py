"""From results/*.json to the figures and tables of report.md."""
