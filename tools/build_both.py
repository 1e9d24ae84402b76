"""Both directions at the same time on one GPU, from the cleaned corpora to the students, in time.

    python tools/build_both.py RESULTS --minutes 22 [--recipes FOLDER] [--set KEY=VALUE ...]

The steps of the teachers and of the students follow from the time that is left and from the speed
of the forward models. `RESULTS/settings.json` keeps them: the same command goes on after a kill.
RESULTS gets a pack of the student in int8 and of the translated test set as soon as they exist, and
the logs. Nothing here needs CTranslate2.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

DIRECTIONS = ("ko-en", "en-ko")
START_SECONDS = 45
"""From the start of a training to its first step: ids, compiling."""
TEST_SECONDS = 45
"""Of the export, and of the translation of the test set."""
STUDENT_SECONDS = 230
MIN_TRANSLATION_SECONDS, MAX_TRANSLATION_SECONDS = 90, 230
"""Of the forward translation with a beam; if it would take longer, it is greedy."""
TRANSLATION_COST = 3.0
"""Of the forward translation, in times of the back-translation: lines times beam."""
STUDENT_COST = 0.4
"""Of a step of the student, in steps of the forward model (measured shares are lower)."""
TEACHER_STEPS, STUDENT_STEPS = (2500, 12_000), (3000, 16_000)
"""The fewest and the most."""


class Builder:
    """Runs `attendo build` for both directions, and notes the times."""

    def __init__(self, results: Path, recipes: Path, given: list[str]) -> None:
        self.results, self.recipes, self.given = results, recipes, given
        results.mkdir(parents=True, exist_ok=True)
        self._settings_path = results / "settings.json"
        self.chosen: dict[str, str] = {}
        if self._settings_path.exists():
            self.chosen = json.loads(self._settings_path.read_text("utf-8"))
        self._begin = time.monotonic()

    def choose(self, key: str, value: object) -> None:
        """Choose a setting of both recipes, unless it was chosen before."""
        self.chosen.setdefault(key, str(value))
        self._settings_path.write_text(json.dumps(self.chosen, indent=2) + "\n", "utf-8")
        self.note(f"{key} = {self.chosen[key]}")

    def note(self, text: str) -> None:
        """Print a line, and keep it."""
        line = f"{time.monotonic() - self._begin:6.0f} s  {text}"
        print(line, flush=True)
        with (self.results / "times.log").open("a", encoding="utf-8") as log:
            log.write(f"{line}\n")

    def both(self, *words: str) -> float:
        """Run a command for both directions; return the seconds, and end if one has failed."""
        begin = time.monotonic()
        with ThreadPoolExecutor(len(DIRECTIONS)) as pool:
            codes = list(pool.map(lambda direction: self._run(direction, words), DIRECTIONS))
        if any(codes):
            sys.exit(1)
        return time.monotonic() - begin

    def pack(self, name: str, step: str) -> None:
        """Pack the result of a step."""
        for direction in DIRECTIONS:
            target = self.results / f"{direction}.{name}"
            if not target.exists():
                self._run(direction, ("--only", step, "--pack", str(target)))

    def _run(self, direction: str, words: tuple[str, ...]) -> int:
        begin = time.monotonic()
        settings = [*self.given, *(f"{key}={value}" for key, value in self.chosen.items())]
        options = [word for setting in settings for word in ("--set", setting)]
        recipe = str(self.recipes / f"{direction}.toml")
        command = [sys.executable, "-m", "attendo", "build", recipe, *words, *options]
        with (self.results / f"{direction}.log").open("a") as log:
            code = subprocess.run(  # noqa: S603
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, check=False
            ).returncode
        failure = f" failed with exit code {code}, see {direction}.log" if code else ""
        self.note(f"{direction}: {' '.join(words)}: {time.monotonic() - begin:.0f} s{failure}")
        return code

    def steps_per_second(self, step: str) -> float:
        """Return the speed of the slower one of two trainings, without their starts."""
        return min(
            _read_speed(Path("builds") / one / "latest" / step / "run") for one in DIRECTIONS
        )


def _read_speed(run: Path) -> float:
    lines = (run / "log.jsonl").read_text("utf-8").splitlines()
    rows = [one for one in map(json.loads, lines) if one["event"] == "train"]
    first, last = rows[len(rows) // 3], rows[-1]
    times = [datetime.fromisoformat(one["time"]).timestamp() for one in (first, last)]
    return (last["step"] - first["step"]) / max(times[1] - times[0], 1e-9)


def round_steps(steps: float, bounds: tuple[int, int]) -> int:
    """Return a number of steps within bounds."""
    return int(min(bounds[1], max(bounds[0], steps // 250 * 250)))


def main() -> None:
    """Build both models."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", type=Path)
    parser.add_argument(
        "--minutes", type=float, required=True, help="until the students are packed"
    )
    parser.add_argument("--recipes", type=Path, default=Path("configs/build"))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    builder = Builder(options.results, options.recipes, options.set)

    def seconds_left() -> float:
        return end - time.monotonic() - TEST_SECONDS - START_SECONDS

    # Each direction translates back with the forward model of the other one.
    builder.both("--until", "forward")
    speed = builder.steps_per_second("forward")
    seconds = builder.both("--until", "back-translate")
    translation = max(MIN_TRANSLATION_SECONDS, TRANSLATION_COST * seconds)
    if translation > MAX_TRANSLATION_SECONDS:
        translation = MAX_TRANSLATION_SECONDS
        builder.choose("forward_translation.beam_size", 1)
        builder.choose("forward_translation.n_best", 1)
    steps = speed * (seconds_left() - translation - START_SECONDS - STUDENT_SECONDS)
    builder.choose("teacher.train.max_steps", round_steps(steps, TEACHER_STEPS))
    builder.both("--until", "teacher")
    # A student also learns from the translations of the other direction's teacher.
    builder.both("--until", "forward-translate")
    steps = speed / STUDENT_COST * seconds_left()
    builder.choose("student.train.max_steps", round_steps(steps, STUDENT_STEPS))
    builder.both("--until", "int8")
    builder.pack("student", "int8")
    builder.both("--until", "translate-test")
    builder.pack("test", "translate-test")
    builder.note("done")


if __name__ == "__main__":
    main()
