"""A track of ten steps from an empty file to a Transformer: `attendo lessons build DIR`.

`finished` is the only copy of the code: stubs and solutions are cut from it (`steps`). The file of
the learner is checked in a process of its own (`check_file`, `run_checks`) against the numbers of
the lessons and `attendo.model`; `folder` adds the next step once the last one passes.
"""
