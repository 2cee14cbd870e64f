"""Check the built site: ``python docs/site/check.py site``; `make check-docs` does it.

Every page is parsed strictly as HTML, its links must lead to pages and places that exist, and, in
Chromium, it must ask nothing of other servers and have no violation that axe finds, in light and
dark colours. The search must find "interval".
"""

from __future__ import annotations

import functools
import http.server
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import axe_core_python
import html5lib
from playwright.sync_api import Page, sync_playwright

#: Other servers may be linked to, but nothing may be loaded from them.
LINKS = {("a", "href"), ("link", "href"), ("img", "src"), ("script", "src"), ("source", "src")}
#: Rules of the Web Content Accessibility Guidelines, levels A and AA.
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
#: Rows of a table are alike: the first ones stand for all, else axe takes minutes per page.
LONGEST = 10
SHORTEN = "n => document.querySelectorAll(`tr:nth-child(n+${n})`).forEach(row => row.remove())"


def main(site: Path) -> None:
    """Check everything, print what is wrong, and fail if anything is."""
    pages = [p for p in sorted(site.rglob("*.html")) if "_static" not in p.parts]
    trees = {page: parsed(page) for page in pages}
    wrong = [message for page, (_, errors) in trees.items() for message in errors]
    places = {page: identifiers(tree) for page, (tree, _) in trees.items()}
    wrong += [broken for page in pages for broken in bad_links(page, trees[page][0], places)]
    wrong += in_browser(site, pages)
    print("\n".join(wrong))
    sys.exit(f"{len(wrong)} problems in {len(pages)} pages" if wrong else 0)


def parsed(page: Path) -> tuple[Any, list[str]]:
    """The elements of a page, and what a strict parser objects to."""
    parser = html5lib.HTMLParser(namespaceHTMLElements=False)
    tree = parser.parse(page.read_text("utf-8"))
    errors = [f"{page}:{line}: {code} {data}" for (line, _), code, data in parser.errors]
    names = [element.get("id") for element in tree.iter() if element.get("id")]
    errors += [f"{page}: the id {name!r} occurs twice" for name in repeated(names)]
    return tree, errors


def repeated(names: list[str]) -> set[str]:
    """The names that occur more than once."""
    return {name for name in names if names.count(name) > 1}


def identifiers(tree: Any) -> set[str]:
    """The places of a page that links may lead to."""
    return {element.get(key) for element in tree.iter() for key in ("id", "name")} - {None}


def bad_links(page: Path, tree: Any, places: dict[Path, set[str]]) -> Iterator[str]:
    """Links of a page that lead nowhere."""
    for element in tree.iter():
        for tag, key in LINKS:
            link = urlsplit(element.get(key, "") if element.tag == tag else "")
            if link.scheme or link.netloc or link.geturl() in ("", "#"):
                continue
            target = (page.parent / unquote(link.path)).resolve() if link.path else page
            missing = not target.exists()
            if missing or (link.fragment and unquote(link.fragment) not in places.get(target, ())):
                yield f"{page}: {link.geturl()} leads nowhere"


def in_browser(site: Path, pages: list[Path]) -> list[str]:
    """What a browser finds: foreign requests, errors of scripts, violations of axe, no search."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    options = {"executable_path": chromium} if chromium else {}
    wrong: list[str] = []
    with served(site) as address, sync_playwright() as driver:
        browser = driver.chromium.launch(args=["--no-sandbox", "--disable-gpu"], **options)
        # Pages with a content security policy would refuse axe.
        page = browser.new_page(bypass_csp=True)
        page.on("request", lambda request: wrong.extend(foreign(request.url, address)))
        page.on("pageerror", lambda error: wrong.append(f"script: {error}"))
        for path in pages:
            place = path.relative_to(site).as_posix()
            page.goto(f"{address}/{place}")
            page.evaluate(SHORTEN, LONGEST)
            # Else axe may see colours in the middle of a change from light to dark.
            page.add_style_tag(content="* { transition: none !important; }")
            for scheme in ("light", "dark"):
                page.evaluate("name => document.documentElement.dataset.theme = name", scheme)
                wrong += [f"{place} ({scheme}): {violation}" for violation in violations(page)]
        if not finds(page, address, "interval"):
            wrong.append("The search does not find 'interval'.")
        browser.close()
    return wrong


def foreign(url: str, address: str) -> list[str]:
    """A complaint about a request to another server."""
    return [] if url.startswith((address, "data:", "blob:")) else [f"asks for {url}"]


def violations(page: Page) -> list[str]:
    """What axe objects to, with the first element of each."""
    if not page.evaluate("'axe' in window"):
        page.add_script_tag(path=Path(axe_core_python.__file__).parent / "axe.min.js")
    found = page.evaluate("rules => axe.run({runOnly: rules})", RULES)["violations"]
    return [f"{one['id']}: {one['help']}: {one['nodes'][0]['html'][:120]}" for one in found]


def finds(page: Page, address: str, word: str) -> bool:
    """Whether the search of the site finds a word."""
    page.goto(f"{address}/search.html?q={word}")
    page.wait_for_selector("#search-results li", timeout=20_000)
    return page.locator("#search-results li").count() > 3


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The site on a free port of this machine."""
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server of files that prints nothing."""

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
