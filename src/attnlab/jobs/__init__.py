"""What the lab trains: a job turns a configuration into parts, and `train_run` trains them in a run folder."""
