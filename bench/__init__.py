"""How fast the library is beside its peers: `make bench`

Each topic is a module with a list `cases`: a name, a goal, and a function that makes what is to be timed, one callable a column.
To measure something new, write such a module and name it in `run.topics`.
"""
