"""What a trained model answers, how sure it is, and whether it can have known."""
