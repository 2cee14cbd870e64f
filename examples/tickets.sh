#!/bin/sh
# From labelled tickets to a report, as in the README. Runs in a minute or two; needs no network.
#
#     sh examples/tickets.sh [FOLDER]
#
# METHOD names another method than the automatic choice, such as METHOD='lr+pacc'.
set -eu
mkdir -p "${1:-tickets-example}"
cd "${1:-tickets-example}"

prevalens demo --files tickets

# Learn from labelled tickets. Everything is in one file, which may be shared.
prevalens fit tickets/train.csv -o model.prevalens --text text --tags tags --sep ';' --method "${METHOD:-auto}"

# Should it be trusted? On labelled tickets it has not seen.
prevalens evaluate model.prevalens tickets/labelled.csv --tags tags --sep ';' --html trust.html

# How frequent is each label in every month? With a report to open in a browser.
prevalens quantify model.prevalens tickets/months --by-time date --html report.html -o months.csv

# Which method is closest on these tickets?
prevalens compare tickets/train.csv --text text --tags tags --sep ';' --folds 3 --html methods.html \
  --methods "${METHODS:-naive;lr+cc;lr+pacc;lr+rq(pcc,ridge)}"
