"""Check a person's own implementation of attention, function by function and stage by stage.

student_file.py     read a .py file or a notebook, keep its line numbers; what its text alone shows
runner.py           the parent: start the judge's process and collect its results
service.py          the judge's process: examine the files that the parent sends
judge/              run a person's code where it can neither see nor change anything
examination.py      one file: every check, then all once more in another order
checks.py           the checks: which function, on which inputs (sizes.py), against which reference
function_check.py   one check: is the answer right, and if not, how does it differ (compare_answers.py)
diagnose.py         the likely mistake, from known wrong implementations (catalogue/); behaviour.py: state and chance
results.py          the data they exchange; terminal_report.py prints it
"""
