"""A model folder as something that other people and programs use: HTTP and the web page."""
