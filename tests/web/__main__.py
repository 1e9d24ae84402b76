"""Run the browser tests: `python -m web` in tests/, or `make test-browser`.

Playwright runs the specs of `frontend/e2e`; this program makes what they look at: the page of
`attendo look`, a server with a trained model, a run that goes on, a server of time series. With
`--slow` it runs what `make test` leaves out: the English pages of the other lessons.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import torch
from support.fork_server import ForkServer

from attendo.lessons.contents import NUMBERS
from web.forecast_plan import list_rows, write_model
from web.lesson_plan import write_plan
from web.live import SENTENCE, STATIC_PAGE, TRANSLATION, Live, write_pairs, write_real_page
from web.site_plan import write_site

REPOSITORY = Path(__file__).resolve().parents[2]
NODE = str(REPOSITORY / "frontend/with_node.sh")
ENGLISH = (1, 4, 14)
"""The lessons whose English pages `make test` opens, too."""


class BrowserTests:
    """Runs specs in a browser and remembers whether all of them passed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.failed: list[str] = []
        self.variables: dict[str, str] = {}

    def find_problem(self) -> str | None:
        """Return why no browser test can run here."""
        found = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
        fetched = Path.home() / ".cache" / "ms-playwright"
        if found:
            self.variables["CHROMIUM"] = found
        elif not any(fetched.glob("chromium*")):
            return "no Chromium on this machine"
        if not (REPOSITORY / "frontend/node_modules/.ready").exists():
            return "the front end is not installed: make web"
        if not (REPOSITORY / STATIC_PAGE).exists():
            return "the web application is not built: make web"
        return None

    def run_unit_tests(self) -> None:
        """Run the front end's own unit tests."""
        done = subprocess.run([NODE, "npm", "run", "--silent", "test"], check=False)
        self.report("unit tests of the front end", is_good=done.returncode == 0)

    def run_specs(self, name: str, *specs: str, may_skip: bool = False, **variables: str) -> None:
        """Run specs, all or those of some files; some must pass and none may be skipped."""
        results = self.folder / f"{name}.json"
        own = {
            "CI": "true",  # what fails once is tried again, and counted as flaky
            "PLAYWRIGHT_JSON_OUTPUT_NAME": str(results),
            "E2E_OUTPUT": str(self.folder / f"output-{name}"),
        }
        done = subprocess.run(
            [NODE, "npx", "playwright", "test", "--reporter=line,json", *specs],
            env={**os.environ, **self.variables, **own, **variables},
            check=False,
        )
        found = json.loads(results.read_text(encoding="utf-8"))["stats"] if results.exists() else {}
        is_complete = found.get("expected", 0) > 0 and (may_skip or not found.get("skipped"))
        self.report(f"{name}: {found}", is_good=done.returncode == 0 and is_complete)

    def report(self, name: str, *, is_good: bool) -> None:
        """Print a result."""
        print(f"browser tests, {name}: {'passed' if is_good else 'FAILED'}", flush=True)
        if not is_good:
            self.failed.append(name)


def run_all(tests: BrowserTests, live: Live, *, is_slow: bool) -> None:
    """Run every spec, or those that `make test` leaves out."""
    if not is_slow:
        tests.run_unit_tests()
        page = write_real_page(live.folder)
        tests.run_specs("pages", may_skip=True, REAL_PAGE=str(page))  # the live specs wait
        write_model(live.folder)
        with live.serving(str(live.folder / "sea")) as address:
            tests.run_specs(
                "forecast",
                "forecast-live.spec.ts",
                SERVE_URL=address,
                SERVE_CSV=str(live.folder / "sea.csv"),
                SERVE_FORECAST="|".join(list_rows(live.folder)),
            )
    write_pairs(live.folder)
    model = live.train()
    languages = ("--source", "ko", "--target", "en")
    with ExitStack() as stack:
        runs = ("--runs", str(live.folder / "runs"))
        address = stack.enter_context(live.serving(str(model), *languages, *runs))
        others = [number for number in NUMBERS if number not in ENGLISH]
        lessons = {"en": others} if is_slow else {"ko": list(NUMBERS), "en": list(ENGLISH)}
        for lang, numbers in lessons.items():
            plan = live.folder / f"plan-{lang}.json"
            write_plan(plan, address, lang, numbers, model, REPOSITORY)
            tests.run_specs(f"lessons-{lang}", "lessons-live.spec.ts", LESSON_PLAN=str(plan))
        if not is_slow:
            site = write_site(live.folder, model)
            tests.run_specs("site", "site-live.spec.ts", **site)
            tests.run_specs("site-webgpu", "site-webgpu.spec.ts", may_skip=True, **site)
            name = stack.enter_context(live.training())
            tests.run_specs(
                "live",
                "/live.spec.ts",
                SERVE_URL=address,
                SERVE_SOURCE=SENTENCE,
                SERVE_TARGET=TRANSLATION,
                SERVE_RUN=name,
            )


def main() -> int:
    """Run the browser tests and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slow", action="store_true", help="what `make test` leaves out")
    options = parser.parse_args()
    os.environ["ATTENDO_LANG"] = "en"
    torch.set_num_threads(1)  # as the server computes: another order of sums, other last digits
    with tempfile.TemporaryDirectory(prefix="attendo-browser-") as name:
        folder = Path(name)
        tests = BrowserTests(folder)
        problem = tests.find_problem()
        if problem is not None:
            print(f"browser tests: SKIPPED, {problem}")
            return int(os.environ.get("CI") == "true")
        server = ForkServer()
        try:
            run_all(tests, Live(server, folder), is_slow=options.slow)
        finally:
            server.close()
    return int(bool(tests.failed))


if __name__ == "__main__":
    sys.exit(main())
