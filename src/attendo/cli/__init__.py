"""The command line: one file per verb, a thin layer over a plain function, imported on demand."""
