"""An answer is retrieved when a line that names the person holds it."""

from attnlab.evaluation.trace import MADE_UP, NEVER_NAMED, RETRIEVED, Line, Reading, stands_in
from attnlab.evaluation.unseen_names import recombine

READING = Reading(
    [
        Line(1, "Ada Low was born in New York and lived in Oslo."),
        Line(3, "Bo Ek. Bo Ek (born 1900 in Yorkshire) was a painter."),
        Line(4, "The son of Ada Low, a sailor, was Ivar Low."),
    ]
)


def test_lines_that_name_the_person_and_hold_the_answer() -> None:
    trace = READING.trace("Ada Low", "New York")
    assert [line.number for line in trace.lines] == [1, 4] and trace.holding == [1] and trace.kind == RETRIEVED
    assert READING.trace("Ada Low", "Yorkshire").kind == MADE_UP  # it stands in somebody else's line
    assert READING.trace("Ada Ek", "Oslo").kind == NEVER_NAMED  # both words occur, the name does not
    assert READING.trace("Bo Ek", "York").kind == MADE_UP  # a piece of a word is no answer
    assert READING.trace("Ada Low", "").kind == MADE_UP


def test_names_with_other_characters() -> None:
    reading = Reading([Line(1, "Séan O'Brien-Wu Jr. was born in St. Louis."), Line(2, "李小龍 生於 舊金山.")])
    assert reading.trace("Séan O'Brien-Wu Jr.", "St. Louis").kind == RETRIEVED
    assert reading.trace("李小龍", "舊金山").kind == RETRIEVED
    assert reading.naming("?!") == [] and not stands_in("(", "a")


def test_recombined_names_occur_nowhere_and_their_halves_do() -> None:
    names = ["Ada Low", "Bo Ek", "Cy van Dam", "Plato"]
    taken = {"Ada Ek", *names}
    found = recombine(names, 100, taken.__contains__, seed=1)
    assert set(found) == {"Ada Dam", "Bo Low", "Bo Dam", "Cy van Low", "Cy van Ek"}
    assert recombine(names, 2, taken.__contains__, seed=1) == found[:2]
    assert recombine(["Plato"], 5, taken.__contains__, seed=1) == []
