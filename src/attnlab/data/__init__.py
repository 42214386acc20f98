"""Text in, examples out: files of the user's own, and the data sets that come with the lab."""
