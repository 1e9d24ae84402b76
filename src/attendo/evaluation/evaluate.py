"""Translate a test set, score it by every metric, compare two systems, write the report.

The function behind `attendo evaluate`. All arguments are validated before the
first sentence is translated, and the translations are written before they are scored.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.errors import ConfigError
from attendo.core.message import message
from attendo.evaluation.evaluation_set import SYSTEM_PREFIX, read_test_set
from attendo.evaluation.evaluator import Evaluator, System
from attendo.evaluation.metrics import TokenizedReference, build_metrics, guess_language
from attendo.evaluation.report_folder import prepare_folder, save_outputs, save_report
from attendo.evaluation.scores import NUM_SAMPLES
from attendo.evaluation.tokenized_bleu import check_steps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attendo.evaluation.evaluation_set import EvaluationSet
    from attendo.evaluation.evaluator import Progress
    from attendo.translator import Translator


class Evaluation(NamedTuple):
    """The result of an evaluation, and where it was written."""

    report: dict[str, Any]
    directory: Path | None


def evaluate(
    model: str | Path | None = None,
    *,
    ref: str | Path | Sequence[str | Path],
    src: str | Path | None = None,
    outputs: str | Path | None = None,
    tok_ref: str | Path | None = None,
    tok_steps: Sequence[str] = (),
    against: str | Path | None = None,
    systems: Mapping[str, str | Path] | None = None,
    lang: str | None = None,
    metrics: Sequence[str] | None = None,
    num_samples: int = NUM_SAMPLES,
    error_rates: bool = False,
    out: str | Path | None = None,
    device: str | None = None,
    progress: Progress | None = None,
    **decoding: Any,
) -> Evaluation:
    """Score a model, or a file of translations, on a test set.

    Args:
        model: a model folder; optional if `outputs` is given.
        ref: the references, one per line; several files are several references of each line.
        src: the sources, aligned with `ref`; required with a model.
        outputs: translations to score instead of decoding.
        tok_ref: references that are already tokenized, for tokenized BLEU.
        tok_steps: what makes outputs comparable to `tok_ref`: "as-is" if the model outputs
            tokenized text itself, else some of "lower", "norm", "moses", "moses-plain".
        against: a second system to compare with, a model folder or a file of outputs.
        systems: names and output files of other systems, which are compared with the model, with
            `outputs`, or with the first of them.
        lang: the target language; by default the model's, or Korean if the text is in Hangul.
        metrics: keys of `attendo.evaluation.metrics.METRIC_NAMES`; by default all that fit.
        num_samples: bootstrap samples; 0 leaves out intervals and p-values.
        error_rates: also count wrong sequences and tokens, for tasks with correct answers;
            lines with the same source are one case with several correct answers.
        out: the folder of the report; nothing is written without it.
        device: where models run.
        progress: called with the stage, the number of items done and the total.
        **decoding: options of `Translator.translate`.

    """
    is_comparison = against is not None and Path(against).is_dir()
    files = {name: Path(path) for name, path in (systems or {}).items()}
    baseline = next(iter(files), "")
    if model is None and outputs is None and files:
        outputs = files.pop(baseline)
    else:
        baseline = str(model or outputs)
    _check_request(
        has_model=model is not None,
        has_outputs=outputs is not None,
        has_no_source=src is None and (model is not None or is_comparison),
        has_tokenized=tok_ref is not None,
        steps=tok_steps,
        num_samples=num_samples,
    )
    directory = None if out is None else Path(out)
    if directory is not None:
        prepare_folder(directory)
    first, *more = [ref] if isinstance(ref, str | Path) else ref
    given = {"ref": first, "src": src, "tok_ref": tok_ref, "outputs": outputs}
    given |= {f"ref{number}": path for number, path in enumerate(more, 2)}
    given["against"] = None if is_comparison else against
    given |= {f"{SYSTEM_PREFIX}{name}": path for name, path in files.items()}
    test_set = read_test_set({name: Path(path) for name, path in given.items() if path is not None})

    ours = _load_translator(model, device)
    theirs = _load_translator(against, device) if is_comparison else None
    target_lang = lang or _target_language(ours) or guess_language(test_set.references)
    tokenized = (
        None
        if test_set.tokenized_references is None
        else TokenizedReference(test_set.tokenized_references, tok_steps)
    )
    metric_set = build_metrics(
        test_set.references,
        more_references=test_set.more_references,
        requested=metrics,
        lang=target_lang,
        tokenized=tokenized,
    )

    system = _make_system(baseline, ours, test_set, "outputs", progress, decoding)
    other = None
    if against is not None:
        other = _make_system(str(against), theirs, test_set, "against", progress, decoding)
    if directory is not None:
        save_outputs(directory, system.outputs, None if other is None else other.outputs)
    evaluator = Evaluator(
        test_set,
        metric_set,
        num_samples=num_samples,
        progress=progress or _ignore_progress,
        needs_error_rates=error_rates,
    )
    others = [
        System(test_set.outputs[f"{SYSTEM_PREFIX}{name}"], None, {"name": name}) for name in files
    ]
    report = evaluator.report(system, other, lang=target_lang, systems=others)
    if directory is not None:
        save_report(directory, report)
    return Evaluation(report, directory)


def _check_request(
    *,
    has_model: bool,
    has_outputs: bool,
    has_no_source: bool,
    has_tokenized: bool,
    steps: Sequence[str],
    num_samples: int,
) -> None:
    """Raise one error with every conflict between the arguments."""
    reasons = []
    if not has_model and not has_outputs:
        reasons.append(
            message("nothing to score: pass a model folder, or translations with --outputs")
        )
    if has_no_source:
        reasons.append(message("a model needs sources: pass them with --src"))
    if has_tokenized and not steps:
        reasons.append(
            message(
                "--tok-ref needs --tok-steps, which make outputs comparable to it: as-is "
                "if the model outputs tokenized text itself, e.g. lower,norm,moses if it "
                "outputs plain text"
            )
        )
    if steps and not has_tokenized:
        reasons.append(message("--tok-steps needs --tok-ref"))
    if num_samples < 0 or num_samples == 1:
        reasons.append(
            message(
                "{num_samples} bootstrap samples: use 1000, or 0 for no intervals",
                num_samples=num_samples,
            )
        )
    if reasons:
        raise ConfigError.from_reasons("attendo evaluate", reasons)
    if steps:
        check_steps(steps)


def _load_translator(model: str | Path | None, device: str | None) -> Translator | None:
    if model is None:
        return None
    from attendo.bundle import raise_if_language_model
    from attendo.translator import Translator

    translator = Translator.load(model, device=device)
    raise_if_language_model(translator.about, model)
    return translator


def _target_language(translator: Translator | None) -> str | None:
    about = getattr(translator, "about", None) or {}
    lang = about.get("tgt_lang")
    return lang if isinstance(lang, str) else None


def _make_system(
    name: str,
    translator: Translator | None,
    test_set: EvaluationSet,
    role: str,
    progress: Progress | None,
    decoding: dict[str, Any],
) -> System:
    """Return the outputs of the file, or translate."""
    metadata: dict[str, Any] = {
        "name": name,
        "model": None if translator is None else name,
        "outputs": None,
        "decoding": None,
        "seconds": None,
    }
    if role in test_set.outputs:
        metadata["outputs"] = str(test_set.files[role])
        return System(test_set.outputs[role], translator, metadata)
    if translator is None or test_set.sources is None:
        raise ConfigError("no model or no source to translate")
    options = dict(decoding)
    if progress is not None:
        stage = "translating" if role == "outputs" else "translating (against)"
        options["progress"] = lambda done, total: progress(stage, done, total)
    start = time.perf_counter()
    translations = translator.translate(test_set.sources, **options)
    metadata["seconds"] = round(time.perf_counter() - start, 3)
    metadata["decoding"] = dict(decoding)
    # A line of the file is one sentence and must not be split.
    return System([str(text).replace("\n", " ") for text in translations], translator, metadata)


def _ignore_progress(stage: str, done: int, total: int | None) -> None:
    """Ignore progress."""
