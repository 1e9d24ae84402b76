"""Why self-attention: section 4 and Table 1 of the paper, measured beside what they say.

Four layers (`layers`) are timed, weighed and counted (`measure`) over ever longer sequences
(`study`); how each grows and where they cross is worked out (`growth`), told (`report`) and drawn
(`picture`). Run `python -m benchmarks.why_self_attention`.
"""
