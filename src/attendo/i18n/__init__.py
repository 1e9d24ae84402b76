"""Localization of messages: English in the code, Korean in a catalogue."""
