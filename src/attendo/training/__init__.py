"""The trainer: from prepared data to a finished model folder, resumable at any step."""
