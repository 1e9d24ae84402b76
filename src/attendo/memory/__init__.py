"""Translation memory: what people have translated or corrected, to be found and learned again."""
