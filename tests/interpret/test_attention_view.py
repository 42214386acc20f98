"""The page in a real browser: it loads nothing, reports no error, and its numbers are torch's."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.interpret.subjects import TEXT, subject
from tests.tiny_models import tiny_model

from attnlab.interpret.attention_page import PAGE, json_for_html, page_data, write_attention_page
from attnlab.interpret.maps import AttentionMaps, attention_maps
from attnlab.interpret.subject import open_subject

CHROMIUM = shutil.which("chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")

Open = Callable[..., Any]
PATIENCE = 300_000.0  # milliseconds of a machine that is very busy


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS, timeout=PATIENCE)
        yield browser
        browser.close()


@pytest.fixture
def view(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Open the page of some maps; at the end nothing else was requested and no error was reported."""
    file = tmp_path / "page.html"
    requests: list[str] = []
    errors: list[str] = []
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.set_default_timeout(PATIENCE)

    def gate(route: Any) -> None:
        requests.append(route.request.url)
        if route.request.url == file.as_uri():
            route.continue_()
        else:
            route.abort()

    page.route("**/*", gate)
    page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: errors.append(str(error)))

    def view_of(maps: AttentionMaps, place: int = 0, head: int = 0) -> Any:
        write_attention_page(file, maps, place, head)
        page.goto(file.as_uri())
        return page

    yield view_of
    page.close()
    assert set(requests) == {file.as_uri()} and errors == []


def weights_of_links(page: Any, kind: str) -> list[float]:
    return [float(path.get_attribute("data-weight")) for path in page.locator(f"svg path.{kind}").all()]


def click_cell(page: Any, t: int, s: int) -> None:
    """With the keys, from the first cell on; as a reader without a mouse."""
    page.locator(".large canvas").focus()
    for key, count in (("ArrowDown", t + 1), ("ArrowRight", s)):
        for _ in range(count):
            page.keyboard.press(key)
    page.keyboard.press("Enter")


def steps(page: Any) -> dict[str, float]:
    shown = page.locator(".steps li").all()
    return {item.get_attribute("data-step"): float(item.get_attribute("data-value")) for item in shown}


def test_pointing_at_a_token_shows_its_links_both_ways(view: Open) -> None:
    maps = attention_maps(subject(), TEXT)
    page = view(maps, 1, 2)
    assert page.locator("h2").inner_text() == "blocks.1.attention, head 2"
    assert page.locator(".thumb").count() == 8
    assert page.locator("svg path").count() == 0
    page.locator('.token[data-place="9"]').hover()
    weights = maps.weights(1, 2)
    visible = 0.03**2  # fainter links are left out
    assert weights_of_links(page, "takes") == pytest.approx([w for w in weights[9].tolist() if w >= visible])
    assert weights_of_links(page, "gives") == pytest.approx([w for w in weights[:, 9].tolist() if w >= visible])
    assert (
        f"“{TEXT[9]}” (9) takes most from “{TEXT[int(weights[9].argmax())]}”" in page.locator(".readout").inner_text()
    )
    page.locator("h2").hover()
    assert page.locator("svg path").count() == 0
    page.locator('.token[data-place="0"]').focus()
    page.keyboard.press("ArrowRight")
    assert weights_of_links(page, "takes") == pytest.approx(weights[1, :2].tolist())


@pytest.mark.parametrize("by", ["mouse", "keys"])
def test_a_cell_is_stepped_through_with_torchs_numbers(view: Open, by: str) -> None:
    maps = attention_maps(subject(positions="alibi"), TEXT)
    page = view(maps, 0, 3)
    t, s = 6, 4
    if by == "keys":
        click_cell(page, t, s)
    else:
        left, top, cell = (int(size) for size in page.evaluate(FRAME))
        page.locator(".large canvas").click(position={"x": left + (s + 0.5) * cell, "y": top + (t + 0.5) * cell})
    attended = maps.attentions[0].attended
    assert attended is not None and attended.queries is not None and attended.keys is not None
    product = attended.queries[0, 3, t] @ attended.keys[0, 3, s]
    weight, value = attended.weights[0, 3, t, s], attended.values[0, 3, s]
    output = attended.heads[0, 3, t]
    assert attended.bias is not None
    expected = {
        "product": product,
        "scaled": product / attended.queries.shape[-1] ** 0.5,
        "biased": product * attended.scale + attended.bias.expand(1, 4, len(TEXT), len(TEXT))[0, 3, t, s],
        "softmax": weight,
        "contribution": weight * value.norm(),
        "share": weight * (value @ output) / (output @ output),
    }
    assert steps(page) == pytest.approx({name: float(number) for name, number in expected.items()}, abs=1e-5)
    assert page.locator("h3").inner_text() == f"“{TEXT[t]}” (6) from “{TEXT[s]}” (4)"


