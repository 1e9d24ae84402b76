"""Other models behind the same contract: decoder-only, encoder-only, time series, RNN, ConvS2S."""
