"""Running somewhere else: a command handed to Slurm, and what became of it.

config.py       what can be asked of Slurm: flags and a profile file
commandline.py  the command that was typed, without what concerns its launch
task.py         what a job does on its node: run that command, save when told to, go on after
node.py         what a task of several does on its node: start its processes
queue.py        what the cluster says: the queue, the nodes
slurm.py        submitting and cancelling, through submitit
records.py      which jobs belong to which run folder
submit.py       from a command to a job, or to an array of jobs with one that gathers
standing.py     what Slurm and the run folders know of jobs, joined
follow.py       watching until the end
"""
