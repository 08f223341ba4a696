"""Files in object storage: read where they are, and written back there."""

from __future__ import annotations

from collections.abc import Iterator

import boto3
import polars as pl
import pytest
from moto.server import ThreadedMotoServer
from polars.testing import assert_frame_equal

import polars_wroc as wroc
from polars_wroc.cli import main

BUCKET = "studies"
KEYS = {"access_key_id": "tester", "secret_access_key": "secret", "region": "us-east-1"}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A server that speaks S3, with one empty bucket."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    client = boto3.client(
        "s3",
        endpoint_url=address,
        aws_access_key_id=KEYS["access_key_id"],
        aws_secret_access_key=KEYS["secret_access_key"],
        region_name=KEYS["region"],
    )
    client.create_bucket(Bucket=BUCKET)
    yield address
    server.stop()


@pytest.fixture
def options(endpoint: str) -> dict[str, str]:
    """What Polars must know to find the server."""
    keys = {f"aws_{name}": value for name, value in KEYS.items()}
    return keys | {"aws_endpoint_url": endpoint, "aws_allow_http": "true"}


@pytest.fixture
def parts(people: pl.DataFrame, options: dict[str, str]) -> str:
    """The people, in three files."""
    for number in range(3):
        part = people[200 * number : 200 * (number + 1)]
        part.write_parquet(f"s3://{BUCKET}/people/{number}.parquet", storage_options=options)
    return f"s3://{BUCKET}/people/*.parquet"


def test_summary_of_files_in_a_bucket_is_that_of_the_rows(
    people: pl.DataFrame, parts: str, options: dict[str, str]
) -> None:
    scan = pl.scan_parquet(parts, storage_options=options)
    found = wroc.summary(scan, "y", "s", weight="w", by="g").collect()
    expected = wroc.summary(people, "y", "s", weight="w", by="g")
    assert_frame_equal(found, expected, rel_tol=1e-12)


def test_counts_are_written_to_a_bucket_and_add_up(
    people: pl.DataFrame, parts: str, options: dict[str, str]
) -> None:
    for number in range(3):
        scan = pl.scan_parquet(parts.replace("*", str(number)), storage_options=options)
        counts = wroc.score_counts(scan, "y", "s", weight="w", by="g")
        counts.sink_parquet(f"s3://{BUCKET}/counts/{number}.parquet", storage_options=options)
    states = [
        pl.scan_parquet(f"s3://{BUCKET}/counts/{number}.parquet", storage_options=options)
        for number in range(3)
    ]
    found = wroc.from_counts(wroc.merge_counts(states)).summary(by="g").collect()
    expected = wroc.summary(people, "y", "s", weight="w", by="g")
    assert_frame_equal(found, expected, rel_tol=1e-11)


def test_command_line_reads_a_bucket(
    people: pl.DataFrame,
    parts: str,
    options: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in options.items():
        monkeypatch.setenv(name.upper(), value)
    columns = ["--label", "y", "--score", "s", "--weight", "w"]
    assert main(["auc", parts, *columns, "-o", "-"]) == 0
    found = pl.read_json(capsys.readouterr().out.encode())
    assert_frame_equal(found, wroc.summary(people, "y", "s", weight="w"), rel_tol=1e-12)
