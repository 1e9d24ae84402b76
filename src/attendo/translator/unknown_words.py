"""Replaces unknown tokens by the source words that the model attended to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attendo.text.tokenizer import START_ID, UNK_ID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from attendo.core.protocols import Seq2SeqModel

UNKNOWN_MARK = "⁇"


def align_unknowns(model: Seq2SeqModel[Any], src_ids: Tensor, ids: Sequence[int]) -> list[int]:
    """Return the most attended position in the source (1, S) of each unknown token of `ids`.

    The attention is the mean over the heads of the last layer; the list is empty for a model
    without attention.
    """
    import torch

    decoder_input = torch.tensor([[START_ID, *ids[:-1]]], device=src_ids.device)
    with torch.inference_mode():
        cross = model.explain(src_ids, decoder_input).cross
    if not cross:
        return []
    attended = cross[-1][0].mean(0)[:, :-1].argmax(-1).tolist()  # (T,), without the end symbol
    return [position for position, token in zip(attended, ids, strict=True) if token == UNK_ID]


def replace_unknowns(text: str, words: Sequence[str]) -> str:
    """Replace each mark by a word, if there are as many words as marks.

    >>> replace_unknowns("Ich sehe ⁇ und ⁇.", ["Zork", "Moria"])
    'Ich sehe Zork und Moria.'
    """
    parts = text.split(UNKNOWN_MARK)
    if len(parts) != len(words) + 1:
        return text
    ends = [*words, ""]
    return "".join(part + word.strip() for part, word in zip(parts, ends, strict=True))
