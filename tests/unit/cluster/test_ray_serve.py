"""The application of the server as a deployment of Ray Serve."""

from __future__ import annotations

import gc
import json
import socket
import urllib.error
import urllib.request
from importlib.util import find_spec

import pytest
import torch

from attendo.bundle import save_bundle
from attendo.core.errors import ConfigError
from attendo.model.transformer import Transformer
from attendo.serving.ray_serve import build, make_config
from attendo.translator import Translator

TIMEOUT = 120.0


def test_arguments_are_fields_of_the_server():
    config = make_config({"models": "a,b", "max_queue": "7"})
    assert [str(one) for one in config.models] == ["a", "b"]
    assert config.max_queue == 7
    assert config.hosts == ("*",)
    with pytest.raises(ConfigError, match="no model"):
        make_config({})
    with pytest.raises(ConfigError, match="unknown key 'quick'"):
        make_config({"models": "a", "quick": "yes"})


def post(url: str, **body: object) -> dict:
    request = urllib.request.Request(  # noqa: S310 - this machine
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:  # noqa: S310
        return json.loads(response.read())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Ray Serve and its libraries
@pytest.mark.skipif(find_spec("grpc_reflection") is None, reason="needs ray[serve]")
def test_two_replicas_answer_like_the_server(toy, tmp_path, monkeypatch):
    import ray
    from ray import serve

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    tokenizer = toy.prepared.tokenizer
    torch.manual_seed(1)
    sizes = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}
    model = Transformer(vocab_size=tokenizer.src_vocab_size, **sizes).eval()
    about = {"src_lang": "ko", "tgt_lang": "en"}
    save_bundle(tmp_path / "model", model, tokenizer, about=about)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ray.init(
        address="local",
        num_cpus=4,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=80_000_000,
    )
    try:
        serve.start(http_options={"host": "127.0.0.1", "port": port})
        arguments = {"models": str(tmp_path / "model"), "engine": "attendo", "device": "cpu"}
        application = build({**arguments, "num_replicas": "2", "num_cpus": "1"})
        serve.run(application, route_prefix="/")
        url = f"http://127.0.0.1:{port}"
        health = urllib.request.urlopen(f"{url}/health", timeout=TIMEOUT)  # noqa: S310
        with health as response:
            assert json.loads(response.read()) == {"status": "ok"}
        texts = ["ka to", "mi re so", "lu"]
        translator = Translator.load(tmp_path / "model", device="cpu")
        expected = translator.translate(texts, beam_size=4, retry=True)
        for _ in range(4):
            answer = post(f"{url}/translate", q=texts, source="ko", target="en")
            assert answer["translatedText"] == [str(one) for one in expected]
        with pytest.raises(urllib.error.HTTPError) as caught:
            post(f"{url}/translate", q="ka", source="ko", target="xx")
        assert caught.value.code == 400
        caught.value.close()
    finally:
        serve.shutdown()
        ray.shutdown()
        gc.collect()  # sockets of Ray Serve, with their warnings
