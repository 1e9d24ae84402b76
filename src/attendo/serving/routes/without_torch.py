"""Answers the routes of the lessons where PyTorch, which computes them, is not installed."""

from __future__ import annotations

from fastapi import APIRouter

from attendo.core.errors import MissingTorchError

router = APIRouter(prefix="/v1/lessons", tags=["lessons"])


@router.get("", include_in_schema=False)
@router.get("/{path:path}", include_in_schema=False)
@router.post("/{path:path}", include_in_schema=False)
async def explain(path: str = "") -> None:  # noqa: ARG001 - any path
    """Name what is missing."""
    raise MissingTorchError
