"""The training engine: one loop, and the parts handed to it."""
