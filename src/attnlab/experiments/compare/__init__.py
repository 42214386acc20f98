"""Fair comparisons: the same data, order, budget and shape for every variant, several seeds, intervals."""
