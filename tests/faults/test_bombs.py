"""Archives and texts that grow without bound are refused before they do."""

import gzip
import zipfile

import pytest

from gcaps.data.catalog import load
from gcaps.errors import ConfigError, DataError
from gcaps.evaluation.experiments import configurations


def test_a_zip_within_the_ratio_of_deflate_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "B.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("B_A.txt", "w") as stream:
            for _ in range(100):
                stream.write(b"1,2\n" * (1 << 18))
        archive.writestr("B_graph_indicator.txt", "1\n1\n")
    with pytest.raises(DataError, match="beyond the limit"):
        load(tmp_path / "B.zip")


@pytest.mark.parametrize("name", ["b.csv.gz", "b.json.gz", "b.graphml.gz"])
def test_a_gzip_bomb_is_refused(name, tmp_path):
    with gzip.open(tmp_path / name, "wb", compresslevel=1) as stream:
        for _ in range(70):
            stream.write(b"a,b\n" * (1 << 18))
    with pytest.raises(DataError, match="beyond the limit"):
        load(tmp_path / name)


@pytest.mark.parametrize("name", ["b.csv", "b.smi", "b.sdf"])
def test_an_endless_line_is_refused(name, tmp_path):
    (tmp_path / name).write_text("smiles,y\nCC,1\n" + "><" * 3_000_000)
    with pytest.raises(DataError, match=r"a line of more than|larger than field limit"):
        load(tmp_path / name)


def test_entities_of_xml_are_refused(tmp_path):
    (tmp_path / "b.graphml").write_text('<!DOCTYPE g [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><graphml>&b;</graphml>')
    with pytest.raises(DataError, match="document type"):
        load(tmp_path / "b.graphml")


def test_a_grid_is_counted_before_it_is_expanded():
    grid = {"gcaps": {name: [i / 200 for i in range(1, 200)] for name in ("lr", "decay", "validation")}}
    with pytest.raises(ConfigError, match="7,880,599 combinations"):
        configurations("gcaps", grid)
