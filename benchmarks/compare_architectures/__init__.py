"""The Transformer beside what it replaced, trained on the same pairs by the same trainer.

What is compared is listed in `systems`; `study` trains and translates, `speed` times each
architecture alone, `findings` works figures out, `report` tells them and `picture` draws them. Run
`python -m benchmarks.compare_architectures`.
"""
