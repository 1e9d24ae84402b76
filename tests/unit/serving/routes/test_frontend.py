from __future__ import annotations

import gzip

from attendo.serving.routes import frontend


def test_the_page_is_compressed_and_cached_behind_a_proxy_too(make_client):
    """Found in review: `If-None-Match: W/"..."`, which nginx makes of an ETag, was never 304."""
    with make_client() as client:
        plain = client.get("/", headers={"Accept-Encoding": "identity"})
        assert "content-encoding" not in plain.headers
        tag = plain.headers["etag"]
        for asked in (tag, f"W/{tag}", f'"other", W/{tag}', "*"):
            answer = client.get("/", headers={"If-None-Match": asked})
            assert (answer.status_code, answer.content) == (304, b"")
        assert client.get("/", headers={"If-None-Match": '"other"'}).status_code == 200
        packed = client.get("/", headers={"Accept-Encoding": "gzip"})
        assert packed.headers["content-encoding"] == "gzip"
        assert packed.headers["vary"] == "Accept-Encoding"
        assert packed.content == plain.content  # the client unpacks it


def test_files_are_compressed_once(tmp_path):
    (tmp_path / "a.js").write_text("let a = 1;" * 100)
    (tmp_path / "a.png").write_bytes(b"png")
    assets = frontend.load_assets(tmp_path)
    assert gzip.decompress(assets["a.js"].compressed) == assets["a.js"].content
    assert assets["a.png"].compressed == b""


def test_answers_are_compressed(make_client):
    with make_client() as client:
        answer = client.get("/openapi.json", headers={"Accept-Encoding": "gzip"})
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.json()["openapi"]
