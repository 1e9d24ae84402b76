"""Unknown pieces: the source word that the model looked at stands in their place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from attendo.text.tokenizer import START_ID, UNK_ID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from attendo.core.protocols import Seq2SeqModel

UNKNOWN_MARK = "⁇"


@torch.inference_mode()
def align_unknowns(model: Seq2SeqModel[Any], src_ids: Tensor, ids: Sequence[int]) -> list[int]:
    """Give, for each unknown piece of `ids`, the place in the source (1, S) that it attends most.

    The last layer decides, by the mean over its heads; a model without attention gives nothing.
    """
    decoder_input = torch.tensor([[START_ID, *ids[:-1]]], device=src_ids.device)
    cross = model.explain(src_ids, decoder_input).cross
    if not cross:
        return []
    attended = cross[-1][0].mean(0)[:, :-1].argmax(-1).tolist()  # (T,), the end symbol left out
    return [index for index, number in zip(attended, ids, strict=True) if number == UNK_ID]


def replace_unknowns(text: str, words: Sequence[str]) -> str:
    """Put a word in the place of each mark, if there is one for each.

    >>> put_words("Ich sehe ⁇ und ⁇.", ["Zork", "Moria"])
    'Ich sehe Zork und Moria.'
    """
    parts = text.split(UNKNOWN_MARK)
    if len(parts) != len(words) + 1:
        return text
    ends = [*words, ""]
    return "".join(part + word.strip() for part, word in zip(parts, ends, strict=True))
