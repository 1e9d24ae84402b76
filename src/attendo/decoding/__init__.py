"""The search for the best target sequence, over any model that keeps the contract. Ids only."""
