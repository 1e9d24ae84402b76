"""The command line: one file a verb, each thin over a plain function, imported only when called."""
