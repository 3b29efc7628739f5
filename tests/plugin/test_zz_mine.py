import pytest
from pytest_himga.controller import Controller
@pytest.mark.parametrize("args", [
 ["-n2"],["-n2", "--junitxml=j.xml"], ["-n1", "-v", "--himga-min-score=0.5","--max-worker-restart=0"],
])
def test_a(story, args, capfd):
    story.memory_does(hedgehog="die", ferry="miss")
    r = story.run_apart(*args)
    print("RC", r.ret, args, story.fed(), story.asked(), story.verdicts())
    print(*story.path.glob("j.xml"), [p.read_text() for p in story.path.glob("j.xml")])
    assert 0
@pytest.mark.parametrize("args", [
 ["-n2"], 
])
def test_b(story, args, capfd):
    story.memory_does(ingest="Marigold")
    r = story.run_apart(*args)
    print("RC", r.ret, args, story.fed(), story.asked(), story.verdicts())
    assert 0
