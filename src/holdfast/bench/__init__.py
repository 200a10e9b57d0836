"""What the engine costs, measured on this machine: ratios of two sides of one run, taken in turns.

Absolute figures depend on the machine and on who else uses it; a ratio of two sides that were measured a moment apart
says much the same everywhere. `holdfast bench` prints both, with the range over the rounds and what others used of the
processors meanwhile.
"""
