"""Files in object storage: read where they are, and written back there."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import polars as pl
import pytest
from moto.server import ThreadedMotoServer
from polars.testing import assert_frame_equal

import polars_wroc as wroc
from polars_wroc.cli import main
from polars_wroc.files.scan import scan_files

BUCKET = "studies"
KEYS = {"access_key_id": "tester", "secret_access_key": "secret", "region": "us-east-1"}


def client_of(endpoint: str) -> Any:
    """A client that may do what it wants."""
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id=KEYS["access_key_id"],
        aws_secret_access_key=KEYS["secret_access_key"],
        region_name=KEYS["region"],
    )


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A server that speaks S3, with one empty bucket."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    client_of(address).create_bucket(Bucket=BUCKET)
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


@pytest.mark.slow(reason="starts a server")
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
    listed = json.loads(capsys.readouterr().out)
    found = pl.DataFrame(listed, schema_overrides={"ci_note": pl.String})
    assert_frame_equal(found, wroc.summary(people, "y", "s", weight="w"), rel_tol=1e-12)


@pytest.mark.slow(reason="starts a server")
def test_signed_addresses_are_read_and_not_told(
    people: pl.DataFrame,
    parts: str,
    endpoint: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert parts
    signed = [
        client_of(endpoint).generate_presigned_url(
            "get_object", Params={"Bucket": BUCKET, "Key": f"people/{number}.parquet"}
        )
        for number in range(3)
    ]
    assert all("Signature=" in address for address in signed)
    # In a query no sign is a pattern.
    signed[2] += "&note=a*b[1]?"
    bare = [f"{endpoint}/{BUCKET}/people/{number}.parquet" for number in range(3)]
    columns = ["--label", "y", "--score", "s", "--weight", "w"]
    assert main(["auc", *signed, *columns, "-o", "-"]) == 0
    listed = json.loads(capsys.readouterr().out)
    found = pl.DataFrame(listed, schema_overrides={"ci_note": pl.String})
    assert_frame_equal(found, wroc.summary(people, "y", "s", weight="w"), rel_tol=1e-12)
    for page in ("report.html", "report.json"):
        assert (
            main(["audit", *signed, *columns, "--attribute", "g", "-o", str(tmp_path / page)]) == 0
        )
        text = (tmp_path / page).read_text(encoding="utf-8")
        assert "Signature" not in text
        assert KEYS["access_key_id"] not in text
    assert [file["name"] for file in json.loads(text)["run"]["files"]] == bare
    capsys.readouterr()
    assert main(["auc", signed[0], signed[0], *columns]) == 2
    assert main(["auc", signed[0], signed[1].replace("people/1", "none"), *columns]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 2
    assert "is given twice" in err
    assert "Signature" not in err
    assert KEYS["access_key_id"] not in err


def test_a_name_in_a_bucket_that_exists_is_no_pattern(
    people: pl.DataFrame,
    options: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in options.items():
        monkeypatch.setenv(name.upper(), value)
    columns = ["--label", "y", "--score", "s", "-o", "-"]
    names = {"q[1]": 40, "q1": 10, "z*k": 50, "zXk": 20}
    for name, number in names.items():
        address = f"s3://{BUCKET}/names/{name}.parquet"
        people.head(number).write_parquet(address, storage_options=options)
    for name, number in {**names, "z?k": 70, "q[1-2]": 10, "q[!2]": 10, "q*": 50}.items():
        assert main(["auc", f"s3://{BUCKET}/names/{name}.parquet", *columns]) == 0
        assert json.loads(capsys.readouterr().out)[0]["n"] == number


@pytest.mark.slow(reason="starts a server")
def test_faults_of_a_bucket_are_one_line(endpoint: str) -> None:
    names = ("aws_access_key_id", "aws_secret_access_key")
    keys = {name.upper(): KEYS[name.removeprefix("aws_")] for name in names}
    columns = ["--label", "y", "--score", "s"]
    there = {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true"}
    done = subprocess.run(  # noqa: S603  (our own code)
        [sys.executable, "-m", "polars_wroc", "auc", f"s3://{BUCKET}/none.parquet", *columns],
        env=keys | there,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"polars-wroc: cannot read s3://{BUCKET}/no")
    assert done.stderr.count("\n") == 1


def test_folders_and_csv_dialects_of_a_bucket_are_read(
    parts: str, endpoint: str, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in options.items():
        monkeypatch.setenv(name.upper(), value)
    folder = parts.removesuffix("*.parquet")
    assert scan_files([folder]).select(pl.len()).collect().item() == 600
    text = "y;s;g\n1;0,5;007\n0;1;010\n"
    client_of(endpoint).put_object(Bucket=BUCKET, Key="csv/a.csv", Body=text.encode())
    told: list[str] = []
    address = f"s3://{BUCKET}/csv/a.csv"
    found = scan_files([address], text=["y", "g"], numbers=["s"], tell=told.append).collect()
    assert found.rows() == [(1, 0.5, "007"), (0, 1.0, "010")]
    assert told == [f"read {address} as semicolon-separated, decimal comma"]
    long_row = "y,s,g\n1,0.5,a\n0,0.25,b,c\n"
    client_of(endpoint).put_object(Bucket=BUCKET, Key="csv/b.csv", Body=long_row.encode())
    with pytest.raises(ValueError, match=r"a line of s3://.*/b\.csv has more fields"):
        scan_files([f"s3://{BUCKET}/csv/b.csv"]).select("g").collect()
