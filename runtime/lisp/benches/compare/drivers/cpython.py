"""Measures NAME.py of a folder in CPython: compile and exec from text, the shortest of as many runs as fit into the given seconds.

Prints name, microseconds and answer, with tabs between.
"""

import sys
import time

folder, seconds = sys.argv[1], float(sys.argv[2])


def read(name):
    with open(f"{folder}/{name}", encoding="utf-8") as file:
        return file.read()


inputs = {"d": read("d.json"), "f": read("f.txt")}
for name in "abcdefgh":
    source = read(f"{name}.py")
    best, runs, ends = float("inf"), 0, time.perf_counter() + seconds
    while runs < 3 or time.perf_counter() < ends:
        started = time.perf_counter()
        names = {"data": inputs.get(name)}
        exec(compile(source, name, "exec"), names)
        best, runs = min(best, time.perf_counter() - started), runs + 1
    print(name, best * 1e6, names["answer"], sep="\t")
