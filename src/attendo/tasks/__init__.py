"""What a model is trained for; one package per task."""
