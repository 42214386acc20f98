"""What a comparison of a kind of job checks, decides and shows besides its measures."""
