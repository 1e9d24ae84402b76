"""The options of a search in CTranslate2's words, and what it has no words for.

CTranslate2 stops when so many hypotheses are finished, and divides by the length to a power; we
stop when nothing alive can become better, and divide by the paper's penalty. So it is told to wait
for some hypotheses more than the beam holds and to give them all without a penalty; the engine
ranks them. On 500 sentences of Multi30k that finds the same text for alpha 0 and 0.6 with beams of
4 and 5, and in 499 of them with alpha 1 or a beam of 8.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from attendo.decoding.options import DecodingOptions
from attendo.translator.constraints import ConstraintRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_PENALTY = 1e-30
"""Divides nothing, and is not 0: with 0 CTranslate2 stops at the first best end."""
PATIENCE = 0.4
"""Finished hypotheses to wait for beyond the beam, as a share of it, for each unit of alpha."""
MAX_ALPHA = 1.0
"""Above it ever longer translations win, of which CTranslate2 stops short."""


def unsupported_options(
    options: DecodingOptions, request: ConstraintRequest, *, trace: bool
) -> list[str]:
    """Give every reason why CTranslate2 cannot decode so; none if it can."""
    too_long = is_beam_search(options) and options.alpha > MAX_ALPHA
    is_seeded = options.do_sample and "seed" in options.model_fields_set
    reasons = {
        "it keeps no trace of a search": trace,
        "it knows no required or forbidden phrases": bool(request.required or request.forbidden),
        "it knows no glossary": request.glossary is not None,
        f"num_groups = {options.num_groups}: its beam has no groups": options.num_groups > 1,
        "unk = 'copy': it does not tell where it looked": options.unk == "copy",
        f"alpha = {options.alpha}: above {MAX_ALPHA:g} its search ends too early": too_long,
        f"seed = {options.seed}: its draws cannot be repeated": is_seeded,
    }
    return [reason for reason, is_so in reasons.items() if is_so]


def can_decode(arguments: Mapping[str, Any]) -> bool:
    """Tell whether CTranslate2 can do what `Translator.translate` is told.

    >>> can_decode({"beam_size": 4, "prefix": "I am"}), can_decode({"required": ["student"]})
    (True, False)
    """
    names = set(arguments) & set(DecodingOptions.model_fields)
    options = DecodingOptions(**{name: arguments[name] for name in names})
    request = ConstraintRequest(
        (),
        arguments.get("required") or (),
        arguments.get("forbidden") or (),
        arguments.get("glossary"),
    )
    return not unsupported_options(options, request, trace=bool(arguments.get("trace")))


def is_beam_search(options: DecodingOptions) -> bool:
    """Tell whether several hypotheses go on at once."""
    return options.beam_size > 1 and not options.do_sample


def allows_early_exit(options: DecodingOptions) -> bool:
    """Tell whether the first end that is better than all that is alive is the best of all."""
    return is_beam_search(options) and options.alpha == 0 and options.n_best == 1


def changes_scores(options: DecodingOptions) -> bool:
    """Tell whether rules make CTranslate2's scores others than the model's.

    It takes out what is forbidden before the softmax, where we do so afterwards. For the symbols
    that are never said this is a matter of some thousandths.
    """
    return bool(options.do_sample or options.min_length or options.no_repeat_ngram)


def to_ct2_options(options: DecodingOptions, limit: int, *, early_exit: bool) -> dict[str, Any]:
    """Say how to decode up to a limit; with `exits` the search ends as `may_exit` says."""
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
