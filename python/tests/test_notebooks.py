"""The notebooks run from their beginning to their end, and say what they say in the repository."""

from __future__ import annotations

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")


def words(notebook) -> list[str]:
    """What the cells print; pictures differ with the version of what draws them."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output["data"]["text/plain"] for output in outputs if "image/png" not in output.get("data", {})]


@pytest.mark.parametrize("name", ["starlink", "own-controller"])
def test_a_notebook_says_what_it_said(repository, name):
    file = repository / "python" / "notebooks" / f"{name}.ipynb"
    kept = nbformat.read(file, as_version=4)
    fresh = nbformat.read(file, as_version=4)
    nbclient.NotebookClient(
        fresh, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(file.parent)}}
    ).execute()
    assert words(kept), "the notebook is kept with its output"
    assert words(fresh) == words(kept)
    pictures = [o for cell in fresh.cells for o in cell.get("outputs", []) if "image/png" in o.get("data", {})]
    assert pictures
