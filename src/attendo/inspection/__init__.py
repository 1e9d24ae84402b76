"""Inspection of a model on one sentence: a record of every head, decoding step and beam.

`capture(translator, "나는 학생이다.").save("student.json")` writes it; the web page, the offline
page, plots and BertViz read it. Without PyTorch only the modules that need none can be imported.
"""

from attendo.core.device import has_torch
from attendo.inspection.record import Record

if has_torch():  # the name of the function is that of its module: it cannot be imported later
    from attendo.inspection.capture import capture

__all__ = ["Record", "capture"]