FRAME = """() => {
  const [canvas, count] = [document.querySelector("attention-view").shadowRoot.querySelector(".large canvas"), 22];
  const cell = Math.floor(620 / count);
  return [canvas.clientWidth - 2 - count * cell, canvas.clientHeight - 2 - count * cell, cell];
}"""


def test_hidden_keys_give_negative_infinity_and_a_late_mask_is_shown(view: Open) -> None:
    page = view(attention_maps(subject(), TEXT))
    click_cell(page, 3, 8)
    assert "−∞" in page.locator('[data-step="biased"]').inner_text() and steps(page)["softmax"] == 0
    page = view(attention_maps(subject("naive-mask"), TEXT))
    click_cell(page, 3, 8)
    assert steps(page)["softmax"] > 0.001 and steps(page)["weight"] == 0
    assert "Influence from later tokens although the weights are 0" in page.locator(".agreement").inner_text()


def test_scores_by_another_rule_are_shown_as_they_are(view: Open) -> None:
    maps = attention_maps(subject("synthesizer"), TEXT)
    page = view(maps)
    click_cell(page, 5, 2)
    shown = steps(page)
    assert "product" not in shown and shown["softmax"] == pytest.approx(float(maps.weights(0, 0)[5, 2]), abs=1e-6)


def test_hiding_tokens_renormalises_and_says_so(view: Open, tmp_path: Path) -> None:
    maps = attention_maps(open_subject(tiny_model(tmp_path / "model")), "the film was very good", influence=False)
    page = view(maps)
    assert maps.reading.tokens[0] == "[CLS]" and "divided" not in page.locator(".said").inner_text()
    page.get_by_label("hide special tokens").check()
    page.locator('.token[data-place="2"]').hover()
    row = maps.weights(0, 0)[2, 1:-1]
    assert weights_of_links(page, "takes") == pytest.approx((row / row.sum()).tolist())
    assert "divided by its sum over the keys that are shown" in page.locator(".said").inner_text()
    page.get_by_label("hide special tokens").uncheck()
    page.get_by_label("hide the first token as key").check()
    page.locator('.token[data-place="2"]').hover()
    row = maps.weights(0, 0)[2, 1:]
    assert weights_of_links(page, "takes") == pytest.approx((row / row.sum()).tolist())


def test_influence_is_shown_beside_weights_and_alone_without_them(view: Open) -> None:
    maps = attention_maps(subject(), TEXT)
    page = view(maps)
    page.get_by_label("influence").check()
    assert page.locator(".thumb").count() == 2 and page.locator("h2").inner_text() == "blocks.0.attention, influence"
    computed = maps.attentions[0].influence
    assert computed is not None
    page.locator('.token[data-place="6"]').hover()
    row = computed.matrix[6, :7]
    assert weights_of_links(page, "takes") == pytest.approx((row / row.sum()).tolist(), abs=1e-6)
    maps = attention_maps(subject("aft-full"), TEXT)
    page = view(maps)
    assert page.locator('input[type="radio"]').count() == 0 and page.locator(".thumb").count() == 2
    click_cell(page, 6, 1)
    computed = maps.attentions[0].influence
    assert computed is not None and steps(page)["influence"] == pytest.approx(float(computed.matrix[6, 1]))


