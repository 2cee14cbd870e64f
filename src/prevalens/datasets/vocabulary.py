"""Words for generated texts: the subjects of a help desk, and the words between them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, product

__all__ = ["WORDS_PER_SUBJECT", "everyday_words", "subjects"]

WORDS_PER_SUBJECT = 12

#: From frequent to rare, as are the words of each.
_SUBJECTS = {
    "billing": "invoice charge payment balance card overdue receipt fee paid tax cost statement",
    "login": "password account sign reset locked username code link email access session expired",
    "delivery": "parcel courier shipment tracking late address warehouse box arrived van dock lost",
    "refund": "money return cancel rebate credit claim dispute approve policy reimburse owed gift",
    "app": "phone update screen install button version android tablet swipe icon menu notification",
    "crash": "error freeze restart bug fails report trace unexpected closes exception hang corrupt",
    "speed": "slow loading minutes timeout lag wait forever spinner performance queue delay server",
    "printer": "paper ink tray jam cartridge scan toner print copy page driver offline",
    "network": "wifi router connection signal cable drops internet modem firewall port outage vpn",
    "security": "phishing suspect fraud breach hacked virus unknown alert token verify scam leak",
    "contract": "terms renew plan clause upgrade notice signed duration legal expiry tier quote",
    "praise": "thanks great helpful friendly excellent love kind superb quick perfect happy nice",
}
_EVERYDAY = (
    "please help today since morning problem tried again still need hello customer yesterday call "
    "asked told week support question order number time happens works issue know contact tell "
    "nothing once first colleague office desk monday friday team message answer try look find "
    "moment reply anything change service open check wrong new old store people best regards"
)
_STARTS = ("ba", "do", "fi", "gu", "ka", "lo", "mi", "nu", "pe", "ra", "so", "ti", "vu", "ze")
_ENDS = ("ben", "cor", "dal", "fin", "gor", "lam", "mer", "nol", "pas", "rit", "sun", "tek")


def subjects(n: int) -> list[tuple[str, list[str]]]:
    """Name and words of `n` subjects; after the first twelve they are invented."""
    known = [(name, words.split()) for name, words in _SUBJECTS.items()]
    invented = map("".join, product(_STARTS, _STARTS, _STARTS, _ENDS))
    while len(known) < n:
        words = list(islice(invented, WORDS_PER_SUBJECT))
        # The supply is large, but not endless: number the words of a second round.
        words += [f"word{len(known)}x{i}" for i in range(WORDS_PER_SUBJECT - len(words))]
        known.append((f"topic_{len(known) + 1}", words))
    return known[:n]


def everyday_words() -> Sequence[str]:
    """Words that say nothing about a ticket's subject, from frequent to rare."""
    return list(dict.fromkeys(_EVERYDAY.split()))
