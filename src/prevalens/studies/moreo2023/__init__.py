"""Moreo, Francisco and Sebastiani, "Multi-Label Quantification" (2023): its tables, run again.

`plan` has the experiments, `variants` the behaviours of the paper's code that its text does not
describe, `printed` the paper's figures; `comparison` and `reproduction` put ours beside them.
"""
