"""What runs beside a person's code: nothing here imports attnlab, and nothing here is secret.

    warm.py      the process that has torch: it splits into the judge and the zygote
    zygote.py    forks a keeper for each file; it never knows a seed, a reference or an input
    keeper.py    shuts the person's process in, waits for it, and ends everything that it started
    confine.py   the three protections; system.py has the calls of the kernel that they need
    guard.py     keeps attnlab out of reach of an import
    person.py    the person's process: load the file, call a function, return raw arrays
    loading.py   load a file the way a notebook runs
    frames.py    the messages between the judge and the person's process: numbers, text, arrays, never code

The folder is imported as a package of its own, `inside`, so that a process forked from the zygote does not even hold
the names of the package; its modules therefore import each other relatively.
"""
