"""The Transformer compared with earlier architectures, trained on the same data.

`systems` lists what is compared; `study` trains and translates, `speed` times each architecture
alone, `findings` computes the scores, `report` writes the tables and `picture` plots them. Run
`python -m benchmarks.compare_architectures`.
"""
