"""``scripts/dev/mark_slow.py``: marks come and go with what the tests took."""

from __future__ import annotations

from command import script_module

SOURCE = '''"""Tests."""

from __future__ import annotations


def test_a():
    pass


class TestB:
    @pytest.mark.slow
    @pytest.mark.parametrize("x", [1, 2])
    def test_b(self, x):
        pass
'''


def test_marks_follow_the_times():
    marked = script_module("dev/mark_slow.py").marked
    text = marked(SOURCE, {"test_a": 0.3, "test_b": 0.01})
    assert "annotations\n\nimport pytest\n" in text
    assert "\n@pytest.mark.slow\ndef test_a" in text
    assert 'class TestB:\n    @pytest.mark.parametrize("x", [1, 2])\n' in text
    assert marked(text, {"test_a": 0.15}) == text
    assert "slow" not in marked(text, {"test_a": 0.01})
