"""The report of a sweep in a real browser, headless: nothing but the one file."""

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from test_sweep_engine import saved
from test_sweep_results import finished

from pinnlab.sweep.page import report_page
from pinnlab.sweep.table import collect


BROWSERS = ("chromium", "chromium-browser", "google-chrome")

# Before the page's own script: notes what goes wrong.
FIRST = """<script>
const wrong = [];
window.onerror = (message) => { wrong.push(message); };
document.addEventListener("securitypolicyviolation",
  (event) => wrong.push("blocked " + event.blockedURI + event.violatedDirective));
console.error = (...words) => wrong.push(words.join(" "));
</script>"""

# After it: does what a reader does, and tells the page around it what it saw.
LAST = """<script>
const rows = () => [...document.querySelectorAll("#runs tbody tr.run")];
const column = (i) => rows().map((row) => row.cells[i].textContent);
const heads = [...document.querySelectorAll("#runs th button")];
const click = (name) => heads.find((h) => h.textContent === name).click();
const type = (text) => {
  filter.value = text;
  filter.dispatchEvent(new Event("input"));
};
const found = { heads: heads.map((h) => h.textContent), start: column(0) };
const place = found.heads.indexOf("error");
click("error"); found.up = column(place);
click("error"); found.down = column(place);
found.sorted = document.querySelector("th[aria-sort]").getAttribute("aria-sort");
type("failed"); found.failed = rows().length;
rows()[0].click();
found.reason = document.querySelector("tr.details pre").textContent;
found.bold = document.querySelectorAll("tr.details b").length;
type(""); verdicts.value = "pass"; verdicts.dispatchEvent(new Event("change"));
found.passed = rows().length;
rows()[0].click();
found.details = document.querySelector("tr.details").textContent;
const picture = document.querySelector("tr.details img");
picture.decode().then(() => {
  found.picture = picture.naturalWidth;
  found.main = document.querySelector("#panels img").naturalWidth;
  const inside = document.querySelector("tr.details > td > div");
  found.outside = inside.getBoundingClientRect().right - window.innerWidth;
  found.wide = document.documentElement.scrollWidth - window.innerWidth;
  found.wrong = wrong;
  parent.postMessage(JSON.stringify(found), "*");
}, (problem) => parent.postMessage(JSON.stringify({ wrong: [String(problem)] }), "*"));
</script>"""

AROUND = """<!doctype html>
<iframe src="page.html" style="width: {width}px; height: 800px"></iframe>
<pre id="found"></pre>
<script>
window.onmessage = (event) => {{
  document.getElementById("found").textContent = event.data;
}};
</script>"""


@pytest.fixture(scope="session")
def browser() -> str:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        message = f"no browser: {', '.join(BROWSERS)}"
        if os.environ.get("PINNLAB_NO_SKIPS"):
            pytest.fail(message)
        pytest.skip(message)
    return found


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("study")
    plan, folder = saved(place, "parameters.r = [1, 2, 3, 4]"), place / "out"
    finished(folder, plan, [2e-4, 3e-2, 1e-5, None])
    return report_page(folder, plan, collect(folder, plan), pictures=9)


@pytest.mark.parametrize("width", [1200, 360])
def test_the_table_sorts_filters_and_opens(
    page: str, width: int, browser: str, tmp_path: Path
):
    page = page.replace("<style>", f"{FIRST}<style>", 1)
    (tmp_path / "page.html").write_text(page.replace("</body>", f"{LAST}</body>"))
    (tmp_path / "around.html").write_text(AROUND.format(width=width))
    command = [
        browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-logging=stderr",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--virtual-time-budget=10000",
        "--dump-dom",
        f"file://{tmp_path / 'around.html'}",
    ]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    told = re.search(r'<pre id="found">(.*?)</pre>', ended.stdout, re.DOTALL)
    assert told and told[1], ended.stderr
    found = json.loads(html.unescape(told[1]))
    assert found["wrong"] == []
    assert "CONSOLE" not in ended.stderr
    assert found["heads"][:3] == ["r", "verdict", "error"]
    assert found["start"] == ["1", "2", "3", "4"]
    assert found["up"] == ["1.0e-5", "2.0e-4", "3.0e-2", ""]
    assert found["down"] == ["3.0e-2", "2.0e-4", "1.0e-5", ""]
    assert found["sorted"] == "descending"
    assert found["failed"] == 1 and found["passed"] == 2
    assert found["reason"] == "no <b>finite</b> loss" and found["bold"] == 0
    assert "dt(u) + u*dx(u) = nu*dxx(u)" in found["details"]
    assert found["picture"] > 100 and found["main"] > 100
    assert found["wide"] <= 0 and found["outside"] <= 0


def test_the_page_needs_nothing_else(page: str):
    assert not re.findall(r'(?:src|href)\s*=\s*"(?!data:|\$)', page)
    assert "url(" not in page and "@import" not in page
    script = page.split('<script id="data"')[1].split("</script>")[0]
    assert "<b>" not in script
