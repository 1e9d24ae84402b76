"""Public corpora: a catalog of URLs, licenses and checksums, and their download."""
