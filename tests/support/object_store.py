"""A local S3 server: requests of s3fs go to it instead of to Amazon's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

BUCKET = "corpora"


@pytest.fixture(scope="session")
def object_store_address() -> Iterator[str]:
    """Start the server once."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(
        ip_address="127.0.0.1", port=0, verbose=False
    )
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def store_environment(address: str) -> dict[str, str]:
    """Return the variables with which a process uses the server at an address."""
    return {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/nonexistent",
        "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
    }


@pytest.fixture
def bucket(object_store_address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the address of an empty bucket, which this process and its children can use."""
    for name, value in store_environment(object_store_address).items():
        monkeypatch.setenv(name, value)
    s3fs = pytest.importorskip("s3fs")
    s3fs.S3FileSystem.clear_instance_cache()
    filesystem = s3fs.S3FileSystem()
    filesystem.mkdir(BUCKET)
    yield f"s3://{BUCKET}"
    filesystem.rm(BUCKET, recursive=True)
    s3fs.S3FileSystem.clear_instance_cache()
