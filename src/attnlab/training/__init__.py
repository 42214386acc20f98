"""The training engine: one loop, and the parts it is given."""
