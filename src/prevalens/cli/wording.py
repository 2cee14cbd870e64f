"""Messages in the words of the command line."""

from __future__ import annotations

import re

_KIND = re.compile(r"`kinds=\{'([^`]*)': '([\w-]+)'\}`")
#: A value in quotes that need none on the command line.
_PLAIN = re.compile(r"^'([\w%./:-]+)'$")
#: Options of arguments that sentences begin with.
_SUBJECTS = {
    "drift": "--drift",
    "interval": "--interval",
    "min_items": "--min-items",
    "n_samples": "--samples",
    "size": "--size",
}
_SUBJECT = re.compile(rf"\b({'|'.join(_SUBJECTS)})(?= must (?:be|lie) )")
#: Options that are not named as the argument.
_OPTIONS = {"groups": "group", "kinds": "as", "n_samples": "samples"}
_ARGUMENT = re.compile(r"`([a-z_]+)=([^`]*)`")


def as_options(sentence: str) -> str:
    """The sentence with arguments of Python, such as `min_positives=1`, as options.

    Messages write arguments in backticks, with an equals sign and maybe a value, or begin with
    the name of an argument that must be something else.

    Examples
    --------
    >>> as_options("Give the form of the dates, `date_form='%d/%m/%Y'`, or leave out `time=`.")
    'Give the form of the dates, --date-form %d/%m/%Y, or leave out --time.'
    >>> as_options("If it means 1.5, say `kinds={'price': 'decimal-comma'}`.")
    'If it means 1.5, say --as price=decimal-comma.'
    >>> as_options("interval must lie strictly between 0 and 1; got 90.")
    '--interval must lie strictly between 0 and 1; got 90.'
    """
    sentence = _KIND.sub(lambda found: f"--as {_quoted(f'{found[1]}={found[2]}')}", sentence)
    sentence = _SUBJECT.sub(lambda found: _SUBJECTS[found[1]], sentence)
    return _ARGUMENT.sub(_option, sentence)


def _option(found: re.Match[str]) -> str:
    name = f"--{_OPTIONS.get(found[1], found[1].replace('_', '-'))}"
    value = _PLAIN.sub(r"\1", found[2])
    return f"{name} {value}".rstrip()


def _quoted(word: str) -> str:
    return f'"{word}"' if " " in word else word
