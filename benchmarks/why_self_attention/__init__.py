"""Why self-attention: section 4 and Table 1 of the paper, measured.

Time, memory and operations of four layers (`layers`) are measured (`measure`) for increasing
sequence lengths (`study`); growth and crossings are computed (`growth`), reported (`report`) and
plotted (`picture`). Run `python -m benchmarks.why_self_attention`.
"""
