from __future__ import annotations

import pytest

from attendo.core.errors import ConfigError
from attendo.serving import config as module
from attendo.serving.config import ServeConfig


def test_the_defaults_listen_on_this_machine_alone(tmp_path) -> None:
    config = ServeConfig(models=[tmp_path])
    assert config.host == "127.0.0.1"
    assert not config.is_public
    assert not config.origins


@pytest.mark.parametrize(
    ("host", "is_public"),
    [("localhost", False), ("::1", False), ("0.0.0.0", True), ("192.0.2.1", True)],  # noqa: S104
)
def test_an_address_that_others_reach_is_public(tmp_path, host, is_public) -> None:
    assert ServeConfig(models=[tmp_path], host=host).is_public is is_public


@pytest.mark.parametrize(
    "wrong",
    [
        {"models": []},
        {"port": 70_000},
        {"batch_size": 0},
        {"timeout": 0},
        {"api_keys": ["short"]},
        {"max_file_bytes": 10**9},
        {"beam_size": 32},
        {"max_queu": 3},
    ],
)
def test_settings_that_cannot_work_are_rejected_by_name(tmp_path, wrong) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        ServeConfig(**{"models": [tmp_path], **wrong})


@pytest.mark.parametrize(
    ("cores", "workers", "threads"), [(1, 1, 1), (2, 1, 1), (4, 1, 3), (64, 1, 8), (9, 4, 2)]
)
def test_threads_leave_a_core_to_the_network(tmp_path, monkeypatch, cores, workers, threads):
    monkeypatch.setattr(module, "count_cores", lambda: cores)
    assert ServeConfig(models=[tmp_path], workers=workers).num_threads == threads
    assert ServeConfig(models=[tmp_path], workers=workers, threads=5).num_threads == 5


def test_a_config_goes_to_other_processes_whole(tmp_path) -> None:
    config = ServeConfig(models=[tmp_path], api_keys=["12345678"], runs=tmp_path, port=0)
    assert ServeConfig.model_validate_json(config.model_dump_json()) == config
