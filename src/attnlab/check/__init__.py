"""Check a student's own implementation of attention, function by function and stage by stage.

    student_file.py     read a .py file or a notebook, keep its line numbers
    runner.py           the parent: start a child process, enforce the time limit, collect its events
    child_process.py    the child: load the file, run the checks, report in lines of JSON
    checks.py           the checks: which function, on which inputs, against which reference
    function_check.py   run one check: is the answer right, and if not, how does it differ (compare_answers.py)
    diagnose.py         the likely mistake, from known wrong implementations (catalogue/)
    results.py          the data they exchange; terminal_report.py prints it

The parent never imports torch and never runs a line of the student's file.
"""
