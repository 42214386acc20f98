"""An answer is retrieved when a line that names the person contains it."""

from attnlab.evaluation.answer_trace import MADE_UP, NEVER_NAMED, RETRIEVED, CorpusLine, PretrainingText, contains_words
from attnlab.evaluation.unseen_names import recombine_names

TEXT = PretrainingText(
    [
        CorpusLine(1, "Ada Low was born in New York and lived in Oslo."),
        CorpusLine(3, "Bo Ek. Bo Ek (born 1900 in Yorkshire) was a painter."),
        CorpusLine(4, "The son of Ada Low, a sailor, was Ivar Low."),
    ]
)


def test_lines_that_name_the_person_and_contain_the_answer() -> None:
    trace = TEXT.trace("Ada Low", "New York")
    assert [line.number for line in trace.lines] == [1, 4] and trace.with_answer == [1] and trace.kind == RETRIEVED
    assert TEXT.trace("Ada Low", "Yorkshire").kind == MADE_UP  # it is in another person's line
    assert TEXT.trace("Ada Ek", "Oslo").kind == NEVER_NAMED  # both words occur, the name does not
    assert TEXT.trace("Bo Ek", "York").kind == MADE_UP  # a part of a word is not an answer
    assert TEXT.trace("Ada Low", "").kind == MADE_UP


def test_names_with_other_characters() -> None:
    text = PretrainingText(
        [CorpusLine(1, "Séan O'Brien-Wu Jr. was born in St. Louis."), CorpusLine(2, "李小龍 生於 舊金山.")]
    )
    assert text.trace("Séan O'Brien-Wu Jr.", "St. Louis").kind == RETRIEVED
    assert text.trace("李小龍", "舊金山").kind == RETRIEVED
    assert text.lines_naming("?!") == [] and not contains_words("a", "(")


def test_recombined_names_occur_nowhere_and_their_halves_do() -> None:
    names = ["Ada Low", "Bo Ek", "Cy van Dam", "Plato"]
    taken = {"Ada Ek", *names}
    found = recombine_names(names, 100, taken.__contains__, seed=1)
    assert set(found) == {"Ada Dam", "Bo Low", "Bo Dam", "Cy van Low", "Cy van Ek"}
    assert recombine_names(names, 2, taken.__contains__, seed=1) == found[:2]
    assert recombine_names(["Plato"], 5, taken.__contains__, seed=1) == []
