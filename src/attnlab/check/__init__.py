"""Check a person's own implementation of attention, function by function and stage by stage.

    source.py     read a .py file or a notebook, keep its line numbers
    runner.py     the parent: start a child process, watch its clock, gather what it reports
    child.py      the child: load the file, run the checks, speak in lines of JSON
    stages.py     the checks: which function, on which inputs, against what
    judge.py      is this answer right, and if not, how does it differ (compare.py)
    diagnose.py   the likely mistake, from known wrong implementations (catalogue/)
    results.py    what the parts say to each other; report.py prints it

The parent never imports torch and never runs a line of the person's file.
"""
