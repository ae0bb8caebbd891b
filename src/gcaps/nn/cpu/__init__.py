"""Compiled versions of the network's formulas for tensors in CPU memory; elsewhere, the plain layers are used."""
