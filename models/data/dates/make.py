#!/usr/bin/env python3
"""make.py -- writes dates in words and in the form of ISO 8601: the arrays of models/dates.tn.

    models/data/dates/make.py [DIR]      DIR: where the arrays go (default: this directory)
    models/data/dates/make.py -          reads dates from standard input, one a line, and writes them as an array to standard output

    train_x.npy (20000, 48) u8: the letters of a date in words     test_x.npy (2000, 48)
    train_y.npy (20000, 10) u8: the letters of the same date       test_y.npy (2000, 10)

"the twenty-eighth of november, 2026" becomes "2026-11-28".  A letter of the words is its index in WORDS, counted from 1; 0 is
padding.  A letter of the answer is its index in ANSWER.  Each date is drawn from 1900-01-01 to 2099-12-31 and written in one of nine
forms.  Needs only Python's standard library.
"""
import datetime
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.dont_write_bytecode = True                        # no __pycache__ beside the data
from arrays import drawn, save, stored

LENGTH = 48
WORDS = "abcdefghijklmnopqrstuvwxyz0123456789 ,.-"    # 40 letters: tokens 1 to 40
ANSWER = "0123456789-"
MONTHS = "january february march april may june july august september october november december".split()
DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
ONES = "first second third fourth fifth sixth seventh eighth ninth".split()
TEENS = "tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth".split()


def ordinal(day):
    """28 -> "twenty-eighth"."""
    if day in (20, 30):
        return {20: "twentieth", 30: "thirtieth"}[day]
    tens = {2: "twenty-", 3: "thirty-"}.get(day // 10, "")
    return TEENS[day - 10] if 10 <= day < 20 else tens + ONES[day % 10 - 1]


def suffix(day):
    """28 -> "28th"."""
    return f"{day}" + ("th" if 10 <= day < 20 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th"))


def words(date, r):
    day, year, month = date.day, date.year, MONTHS[date.month - 1]
    weekday = DAYS[date.weekday()]
    forms = (f"{day} {month} {year}", f"{month} {day}, {year}", f"{weekday}, {month} {day}, {year}", f"{day} {month[:3]} {year}",
             f"{month[:3]} {suffix(day)}, {year}", f"the {suffix(day)} of {month} {year}", f"the {ordinal(day)} of {month}, {year}",
             f"{weekday} the {ordinal(day)} of {month} {year}", f"{day}.{date.month}.{year}")
    return r.choice(forms)


def letters(text):
    """-> LENGTH bytes: the tokens of a date in words.  Letters that WORDS does not have count as a space."""
    text = text.strip().lower()[:LENGTH]
    return bytes(WORDS.index(c if c in WORDS else " ") + 1 for c in text).ljust(LENGTH, b"\0")


def make(out, split, n, r):
    first, last = datetime.date(1900, 1, 1).toordinal(), datetime.date(2099, 12, 31).toordinal()
    dates = [datetime.date.fromordinal(r.randint(first, last)) for _ in range(n)]
    save(f"{out}/{split}_x.npy", "|u1", (n, LENGTH), b"".join(letters(words(d, r)) for d in dates))
    save(f"{out}/{split}_y.npy", "|u1", (n, 10), b"".join(bytes(map(ANSWER.index, d.isoformat())) for d in dates))


if sys.argv[1:] == ["-"]:
    lines = sys.stdin.read().splitlines()
    sys.stdout.buffer.write(stored("|u1", (len(lines), LENGTH), b"".join(map(letters, lines))))
else:
    drawn(make, HERE, __doc__)
