"""The reference on the site: docstrings as `.ci/docstrings.py` rewrites them."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest
from site_navigation import ROOT

TEXT = """Return gaps.

- ``gap, gap_low``: the gap, with
  its limit;
- the ``by`` columns (and ``model``);
- ``n`` (Int64): rows.

Text.
"""


@pytest.fixture(scope="module")
def extension() -> ModuleType:
    found = importlib.util.spec_from_file_location("docstrings", ROOT / ".ci" / "docstrings.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules["docstrings"] = module
    found.loader.exec_module(module)
    return module


def test_a_list_of_columns_becomes_a_table_with_types(extension: ModuleType) -> None:
    columns = {"gap": "Float64", "gap_low": "Float64", "model": "String"}
    assert extension._with_tables(TEXT, columns) == (
        "Return gaps.\n\n"
        "| column | type | meaning |\n"
        "| --- | --- | --- |\n"
        "| ``gap, gap_low`` | Float64 | the gap, with its limit |\n"
        "| the ``by`` columns (and ``model``) |  |  |\n"
        "| ``n`` | Int64 | rows |\n"
        "\nText.\n"
    )


def test_a_list_without_columns_stays_a_list(extension: ModuleType) -> None:
    text = "Rules:\n\n- equal scores are a tie;\n- ``None``: no limit.\n"
    assert extension._with_tables(text, {"gap": "Float64"}) == text


def test_the_types_of_columns_come_from_all_tables_of_a_function(extension: ModuleType) -> None:
    columns = extension._columns_of("group_gaps")
    assert columns["gap"] == "Float64"
    assert columns["verdict"] == "String"
    assert columns["gap_explained"] == "Float64", "only within strata"
    assert "auc_low" not in columns, "a column of summary"
    assert extension._columns_of("confusion_matrix")["ppv"] == "Float64"
