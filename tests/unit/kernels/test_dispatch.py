"""What `torch.compile` knows about our operations."""

from __future__ import annotations

from attendo.kernels.dispatch import OPAQUE_OPS, allow_inductor_fallback, kernel_cache_dir


def test_the_compiler_knows_the_operations_that_are_behind_whole_stacks():
    from torch._inductor.lowering import FALLBACK_ALLOW_LIST

    allow_inductor_fallback()
    assert set(OPAQUE_OPS) <= set(FALLBACK_ALLOW_LIST)


def test_built_kernels_are_kept_where_triton_keeps_them(monkeypatch, tmp_path):
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    monkeypatch.setenv("TRITON_HOME", str(tmp_path))
    assert kernel_cache_dir() == tmp_path / ".triton" / "cache"
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "kernels"))
    assert kernel_cache_dir() == tmp_path / "kernels"
