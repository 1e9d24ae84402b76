"""Run the tests of the steps on a learner's file: `python -m ... FILE RESULT` writes JSON.

`run_checks` starts it in a process of its own, so that the file can neither block nor change the
caller.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

from attendo.lessons.prose import Prose
from attendo.lessons.track import attention_checks, layer_checks, model_checks
from attendo.lessons.track.comparison import CheckError
from attendo.lessons.track.steps import STEPS, last_step

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from attendo.lessons.blocks import LocalizedText
    from attendo.lessons.track.comparison import Check
    from attendo.lessons.track.steps import Step

prose = Prose("attendo.lessons.track")

CHECKS: Mapping[int, Sequence[Check]] = {
    **attention_checks.CHECKS,
    **layer_checks.CHECKS,
    **model_checks.CHECKS,
}


def check_file(path: Path) -> list[dict[str, Any]]:
    """Return the results of the tests, up to the first step that does not pass."""
    last = last_step(path.read_text(encoding="utf-8"))
    try:
        module = _load(path)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the learner's code
        return [_failed(last or 1, "file", _describe_error(error, path))]
    results: list[dict[str, Any]] = []
    for step in STEPS[:last]:
        results += check_step(step, module, path)
        if any(one["reason"] for one in results):
            break
    return results


def check_step(step: Step, module: SimpleNamespace, path: Path) -> Iterator[dict[str, Any]]:
    """Yield the result of every test of a step."""
    missing = [name for name in step.names if not hasattr(module, name)]
    if missing:
        yield _failed(step.number, "file", CheckError(prose("missing", names=", ".join(missing))))
        return
    for check in CHECKS[step.number]:
        try:
            with torch.random.fork_rng(devices=[]):
                check.run(module)
        except CheckError as failure:
            yield _failed(step.number, check.name, failure)
        except NotImplementedError:
            yield _failed(step.number, check.name, CheckError(prose("not-written")))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the learner's code
            yield _failed(step.number, check.name, _describe_error(error, path))
        else:
            yield {"step": step.number, "check": check.name, "reason": None}


def _failed(step: int, check: str, failure: CheckError) -> dict[str, Any]:
    reason: LocalizedText = failure.reason
    return {
        "step": step,
        "check": check,
        "reason": {"en": reason.en, "ko": reason.ko},
        "expected": failure.expected,
        "found": failure.found,
    }


def _load(path: Path) -> SimpleNamespace:
    return SimpleNamespace(**run_path(str(path), run_name="my_transformer"))


def _describe_error(error: BaseException, path: Path) -> CheckError:
    """Return the error with the last line of the learner's file that it passed through."""
    description = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError):
        line, code = error.lineno or 0, (error.text or "").strip()
        description = f"{type(error).__name__}: {error.msg}"
    else:
        frames = [
            one for one in traceback.extract_tb(error.__traceback__) if one.filename == str(path)
        ]
        line, code = (frames[-1].lineno or 0, frames[-1].line or "") if frames else (0, "")
    if not line:
        return CheckError(prose("error", error=description))
    return CheckError(prose("error-at", error=description, line=line, code=code))


def main(arguments: Sequence[str]) -> None:
    """Check a file and write the results to another one."""
    file, result = map(Path, arguments)
    torch.set_num_threads(1)
    result.write_text(json.dumps(check_file(file)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
