from __future__ import annotations

import pytest

from attendo.core import shipped_models
from attendo.core.errors import InputError
from attendo.core.run_folder import ModelFolder
from attendo.core.shipped_models import raise_if_not_shipped, resolve_shipped


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "models"
    (root / "ko-en").mkdir(parents=True)
    (root / "ko-en/bundle.json").write_text("{}", encoding="utf-8")
    monkeypatch.setattr(shipped_models, "ROOTS", (root,))
    return root


def test_a_name_stands_for_the_folder_of_a_shipped_model(root):
    assert ModelFolder.find("ko-en").path == root / "ko-en"
    assert shipped_models.shipped_models() == [root / "ko-en"]
    assert str(resolve_shipped("runs/ko-en")) == "runs/ko-en"


def test_a_folder_of_the_same_name_goes_first(root, tmp_path):
    (tmp_path / "ko-en").mkdir()
    assert not resolve_shipped("ko-en").is_absolute()


def test_a_model_that_is_not_shipped_is_an_error_of_its_own(root):
    raise_if_not_shipped(resolve_shipped("ko-en"))
    with pytest.raises(InputError, match="not part of this installation"):
        raise_if_not_shipped(resolve_shipped("en-ko"))
