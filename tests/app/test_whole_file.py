"""Files that appear when they are whole."""

import pytest

from sixfold.app.whole_file import write_whole


def test_a_file_holds_all_pieces_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / ("x" * 200)
    write_whole(path, [b"one ", memoryview(b"two")])
    assert path.read_bytes() == b"one two"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError("the disk is full"), KeyboardInterrupt()])
def test_a_file_that_is_there_stays_as_it_is_where_writing_fails(tmp_path, error):
    def pieces():
        yield b"half"
        raise error

    path = tmp_path / "model"
    path.write_bytes(b"before")
    with pytest.raises(type(error)):
        write_whole(path, pieces())
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]
