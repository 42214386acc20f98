"""How the results of this folder show themselves in a notebook: a figure, a table, and the notes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from attnlab.base import html
from attnlab.interpret import change_figures
from attnlab.interpret.attention_page import attention_page
from attnlab.interpret.head_figures import head_curves, head_map
from attnlab.stats.intervals import Mean

if TYPE_CHECKING:
    from attnlab.interpret.ablation import Ablation, Curve
    from attnlab.interpret.head_history import HeadHistory
    from attnlab.interpret.heads import HeadReport
    from attnlab.interpret.lens import QuestionLens, TextLens
    from attnlab.interpret.maps import AttentionMaps
    from attnlab.interpret.tracing import Trace

HEIGHT = 900  # pixels of an embedded page
ROWS = 12


def maps_html(maps: AttentionMaps) -> str:
    """The page of `attnlab inspect`, in a frame that can reach nothing outside."""
    page = escape(attention_page(maps), quote=True)
    frame = (
        f'<iframe sandbox="allow-scripts" srcdoc="{page}" style="width: 100%; height: {HEIGHT}px; border: 0"></iframe>'
    )
    return _with_notes("", maps.remarks) + frame


def heads_html(report: HeadReport) -> str:
    rows = [
        [scores.kind, scores.source, f"{layer}.{head}", _mean(mean), f"{scores.chance:.3f}"]
        for scores in report.kinds
        for (layer, head), mean in scores.strongest(1)
    ]
    table = html.table(["kind", "on", "strongest head", "score (95%)", "chance"], rows)
    return _with_notes(html.picture(head_map(report), "scores by layer and head") + table, report.notes)


def history_html(history: HeadHistory) -> str:
    kinds = [(scores.kind, scores.source) for scores in history.reports[0].kinds]
    strongest = [[f"{score:.3f}" for score in history.strongest(*kind)] for kind in kinds]
    rows = [[str(step), *scores] for step, *scores in zip(history.steps, *strongest, strict=True)]
    table = html.table(["step", *(f"{kind}, {source}" for kind, source in kinds)], rows)
    picture = html.picture(head_curves(history), "loss and the strongest heads by step")
    return _with_notes(picture + table, history.reports[-1].notes)


def ablation_html(ablation: Ablation) -> str:
    measures = list(ablation.before)
    rows = [[str(e.part), *(_mean(e.changes[name]) for name in measures)] for e in ablation.effects[:ROWS]]
    title = f"removed by {ablation.how}, the most harmful first"
    table = html.heading(title) + html.table(["part", *(f"change of {name}" for name in measures)], rows)
    return _with_notes(html.picture(change_figures.draw_ablation(ablation), title) + table, ablation.notes)


def curve_html(curve: Curve) -> str:
    rows = [[str(p.removed), f"{p.value:.3f}", _mean(p.random)] for p in curve.points]
    table = html.table(["heads removed", f"{curve.measure}, by effect", "random orders"], rows)
    return html.picture(change_figures.draw_curve(curve), f"{curve.measure} by heads removed") + table


def trace_html(trace: Trace) -> str:
    rows = [["clean", _mean(trace.clean)], ["corrupted", _mean(trace.corrupted)]]
    for site in trace.options.sites:
        cell = trace.largest(site)
        rows.append([f"largest, {site}: layer {cell.layer}, {cell.part}", _mean(cell.effect)])
    table = html.table([trace.options.measure, "mean over people (95%)"], rows)
    return _with_notes(html.picture(change_figures.draw_trace(trace), "effect of restoring") + table, trace.notes)


def text_lens_html(lens: TextLens) -> str:
    return _with_notes(html.picture(change_figures.draw_text_lens(lens), "most probable token by layer"), lens.notes)


def question_lens_html(lens: QuestionLens) -> str:
    return _with_notes(html.picture(change_figures.draw_question_lens(lens), "answers readable by layer"), lens.notes)


def _with_notes(content: str, notes: Sequence[str]) -> str:
    return content + "".join(html.paragraph(note) for note in notes)


def _mean(mean: Mean) -> str:
    low_high = mean.interval
    return f"{mean.mean:.3f}" + (f" ({low_high[0]:.3f} to {low_high[1]:.3f})" if low_high else "")
