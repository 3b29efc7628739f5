import pytest
from pytest_himga.controller import Controller
@pytest.mark.parametrize("args", [
 ["--himga-min-score=0.9"],
 ["--himga-min-score=0.9","--himga-max-unscored=1"],
 ["--himga-min-score=0.5"],
 ["--himga-min-score=0.5", "-k", "harbour"],
 ["-x"],
 ["-x","--himga-min-score=0.5"],
 ["--himga-gate=verdict,score","--himga-min-score=0.5", "--himga-max-unscored=1"],
 ["-q"], ["-q","--no-summary"], ["--himga-max-unscored=1"],
])
def test_a(story, args, capfd):
    story.memory_does(ferry="miss", hedgehog="raise")
    r = story.run(*args)
    print("RC", r.ret, args)
    assert 0
