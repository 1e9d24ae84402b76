"""Other models with the same protocol: decoder-only, encoder-only, time series, RNN, ConvS2S."""
