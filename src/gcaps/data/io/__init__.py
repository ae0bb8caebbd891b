"""Readers and converters, one a file; each checks its source strictly and names what is wrong with it."""
