"""Public corpora: a catalogue of addresses, licenses and checksums, and their download."""
