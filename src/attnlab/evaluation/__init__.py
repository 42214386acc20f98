"""What a trained model answers, how confident it is, and whether training can have contained the answer."""
