"""The trainer: from prepared data to a finished model folder, surviving everything on the way."""
