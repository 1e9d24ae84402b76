"""Look inside: one record of a sentence, with every head, every step and every beam.

`capture(translator, "나는 학생이다.").save("student.json")` writes it; the web page, the offline
page, plots and BertViz read it.
"""

from attendo.inspection.capture import capture
from attendo.inspection.record import Record

__all__ = ["Record", "capture"]
