"""What the Transformer replaced, behind the same contract: recurrent and convolutional models."""
