"""Text in, examples out: the user's files, and the data sets that come with the lab."""
