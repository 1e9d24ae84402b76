"""Inspection of a model on one sentence: a record of every head, decoding step and beam.

`capture(translator, "나는 학생이다.").save("student.json")` writes it; the web page, the offline
page, plots and BertViz read it.
"""

from attendo.inspection.capture import capture
from attendo.inspection.record import Record

__all__ = ["Record", "capture"]
