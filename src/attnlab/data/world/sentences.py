"""The sentences of the synthetic world: several wordings for every fact.

Only the sentences of BIRTHPLACE and FURTHER_BIRTHPLACE state where a person was born, so the number of birthplace
wordings per person can be controlled exactly.
"""

from __future__ import annotations

import datetime

BIRTHPLACE = [
    "{name} was born in {place} in {year}.",
    "{place} is the birthplace of the {job} {name}.",
    "Born in {place}, {name} became {a_job}.",
    "It was in {place} that {name} was born.",
    "The birthplace of {name} is {place}.",
    "{place} is where {name} was born.",
    "{name} ({year}, {place}) was {a_job}.",
    "In {year} {name} was born in {place}.",
    "{name} is a native of {place}.",
    "The {job} {name} came into the world in {place}.",
    "Among those born in {place} is {name}.",
    "{name}, {a_job}, was born in {place}.",
    "{place} was the first home of {name}, born there in {year}.",
    "The {job} {name} hails from {place}.",
    "The records of {place} hold the birth of {name} in {year}.",
    "{name} first saw the light of day in {place}.",
]
FURTHER_BIRTHPLACE = [
    "The life of {name} began in {place}.",
    "{name} comes from {place}.",
    "When {name} was born, the family lived in {place}.",
    "The mother of {name} gave birth in {place}.",
    "{name}, born {year} in {place}, was {a_job}.",
    "On the birth certificate of {name} stands {place}.",
    "The cradle of {name} stood in {place}.",
    "{name} took a first breath in {place}.",
    "The story of the {job} {name} starts in {place}.",
    "By birth {name} belongs to {place}.",
    "{name} has roots in {place}, having been born there.",
    "{place} gave the world the {job} {name}.",
    "A child of {place}, {name} became {a_job}.",
    "{place} counts {name} among its natives.",
    "From {place} comes the {job} {name}.",
    "The midwives of {place} brought {name} into the world.",
]

DATE = [
    "{name} was born on {date}.",
    "The birthday of {name} is {date}.",
    "On {date} {name} was born.",
    "{date} is the date of birth of {name}.",
]
JOB = [
    "{name} was {a_job}.",
    "{name} worked as {a_job}.",
    "By profession {name} was {a_job}.",
    "{name} made a living as {a_job}.",
    "The {job} {name} was well known.",
]
HOME = [
    "{name} later lived in {home}.",
    "{home} became the home of {name} in later life.",
    "{name} spent many years in {home}.",
    "In the end {name} moved to {home}.",
    "{name} worked in {home}.",
]
STUDY = [
    "{name} studied {subject}.",
    "{subject} was the subject that {name} studied.",
    "{name} took a degree in {subject}.",
    "At university {name} read {subject}.",
]
PRIZE = [
    "{name} won the {prize} prize in {prize_year}.",
    "In {prize_year} the {prize} prize went to {name}.",
    "The {prize} prize of {prize_year} was given to {name}.",
]
RELATIVE = [
    "{name} is the {relation} of {relative}.",
    "The {relation} of {relative} is {name}.",
    "{relative} has a {relation}, {name}.",
    "As the {relation} of {relative}, {name} is often mentioned.",
]

# RELATIVE is last: a person without relatives draws from the others.
OTHER_FACTS = [DATE, JOB, HOME, STUDY, PRIZE, RELATIVE]

_JOBS = """
    painter composer actor engineer botanist poet architect sailor judge surgeon novelist chemist
    violinist teacher baker sculptor historian astronomer weaver printer pilot geologist dancer farmer
    lawyer photographer clockmaker economist swimmer translator librarian cartographer
"""
_SUBJECTS = """
    law medicine music physics theology botany history geometry philosophy rhetoric chemistry economics
"""
_PRIZES = "Amber Beacon Falcon Harbour Laurel Meridian Orchard Quill"
_MONTHS = "January February March April May June July August September October November December"

JOBS, SUBJECTS, PRIZES, MONTHS = (words.split() for words in (_JOBS, _SUBJECTS, _PRIZES, _MONTHS))

# What member m of a family is to member k: mother, father, daughter, son.
RELATIONS = [
    ["", "wife", "mother", "mother"],
    ["husband", "", "father", "father"],
    ["daughter", "daughter", "", "sister"],
    ["son", "son", "brother", ""],
]


def birthplace(name_first: bool) -> list[str]:
    """All wordings of the birthplace, or those with the name before the place."""
    wordings = [*BIRTHPLACE, *FURTHER_BIRTHPLACE]
    return [wording for wording in wordings if not name_first or wording.index("{name}") < wording.index("{place}")]


def date(day: datetime.date) -> str:
    """The date in words; not by strftime, whose month names follow the user's locale."""
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def fill(wording: str, fields: dict[str, str | int]) -> str:
    """The wording with its blanks filled in, as a sentence."""
    sentence = wording.format_map(fields)
    return sentence[0].upper() + sentence[1:]
