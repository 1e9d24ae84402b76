from __future__ import annotations

import socket
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from attendo.cli.main import build_app
from attendo.cli.serve import API_KEYS_ENV_VAR, read_api_keys, read_config
from attendo.core.errors import ConfigError, InputError


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "bundle.json").write_text("{}", encoding="utf-8")
    return tmp_path


@pytest.fixture
def run(monkeypatch):
    """Run the verb without a server behind it; give what it was to serve."""
    import attendo.serving.server as server

    seen = []

    def note(config, *, on_ready, warnings) -> None:
        seen.append(config)
        print(*warnings, file=sys.stderr)
        on_ready("http://127.0.0.1:1")

    monkeypatch.setattr(server, "run", note)
    monkeypatch.delenv(API_KEYS_ENV_VAR, raising=False)

    def invoke(*words: str):
        result = CliRunner().invoke(build_app("serve"), ["serve", *words])
        return result, (seen or [None])[-1]

    return invoke


def test_the_help_loads_no_tensor_library() -> None:
    code = (
        "import sys; from attendo.cli.main import run\n"
        "try: run(['serve', '--help'])\n"
        "except SystemExit: pass\n"
        "assert not {'torch', 'fastapi', 'uvicorn'} & set(sys.modules), 'loaded'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=600)


def test_the_address_is_reported_and_loopback_is_the_default(run, folder) -> None:
    result, config = run(str(folder))
    assert result.exit_code == 0
    assert "http://127.0.0.1:1" in result.stdout
    assert config.host == "127.0.0.1"
    assert "other machines" not in result.stderr


def test_a_public_address_without_keys_is_warned_of(run, folder) -> None:
    result, _ = run(str(folder), "--host", "0.0.0.0")  # noqa: S104
    assert "0.0.0.0 accepts requests from other machines" in result.stderr
    result, config = run(str(folder), "--host", "0.0.0.0", "--api-key", "12345678")  # noqa: S104
    assert "other machines" not in result.stderr
    assert config.api_keys == ("12345678",)


def test_every_option_reaches_the_config(run, folder) -> None:
    words = ["--port", "0", "--workers", "3", "--source", "ko", "--target", "en", "--device", "cpu",
             "--batch-size", "7", "--batch-wait-ms", "2", "--max-queue", "9", "--timeout", "4",
             "--requests-per-minute", "5", "--set", "max_characters=77",
             "--runs", str(folder)]  # fmt: skip
    result, config = run(str(folder), *words)
    assert result.exit_code == 0, result.output
    reported = config.model_dump()
    expected = {"port": 0, "workers": 3, "src_lang": "ko", "tgt_lang": "en", "device": "cpu",
                "batch_size": 7, "batch_wait_ms": 2.0, "max_queue": 9, "timeout": 4.0,
                "requests_per_minute": 5, "max_characters": 77, "runs": folder}  # fmt: skip
    assert {key: reported[key] for key in expected} == expected


def test_keys_come_from_the_environment_too(monkeypatch) -> None:
    monkeypatch.setenv(API_KEYS_ENV_VAR, "one-long-key,,two-long-key")
    assert read_api_keys(["three"]) == ["three", "one-long-key", "two-long-key"]


def test_what_cannot_be_served_is_reported_before_anything_is_loaded(tmp_path, folder) -> None:
    with pytest.raises(InputError, match="nothing does not exist"):
        read_config({"models": [tmp_path / "nothing"]}, [])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"bundle\.json is missing"):
        read_config({"models": [tmp_path / "empty"]}, [])
    with pytest.raises(InputError, match="no folder"):
        read_config({"models": [folder], "runs": tmp_path / "nothing"}, [])
    with pytest.raises(ConfigError, match="max_character'"):
        read_config({"models": [folder]}, ["max_character=3"])


def test_a_port_that_is_taken_is_reported(folder) -> None:
    from attendo.serving.server import open_socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"cannot listen on 127.0.0.1 port {port}"):
            open_socket(read_config({"models": [folder], "port": port}, []))
