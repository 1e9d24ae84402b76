"""The search for the best target sequence, over any model with the protocol. Ids only."""
