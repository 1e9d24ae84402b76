"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attendo.core.device import check_device_name

DeviceOption = Annotated[
    str | None,
    typer.Option(
        help="cpu, cuda, cuda:1 or mps; by default a GPU if there is one.",
        callback=check_device_name,
    ),
]
ModelArgument = Annotated[Path, typer.Argument(help="Model folder or run folder.")]
ThreadsOption = Annotated[
    int | None, typer.Option(help="CPU threads; by default one per core.", min=1)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
BeamSizeOption = Annotated[int, typer.Option(help="Beam size; 1 is greedy search.")]
AlphaOption = Annotated[float, typer.Option(help="Length penalty exponent.")]
DecodingSettingsOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="Another decoding option, e.g. no_repeat_ngram=3 (repeatable)."),
]
StepsOption = Annotated[
    int | None, typer.Option(help="Training steps; by default they follow from the data.")
]
RunSettingsOption = Annotated[
    list[str] | None, typer.Option("--set", help="key=value, e.g. train.max_steps=100.")
]
