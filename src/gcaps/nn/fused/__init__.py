"""The network's inner loops, compiled for CPU; elsewhere the plain layers compute the same."""
