"""The lines of the model that each lesson is about, taken from the source."""
