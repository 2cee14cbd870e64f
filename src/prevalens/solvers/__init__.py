"""Batched numerical solvers of linear models; they know nothing of what labels mean.

`logistic`, `multinomial` and `svr` are the entrances. The first two turn targets into columns of
parameters, which `path` solves along rising loss weights by the truncated Newton method in
`newton`, on a `design` and with one of the `losses`.
"""
