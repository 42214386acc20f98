"""Running elsewhere: a command in several processes, or submitted to Slurm, and its status.

config.py       settings of a submission: flags and a profile file
commandline.py  the command that was typed, without the options of its launch
slurm.py        submitting and cancelling, through submitit
submit.py       from a command to a job, or to an array of jobs and one that gathers their results
records.py      which jobs belong to which run folder
task.py         what a job does on its node: run the command, save when asked, resume after a restart
queue.py        what Slurm reports: the queue, the nodes
status.py       the status of jobs, from Slurm and from their run folders
follow.py       watching a submission until its end
processes.py    a command in several processes on this machine
rendezvous.py   the launchers of several machines, and what they tell each other
node.py         the launcher of one node of several
"""
