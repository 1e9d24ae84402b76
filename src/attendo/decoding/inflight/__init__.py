"""In-flight batching: sentences join and leave one search at any step."""
