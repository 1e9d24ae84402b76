"""Translates the options of a search to CTranslate2's, and finds those that it does not support.

CTranslate2 stops when a given number of hypotheses is finished, and divides by a power of the
length. Our search stops when no hypothesis can become better, and divides by the paper's penalty.
CTranslate2 is therefore asked for more hypotheses than the beam holds, without a penalty, and the
backend ranks them. On 500 sentences of Multi30k the texts are the same for alpha 0 and 0.6 with
beams of 4 and 5, and 499 are the same with alpha 1 or a beam of 8.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from attendo.core.message import message
from attendo.decoding.options import DecodingOptions
from attendo.translator.constraints import ConstraintRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_PENALTY = 1e-30
"""Has no effect on scores, but is not 0: with 0 CTranslate2 stops at the first best end."""
PATIENCE = 0.4
"""Additional finished hypotheses to wait for, relative to the beam size, per unit of alpha."""
MAX_ALPHA = 1.0
"""Above it longer and longer translations win, and CTranslate2 stops too early."""


def unsupported_options(
    options: DecodingOptions, request: ConstraintRequest | None, *, trace: bool
) -> list[str]:
    """Return every reason why CTranslate2 does not support a search; none if it does."""
    too_long = is_beam_search(options) and options.alpha > MAX_ALPHA
    is_seeded = options.do_sample and "seed" in options.model_fields_set
    has_phrases = request is not None and bool(request.required or request.forbidden)
    has_glossary = request is not None and request.glossary is not None
    reasons = (
        (message("trace: its search is not recorded"), trace),
        (message("required or forbidden phrases"), has_phrases),
        (message("glossary"), has_glossary),
        (
            message("num_groups = {count}: its beam has no groups", count=options.num_groups),
            options.num_groups > 1,
        ),
        (
            message("unk = 'copy': it does not return attention weights"),
            options.unk == "copy",
        ),
        (
            message(
                "alpha = {alpha}: above {maximum:g} its search ends too early",
                alpha=options.alpha,
                maximum=MAX_ALPHA,
            ),
            too_long,
        ),
        (
            message("seed = {seed}: its samples are not reproducible", seed=options.seed),
            is_seeded,
        ),
    )
    return [reason for reason, applies in reasons if applies]


def can_decode(arguments: Mapping[str, Any]) -> bool:
    """Return whether CTranslate2 supports these arguments of `Translator.translate`.

    >>> can_decode({"beam_size": 4, "prefix": "I am"}), can_decode({"required": ["student"]})
    (True, False)
    """
    options = arguments.get("options")
    if options is None:
        names = set(arguments) & set(DecodingOptions.model_fields)
        options = DecodingOptions(**{name: arguments[name] for name in names})
    request = ConstraintRequest(
        required=arguments.get("required") or (),
        forbidden=arguments.get("forbidden") or (),
        glossary=arguments.get("glossary"),
    )
    return not unsupported_options(options, request, trace=bool(arguments.get("trace")))


def is_beam_search(options: DecodingOptions) -> bool:
    """Return whether the search keeps several hypotheses."""
    return options.beam_size > 1 and not options.do_sample


def allows_early_exit(options: DecodingOptions) -> bool:
    """Return whether a finished hypothesis that no other one beats is final."""
    return is_beam_search(options) and options.alpha == 0 and options.n_best == 1


def changes_scores(options: DecodingOptions) -> bool:
    """Return whether the options make CTranslate2's scores differ from the model's.

    It removes forbidden tokens before the softmax; our search does so afterwards. For symbols that
    are never generated the difference is a few thousandths.
    """
    return bool(options.do_sample or options.min_length or options.no_repeat_ngram)


def to_ct2_options(options: DecodingOptions, limit: int, *, early_exit: bool) -> dict[str, Any]:
    """Return the arguments of `translate_batch`; `early_exit` is that of `allows_early_exit`."""
    ct2_options: dict[str, Any] = {
        "beam_size": options.beam_size,
        "length_penalty": NO_PENALTY,
        "no_repeat_ngram_size": options.no_repeat_ngram,
        "disable_unk": options.unk == "avoid",
        "max_input_length": 0,
        "max_decoding_length": limit,
        "min_decoding_length": min(options.min_length, limit),
        "return_scores": True,
        "return_end_token": True,
    }
    if options.do_sample:
        return ct2_options | {
            "beam_size": 1,
            "num_hypotheses": options.n_best,
            "sampling_topk": options.top_k,
            "sampling_topp": options.top_p,
            "sampling_temperature": options.temperature,
        }
    if options.beam_size == 1:
        return ct2_options
    if early_exit:
        return ct2_options | {"length_penalty": 0.0}
    factor = 1.0 + PATIENCE * max(options.alpha, 0.0)
    num_hypotheses = math.ceil(options.beam_size * factor) + options.n_best - 1
    return ct2_options | {
        "patience": num_hypotheses / options.beam_size,
        "num_hypotheses": num_hypotheses,
    }
