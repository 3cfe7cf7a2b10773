"""One question per module, stated in its docstring with the command that runs it: `make bench ONLY=<module>`.

A benchmark asserts the answer first and times it then, with fixed seeds, and reports ratios against named
peers that ran in the same process on the same data. Modules whose name starts with an underscore are shared
parts.
"""
