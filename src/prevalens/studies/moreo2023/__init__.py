"""Moreo, Francisco and Sebastiani, "Multi-Label Quantification" (2023): its tables, run again.

`plan` has the experiments (their methods are in ``methods.toml``) with the behaviours of the
paper's code that its text does not describe, `printed` the paper's figures (``printed.csv``).
`comparison` compares ours with them, `comparison_layout` makes grids of them, `table_summary`
stores means without samples, and `reproduction` makes the page (its texts are in
``captions.toml``). The study uses experiments and reports; of the package only the command line
uses the study.
"""
