"""Attendo: the Transformer of "Attention Is All You Need" as real software.

>>> import attendo
>>> model = attendo.Transformer.from_preset("tiny", vocab_size=1000)

Names are imported when they are first used, so that `import attendo` and `attendo --help` load no
tensor library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from attendo.core.device import is_torch, use_passive_waiting
from attendo.core.version import __version__

if TYPE_CHECKING:
    from attendo.core.errors import AttendoError
    from attendo.evaluation.evaluate import evaluate
    from attendo.inspection.inspect_sentence import inspect_sentence
    from attendo.interop.export import export as export_model
    from attendo.interop.import_model import import_model
    from attendo.model.config import TransformerConfig
    from attendo.model.transformer import Transformer
    from attendo.tasks.finish import finish_run
    from attendo.tasks.forecasting.forecaster import Forecaster
    from attendo.tasks.language_model.generator import TextGenerator
    from attendo.tasks.masked_lm.fill_mask import MaskFiller
    from attendo.tasks.request import train
    from attendo.training.trainer import Trainer
    from attendo.translator import Translator

__all__ = [
    "AttendoError",
    "Forecaster",
    "MaskFiller",
    "TextGenerator",
    "Trainer",
    "Transformer",
    "TransformerConfig",
    "Translator",
    "__version__",
    "evaluate",
    "export_model",
    "finish_run",
    "import_model",
    "inspect_sentence",
    "train",
]

use_passive_waiting()  # before anything imports PyTorch

_HOMES = {
    "AttendoError": "attendo.core.errors",
    "Forecaster": "attendo.tasks.forecasting.forecaster",
    "MaskFiller": "attendo.tasks.masked_lm.fill_mask",
    "TextGenerator": "attendo.tasks.language_model.generator",
    "Trainer": "attendo.training.trainer",
    "Transformer": "attendo.model.transformer",
    "TransformerConfig": "attendo.model.config",
    "Translator": "attendo.translator",
    "evaluate": "attendo.evaluation.evaluate",
    "export_model": "attendo.interop.export",
    "finish_run": "attendo.tasks.finish",
    "import_model": "attendo.interop.import_model",
    "inspect_sentence": "attendo.inspection.inspect_sentence",
    "train": "attendo.tasks.request",
}
_ORIGINAL_NAMES = {"export_model": "export"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'attendo' has no attribute '{name}'")
    try:
        module = import_module(_HOMES[name])
    except ModuleNotFoundError as error:
        if not is_torch(error.name):
            raise
        from attendo.core.errors import MissingTorchError

        raise MissingTorchError from None
    return getattr(module, _ORIGINAL_NAMES.get(name, name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
