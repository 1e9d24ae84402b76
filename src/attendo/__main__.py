"""`python -m attendo` is the command `attendo`."""

from attendo.cli.main import run

run()
