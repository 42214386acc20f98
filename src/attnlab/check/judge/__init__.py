"""A judge for code that is not trusted: run its functions on secret inputs, and believe nothing but numbers.

candidate.py   a file in a process of its own: ask for a call, get numbers, errors or a death
shelter.py     starts that process with the strongest protection that works; protection.py names the three
inside/        what runs on the other side of the wall
"""
