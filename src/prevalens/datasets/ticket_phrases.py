"""Phrases of which support tickets are made, by label: what customers say, and how they begin."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["CLOSINGS", "FILLERS", "GREETINGS", "PASSING", "PHRASES", "SHARED", "VAGUE"]

#: Sentences of a ticket that has the label; a word in braces stands for one of `FILLERS`.
PHRASES: Mapping[str, tuple[str, ...]] = {
    "billing": (
        "My invoice for {month} shows a charge of {amount} that I cannot explain.",
        "You charged my card twice for order {number}.",
        "The receipt lists a fee nobody told me about.",
        "Why does the statement say {amount} when the plan costs less?",
        "The payment went through but the account still says overdue.",
        "I need a corrected invoice with our tax number.",
        "Your billing page shows the wrong balance.",
        "The discount code was not applied to the bill.",
    ),
    "delivery": (
        "The {product} has not arrived and tracking stopped {day}.",
        "The courier left the parcel at the wrong address.",
        "My shipment has been in the warehouse for {count} days.",
        "The box was open and the {product} was missing.",
        "The driver never rang and the parcel went back.",
        "Tracking says delivered, but nothing is here.",
        "Order {number} was promised for {day} and is still not here.",
        "The {product} came with a broken corner, the packaging was torn.",
    ),
    "refund": (
        "I want my money back for order {number}.",
        "I returned the {product} {count} weeks ago and still wait for the refund.",
        "When will the {amount} be credited to my card?",
        "Please reimburse the full amount.",
        "You promised a refund {day} and nothing has happened.",
        "I am sending the {product} back, how do I get my money?",
        "The return was accepted but only half of it was refunded.",
    ),
    "login": (
        "I cannot sign in, the password is not accepted.",
        "The reset link in the email has expired again.",
        "My account is locked after three tries.",
        "The code for the second factor never arrives.",
        "It logs me out every {count} minutes.",
        "I changed my phone and lost access to the account.",
        "The login page says my username does not exist.",
    ),
    "bug": (
        "The app crashes when I open the {screen}.",
        "Pressing save in the {screen} shows an error message.",
        "After the update the {screen} stays empty.",
        "The export writes a broken file.",
        "The search finds nothing although the {product} is there.",
        "It freezes on my {device} and I have to restart it.",
        "Dates in the {screen} are off by one day, this looks like a bug.",
        "I get an unexpected error {number} in the {screen}.",
    ),
    "slow": (
        "The {screen} takes {count} minutes to load.",
        "Everything is terribly slow since {day}.",
        "The page hangs with a spinner and then times out.",
        "On my {device} scrolling lags badly.",
        "Loading the {screen} takes forever in the morning.",
        "The server answers with a timeout most of the day.",
    ),
    "cancel": (
        "Please cancel my subscription at the end of {month}.",
        "I want to close the account for good.",
        "How do I end the contract?",
        "We will not renew the plan.",
        "Stop the subscription, we move to another supplier.",
        "I cancelled {day} and it is still active.",
    ),
    "wish": (
        "It would be great to export the {screen} as a spreadsheet.",
        "Could you add a dark mode for the {device}?",
        "Please offer a way to sort the {screen} by date.",
        "I miss an option to share the {screen} with colleagues.",
        "A suggestion: let us choose the day of the delivery.",
        "Is there a plan to support the {device}?",
    ),
    "praise": (
        "Your colleague was friendly and solved it in {count} minutes.",
        "I love the new {screen}, well done.",
        "Thanks for the quick help {day}.",
        "Excellent service, I will recommend you.",
        "The {product} is wonderful, exactly what I wanted.",
        "Great work, everything runs perfectly now.",
    ),
}

#: Sentences that belong to either of two labels, and do not tell which.
SHARED: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("billing", "refund"): (
        "The {amount} on my card is not right, please look into it.",
        "Order {number} was paid, but the amount is wrong.",
    ),
    ("delivery", "refund"): (
        "Order {number} never came, what happens now?",
        "The {product} is damaged, what can you do?",
    ),
    ("bug", "slow"): (
        "The {screen} does not open on my {device}.",
        "The app stops responding in the {screen}.",
    ),
    ("login", "bug"): ("The app does not let me in since the update.",),
    ("cancel", "billing"): ("I do not want to be charged for {month}.",),
    ("wish", "bug"): ("The {screen} cannot be sorted on my {device}.",),
}

#: What a label's words sound like in a ticket that does not have it.
PASSING: Mapping[str, tuple[str, ...]] = {
    "billing": ("The invoice is fine, by the way.", "I have paid the bill for {month}."),
    "delivery": ("The parcel itself arrived {day}.", "The courier was on time."),
    "refund": ("I do not want a refund.", "The refund for order {number} came, that is settled."),
    "login": ("I can sign in without trouble.", "I found this after I changed my password."),
    "bug": ("The app itself runs without errors.", "The last update fixed the crash."),
    "slow": ("It is fast enough for us.", "I waited {count} minutes on the phone."),
    "cancel": ("We would like to stay with you.", "I do not want to cancel, only to ask."),
    "wish": ("I do not need new options.", "The export works, that is all we need."),
    "praise": ("I was happy until {day}.", "Usually your service is great."),
}

#: A customer who does not say what it is about.
VAGUE = (
    "It is the same problem as last week.",
    "Please see the ticket I sent {day}.",
    "As discussed on the phone, this is still open.",
    "Nothing has changed since my last message.",
)

GREETINGS = (
    "Hello,",
    "Hi there,",
    "Good morning,",
    "Dear team,",
    "Dear support,",
    "To whom it may concern,",
    "Hi, customer {number} here.",
)
CLOSINGS = (
    "Please help.",
    "Kind regards",
    "Thanks in advance.",
    "Please answer this week.",
    "I can be reached by phone.",
    "Looking forward to your answer.",
    "What should I do?",
)

#: What stands for a word in braces; numbers are drawn.
FILLERS: Mapping[str, tuple[str, ...]] = {
    "product": ("lamp", "desk", "kettle", "keyboard", "chair", "printer", "blender", "tent"),
    "screen": ("calendar", "order list", "dashboard", "report", "basket", "settings", "inbox"),
    "device": ("phone", "tablet", "laptop", "old phone", "work computer"),
    "day": ("yesterday", "on Monday", "last week", "on Friday", "this morning", "on Tuesday"),
    "month": ("January", "March", "April", "June", "August", "October", "this month"),
    "count": ("two", "three", "five", "ten", "twenty"),
}
