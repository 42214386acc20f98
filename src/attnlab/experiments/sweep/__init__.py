"""Search over the settings of any job: every cell of a grid, at random, or guided by what was found so far."""
