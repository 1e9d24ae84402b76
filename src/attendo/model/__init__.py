"""Section 3 of the paper: the model, from attention to the whole Transformer. Tensors and ids only.

Read it in this order: masks, attention, feed_forward, layers, positional, embeddings, encoder,
cache, decoder, initialisation, transformer, presets; local_attention when restricted attention
matters. Shape letters: B batch, S source length, T target length, H heads, K head size, D d_model,
F d_ff, V vocabulary, N = B x beam.
"""
