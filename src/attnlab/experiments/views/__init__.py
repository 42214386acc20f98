"""What a comparison of a kind of job checks, decides and shows besides its measures."""

from __future__ import annotations

from attnlab.experiments.views.view import View


def view_of(job: str) -> View:
    """The view of a job: of most the plain one."""
    if job == "language":
        from attnlab.experiments.views.language import LanguageView

        return LanguageView(job)
    if job == "classify":
        from attnlab.experiments.views.classify import ClassifyView

        return ClassifyView(job)
    return View(job)
