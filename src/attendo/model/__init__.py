"""Section 3 of the paper: the model, from attention to the whole Transformer. Tensors and ids only.

Read it in this order: masks, attention, feed_forward, layers, positional_encoding, embeddings,
encoder, kv_cache, decoder, initialization, config, transformer, presets. The package `fast`
computes the same results with packed sentences, blocks and preallocated tensors. Shape letters: B
batch, S source length, T target length, H heads, K head size, D d_model, F d_ff, V vocabulary,
N = B x beam.
"""