def test_the_grid_is_used_with_the_keys(view: Open) -> None:
    page = view(attention_maps(subject(), TEXT, influence=False))
    page.locator(".thumb").first.focus()
    for key in ("ArrowRight", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    assert page.locator("h2").inner_text() == "blocks.1.attention, head 1"
    focused = page.locator('.thumb[aria-pressed="true"]')
    assert focused.get_attribute("aria-label") == "blocks.1.attention, head 1"
    assert focused.evaluate("element => element.getRootNode().activeElement === element")
    assert page.evaluate(UNNAMED) == []


UNNAMED = """() => {
  const { shadowRoot } = document.querySelector("attention-view");
  const isNamed = (part) => part.ariaLabel || part.textContent.trim() || part.labels?.length;
  const parts = [...shadowRoot.querySelectorAll("button, input, canvas[tabindex]")];
  return parts.filter((part) => !isNamed(part)).map((part) => part.outerHTML);
}"""


def test_cross_attention_links_two_texts(view: Open, tmp_path: Path) -> None:
    looked_at = open_subject(tiny_model(tmp_path / "model", "t5", masked=True))
    maps = attention_maps(looked_at, "the film was good", "yes it was", layer="decoder.blocks.0.cross")
    page = view(maps, 0, 1)
    lines = page.locator(".line")
    assert lines.count() == 2
    lines.nth(0).locator('.token[data-place="2"]').hover()
    assert weights_of_links(page, "takes") == pytest.approx(maps.weights("decoder.blocks.0.cross", 1)[2].tolist())
    lines.nth(1).locator('.token[data-place="3"]').hover()
    column = maps.weights("decoder.blocks.0.cross", 1)[:, 3]
    assert weights_of_links(page, "gives") == pytest.approx(column.tolist())


def test_a_narrow_window_shows_the_whole_matrix(view: Open) -> None:
    maps = attention_maps(subject(), TEXT, influence=False)
    page = view(maps)
    wide = page.locator(".large canvas").evaluate("canvas => canvas.clientWidth")
    page.set_viewport_size({"width": 420, "height": 800})
    page.evaluate(DRAWN_NARROWER, wide)  # (wait_for_function needs eval, which the page's policy forbids)
    assert page.evaluate(f"{CANVAS}.getBoundingClientRect().right") <= 420
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    click_cell(page, 6, 4)
    assert steps(page)["softmax"] == pytest.approx(float(maps.weights(0, 0)[6, 4]), abs=1e-5)


CANVAS = 'document.querySelector("attention-view").shadowRoot.querySelector(".large canvas")'
DRAWN_NARROWER = f"""wide => new Promise((done, failed) => {{
  setTimeout(() => failed(new Error("the canvas keeps its width")), 20000);
  const look = () => ({CANVAS}.clientWidth < wide ? done() : requestAnimationFrame(look));
  look();
}})"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def test_another_page_can_use_the_element_as_it_is(browser: Any, tmp_path: Path) -> None:
    """From its modules, with data that are set before it is known, before it is in the page, again, and to nothing."""
    shutil.copytree(PAGE, tmp_path / "modules")
    first, second = (
        json_for_html(page_data(attention_maps(subject(name), TEXT, influence=False if name == "vanilla" else None)))
        for name in ("vanilla", "aft-full")
    )
    (tmp_path / "index.html").write_text(
        f"""<!doctype html><link rel="icon" href="data:,"><attention-view></attention-view>
        <script>
        const view = document.querySelector("attention-view"), other = {second};
        view.data = {first};
        </script>
        <script type="module" src="modules/attention-view.js"></script>"""
    )
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"http://127.0.0.1:{server.server_port}/index.html")
    heading = page.locator("h2")
    assert heading.inner_text() == "blocks.0.attention, head 0" and page.locator(".thumb").count() == 8
    page.evaluate("view.data = other")
    assert heading.inner_text() == "blocks.0.attention, influence" and page.locator(".thumb").count() == 2
    page.evaluate("view.data = null")
    assert page.evaluate("view.shadowRoot.childElementCount") == 0
    page.evaluate("""() => {
      const made = document.createElement("attention-view");
      made.data = other;
      document.body.append(made);
    }""")
    assert heading.count() == 1 and page.locator(".thumb").count() == 2
    page.close()
    server.shutdown()
    server.server_close()
    assert errors == []


def test_text_stays_text(view: Open) -> None:
    maps = attention_maps(subject(), TEXT)
    maps.reading.tokens[0] = "<img src=x onerror=alert(1)>"
    page = view(maps)
    assert page.locator(".token").first.inner_text() == "<img␣src=x␣onerror=alert(1)>"


@torch.no_grad()
def test_dark_and_light_have_legible_text(browser: Any, tmp_path: Path) -> None:
    """At least the contrast that WCAG asks of text, 4.5 to 1."""
    write_attention_page(tmp_path / "page.html", attention_maps(subject(), TEXT))
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme)
        page.set_default_timeout(PATIENCE)
        page.goto((tmp_path / "page.html").as_uri())
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        for selector in ("body", "footer", ".said", ".token", ".readout"):
            ink = page.locator(selector).first.evaluate("element => getComputedStyle(element).color")
            assert contrast(ink, ground) >= 4.5, (scheme, selector)
        page.close()


def contrast(first: str, second: str) -> float:
    """Of two colours as "rgb(1, 2, 3)"."""

    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)
