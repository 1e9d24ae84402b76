"""Options that several commands have."""

from __future__ import annotations

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
