"""What the lab trains: a job turns a configuration into parts, and `run_job` trains them in a run folder."""
