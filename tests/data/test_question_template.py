"""The name in a question is what differs between questions."""

import pytest

from attnlab.data.question_template import QuestionTemplate
from attnlab.data.sequences import common_start


@pytest.mark.parametrize(
    ("questions", "name"),
    [
        (["Where was Ada Low born?", "Where was Bo Ek born?"], "Ada Low"),
        (["Where was Anna Olsen born?", "Where was Anders Jansen born?"], "Anna Olsen"),  # names begin and end alike
        (["In which town did Ada Low grow up?", "In which town did Bo Ek grow up?"], "Ada Low"),
        (["Birthplace of Ada Low?", "Birthplace of Bo Glow?"], "Ada Low"),
        (["Ada Low was born in", "Bo Ek was born in"], "Ada Low"),
        (["Ada Low", "Bo Ek"], "Ada Low"),
    ],
)
def test_it_is_found_in_any_form_of_question(questions: list[str], name: str) -> None:
    template = QuestionTemplate.of(questions)
    assert template.name_in(questions[0]) == name
    assert template.question_about(name) == questions[0]


def test_another_form_has_no_name() -> None:
    template = QuestionTemplate.of(["Where was Ada Low born?", "Where was Bo Ek born?"])
    for question in ("When was Ada Low born?", "Where was Ada Low?", "Where was  born?", "Where was born?", ""):
        assert template.name_in(question) is None


def test_common_start_of_texts_and_lists() -> None:
    assert common_start(["Where was A", "Where was B", "Where is"]) == 6
    assert common_start([[1, 2, 3], [1, 2], [1, 2, 4]]) == 2
    assert common_start(["same", "same"]) == 4
