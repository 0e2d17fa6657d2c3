"""The page in headless Chromium: nothing on the console, nothing wider than the window, dark and on paper."""

from __future__ import annotations

import shutil
from contextlib import suppress

import pytest

from sixfold.app.report import write_report

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

WIDER_THAN_THE_WINDOW = """() => [...document.querySelectorAll('body *')]
    .filter(one => !one.closest('.scroll, svg, pre'))
    .filter(one => one.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
    .map(one => one.outerHTML.slice(0, 80))"""
OVERLAPPING_TEXTS = """() => {
    const found = [];
    for (const svg of document.querySelectorAll('.picture svg')) {
        const texts = [...svg.querySelectorAll('text')]
            .map(one => [one.textContent, one.getBoundingClientRect()]);
        for (let i = 0; i < texts.length; i++) for (let j = 0; j < i; j++) {
            const [a, b] = [texts[i][1], texts[j][1]];
            const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
            const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
            if (across > 2 && down > 4) found.push([texts[i][0], texts[j][0]]);
        }
    }
    return found;
}"""


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as play:
        started = None
        with suppress(playwright.Error):
            started = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        if started is None:
            pytest.skip("Chromium does not start here")
        yield started
        started.close()


@pytest.mark.parametrize("name", ["iris", "breast_cancer", "diabetes"])
def test_pages_fit_phones_and_desks_light_and_dark(name, browser, request, tmp_path):
    path, _ = write_report(request.getfixturevalue(name), tmp_path)
    grounds = {}
    for width in (400, 1280):
        for scheme in ("light", "dark"):
            context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
            page = context.new_page()
            said: list[str] = []
            page.on("console", lambda message, said=said: said.append(message.text))
            page.on("pageerror", lambda error, said=said: said.append(str(error)))
            page.on(
                "request",
                lambda asked, said=said: asked.url.startswith(("file:", "data:")) or said.append(asked.url),
            )
            page.goto(path.as_uri())
            page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
            assert page.evaluate("document.documentElement.scrollWidth") == width
            assert page.evaluate(WIDER_THAN_THE_WINDOW) == []
            assert page.evaluate(OVERLAPPING_TEXTS) == []
            assert said == []
            grounds[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
            ink = page.evaluate("getComputedStyle(document.querySelector('.picture svg text')).fill")
            assert ink != grounds[scheme]
            context.close()
    assert grounds == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 28)"}


def test_paper_is_white_whatever_the_screen(browser, iris, tmp_path):
    path, _ = write_report(iris, tmp_path)
    context = browser.new_context(viewport={"width": 690, "height": 900}, color_scheme="dark")
    page = context.new_page()
    page.goto(path.as_uri())
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert page.evaluate("document.documentElement.scrollWidth") == 690  # A4 without its margins
    context.close()
