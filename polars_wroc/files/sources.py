"""Reading of files: the files that names, globs and folders mean, scanned as one LazyFrame."""

from __future__ import annotations

import csv
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from glob import escape, glob
from pathlib import Path
from urllib.parse import parse_qsl, unquote

import polars as pl

from polars_wroc.checks import check_text, find_separator, reject, shortened
from polars_wroc.names import write_in_one_line

# Suffixes of files: the engine may name only the end of an address.
_FILE = r"\.(?:parquet|pq|arrow|ipc|feather|csv|ndjson|jsonl)"
# Where an address ends inside a sentence.
_END = r"(?=[)\]>,;:.'\"]*(?:\s|$))"
_ADDRESS = re.compile(rf"(?<![a-z])([a-z][a-z0-9+.-]*)://(\S+?){_END}", re.IGNORECASE)
# A password may hold any character, so it ends with the last @ before another address.
_PASSWORD = re.compile(
    r"(?<=://)[^\s/@:[]*:(?!\d+(?:[/?#\s)\]>,;:.'\"]|$))(?:(?!://)[^\n])*@", re.IGNORECASE
)
_QUERY = re.compile(rf"(?<=\w)({_FILE})[?#]\S+?{_END}", re.IGNORECASE)
_SECRET = re.compile(
    r"\b((?:x-(?:amz|goog)-[\w-]+|awsaccesskeyid|signature|sig|token|access_token)=)[^\s&'\"),]+",
    re.IGNORECASE,
)
# In these addresses the part before the @ is a container, not a user.
_CONTAINERS = ("abfs", "abfss", "adl", "wasb", "wasbs")


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def one_line(text: str) -> str:
    """Write a message in one line without credentials."""
    return without_credentials(write_in_one_line(text))


def without_credentials(text: str) -> str:
    """Remove the user, password, query and fragment from the cloud addresses in a text.

    The query may hold the signature of a signed address.
    """
    text = _ADDRESS.sub(_bare, _PASSWORD.sub("", text))
    text = _QUERY.sub(r"\1", text)
    return _SECRET.sub(r"\1...", text)


def _bare(found: re.Match[str]) -> str:
    scheme, rest = found[1].lower(), found[2]
    start = re.split(r"[/?#]", rest, maxsplit=1)[0]
    colon = ":" in re.sub(r"^\[[^]]*\]", "", start)
    contained = scheme in _CONTAINERS and not colon
    if "@" in rest and ("@" in start or colon) and not contained:
        rest = rest.rpartition("@")[2]
    elif colon and not re.search(r":\d*$", start):
        # No port, so perhaps the beginning of a password.
        rest = "..."
    # In the web a question mark begins a query; elsewhere it may be a part of a pattern.
    ends = r"[?#]" if scheme in ("http", "https") else r"\?(?=[\w.%-]+=)|#"
    return f"{found[1]}://{re.split(ends, rest, maxsplit=1)[0]}"


# An empty text is a missing value, with or without quotes.
_scan_csv = partial(pl.scan_csv, null_values=[""])
# Files may have columns that the first one does not have.
_scan_parquet = partial(pl.scan_parquet, extra_columns="ignore")
_SCANS: dict[str, Callable[..., pl.LazyFrame]] = {
    ".parquet": _scan_parquet,
    ".pq": _scan_parquet,
    ".arrow": pl.scan_ipc,
    ".ipc": pl.scan_ipc,
    ".feather": pl.scan_ipc,
    ".csv": _scan_csv,
    ".ndjson": pl.scan_ndjson,
    ".jsonl": pl.scan_ndjson,
}
# Without rows these formats have no data types, and they do not store their number of rows.
_UNTYPED = (".csv", ".ndjson", ".jsonl")
_IN_FOLDERS = (".parquet", ".pq")
_LONGEST = 255
# Query parameters that give access to a file and do not identify it.
_SIGNATURE = re.compile(
    r"x-(amz|goog)-.*|(aws|google)access(key)?id|signature|expires|(access_)?token|sig|s[eprstv]|"
    r"spr|sip|srt|sdd|sk[estv]|sk[ot]id",
    re.IGNORECASE,
)
_PORTS = {"http": ":80", "https": ":443"}


def scan(sources: Sequence[str]) -> pl.LazyFrame:
    """Scan files, globs, folders of Parquet files or cloud addresses of one format as one frame."""
    suffix = format_of(sources)
    files = each_file(sources)
    try:
        frame = _plan(sources, files, _SCANS[suffix])
        columns = frame.collect_schema().names()
        if suffix == ".csv":
            _require_commas(columns, sources)
        # Other formats say what their columns are without a row.
        if suffix in _UNTYPED:
            require_rows(frame, sources)
    except (OSError, pl.exceptions.PolarsError) as error:
        # The engine's message may hold credentials.
        raise ValueError(unreadable(sources, error)) from None
    return frame


def require_rows(frame: pl.LazyFrame, sources: Sequence[str]) -> None:
    """Check that files hold rows; those after one that has some are not opened."""
    if frame.head(1).select(pl.len()).collect().item() == 0:
        reject("files", "hold rows", f"none in {name_sources(sources)}")


def _require_commas(columns: Sequence[str], sources: Sequence[str]) -> None:
    """Check that the header of CSV files was not read as one column."""
    separator = find_separator(columns)
    if separator is None:
        return
    options = f"separator={separator!r}"
    if separator == ";":
        options += ", decimal_comma=True"
    how = f"pl.read_csv('in.csv', {options}).write_csv('out.csv')"
    found = f"{separator!r} between the names in {name_sources(sources)}"
    reject("files", "separate columns by commas", f"{found}: convert them in Python by {how}")


def each_file(sources: Sequence[str]) -> list[str]:
    """List the files that names, globs and folders mean, and check that they exist and differ.

    Cloud addresses are returned as they are.
    """
    found = [(file, source) for source in sources for file in _files_of(source)]
    seen: dict[object, str] = {}
    for file, source in found:
        shown = repr(_shown(file)) + ("" if file == source else f" in {_shown(source)!r}")
        identity = _identity(file)
        if identity in seen:
            found_twice = f"found {seen[identity]} and {shown}, which are one"
            msg = f"`files` must be different files; {found_twice}"
            raise ValueError(msg)
        seen[identity] = shown
    return [file for file, _ in found]


def format_of(sources: Sequence[str]) -> str:
    """Return the suffix of files, which must be of one format."""
    suffixes = {_suffix(source) for source in sources}
    if len(suffixes) > 1:
        reject("files", "be of one format", ", ".join(sorted(suffixes)))
    (suffix,) = suffixes
    return suffix


def unreadable(sources: Sequence[str], error: Exception) -> str:
    """Return the message that files cannot be read."""
    found = f"{name_sources(sources)}: {without_credentials(first_line(error))}"
    return f"`files` must be readable; found {found}"


def find_ragged_line(files: Sequence[str]) -> str | None:
    """Say which line of local CSV files has more fields than the header; None if none has."""
    for file in files:
        if is_address(file) or _suffix(file) != ".csv":
            continue
        with Path(_local(file)).open(encoding="utf-8", errors="replace", newline="") as text:
            lines = csv.reader(text)
            width = len(next(lines, []))
            for fields in lines:
                if len(fields) > width:
                    return (
                        f"`files` must have no more fields in a line than names in the header; "
                        f"{_shown(file)} has {len(fields)} for {width} in line {lines.line_num}"
                    )
    return None


def store_row_counts(sources: Sequence[str]) -> bool:
    """Whether files store their number of rows, so that it need not be counted."""
    return not any(_suffix(source) in _UNTYPED for source in sources)


def reads(source: str, target: Path) -> bool:
    """Whether a source, which may be a folder or a pattern, includes the target."""
    local = _local(source)
    if is_address(local):
        return False
    if _status(local) is None:
        return any(Path(match).resolve() == target for match in _matches(local))
    named = Path(local).resolve()
    return target == named or (named.is_dir() and named in target.parents)


def _plan(
    sources: Sequence[str], files: Sequence[str], scan_files: Callable[..., pl.LazyFrame]
) -> pl.LazyFrame:
    folder = _local(sources[0])
    if len(sources) == 1 and _has_keys(folder, files):
        # Given the top folder, the engine makes columns of folders like day=1.
        named = _plain(folder)
        return scan_files(named, glob=False, hive_partitioning=True, hidden_file_prefix=".")
    return scan_files([_as_pattern(file, scan_files) for file in files])


def _has_keys(folder: str, files: Sequence[str]) -> bool:
    """Whether files are in folders like day=1 below a folder."""
    below = (Path(file).relative_to(folder) for file in files if _is_folder(folder))
    return any("=" in part for file in below for part in file.parts[:-1])


def _as_pattern(file: str, scan_files: Callable[..., pl.LazyFrame]) -> str:
    """Name a file so that the engine, which takes all names for patterns, reads only this one."""
    if not is_address(file):
        return escape(_plain(file))
    if _is_web(file) or escape(file) == file:
        return file
    # For cloud files the engine makes regular expressions, in which it translates only *.
    exactly = re.sub(r"[][*?]", lambda sign: f"[\\x{ord(sign[0]):X}]", file)
    try:
        scan_files([exactly]).collect_schema()
    except (OSError, pl.exceptions.PolarsError):
        return file.replace("?", "[^/]").replace("[!", "[^")
    return exactly


def _plain(file: str) -> str:
    """Name a file so that a first ``~`` or ``:`` is not read as a home folder or protocol."""
    return f"./{file}" if file.startswith("~") or ":" in file.partition("/")[0] else file


def _files_of(source: str) -> list[str]:
    check_text("files", source)
    local = _local(source)
    if is_address(local):
        _suffix(source)
        return [source]
    status = _status(local)
    if status is not None and stat.S_ISDIR(status.st_mode):
        return _in_folder(local)
    _suffix(local)
    files = [local] if status is not None else _matches(local) or [source]
    for file in files:
        _check_file(file)
    return files


def _matches(pattern: str) -> list[str]:
    """Find the files that match a pattern."""
    found = glob(pattern, recursive=True)  # noqa: PTH207  (patterns with folders in front)
    return sorted(match for match in found if not _is_folder(match))


def _in_folder(folder: str) -> list[str]:
    """List the Parquet files of a folder and its subfolders."""
    found = [path for path in _walk(folder) if path.suffix.lower() in _SCANS]
    files = [path for path in found if path.suffix.lower() in _IN_FOLDERS]
    if not files or len(files) < len(found):
        others = sorted({path.suffix.lower() for path in found} - {*_IN_FOLDERS})
        what = f"{', '.join(others)} files" if files else "none"
        rule = f"must hold {'only ' if files else ''}Parquet files where it is a folder"
        msg = f"`files` {rule}; found {what} in {_shown(folder)!r}"
        raise ValueError(msg)
    for file in files:
        _check_file(str(file))
    return sorted(str(file) for file in files)


def _walk(folder: str) -> Iterator[Path]:
    """List the files below a folder, following links, without hidden files."""

    def refuse(error: OSError) -> None:
        raise ValueError(unreadable([folder], error)) from error

    seen = set[object]()
    for place, _, names in os.walk(folder, onerror=refuse, followlinks=True):
        identity = _identity(place)
        if identity in seen:
            reject("files", "be different files", f"{_shown(place)!r} twice, by a link")
        seen.add(identity)
        yield from (Path(place, name) for name in names if not name.startswith("."))


def _check_file(file: str) -> None:
    """Raise if a file does not exist, is a pipe or device, or cannot be named."""
    check_text("files", file)
    status = _status(file)
    if status is None:
        reject("files", "exist", f"no {_shown(file)!r}")
    if not stat.S_ISREG(status.st_mode):
        reject("files", "be files or folders", f"a pipe or a device, {_shown(file)!r}")


def _status(file: str) -> os.stat_result | None:
    """Return the status of a file; None if it does not exist."""
    try:
        return Path(file).stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or first_line(error)
        msg = f"`files` must be readable; found {name_sources([file])}: {said}"
        raise ValueError(msg) from error


def _identity(file: str) -> object:
    """Return a value that is the same for all names of one file."""
    if not is_address(file):
        status = Path(file).stat()
        return (status.st_dev, status.st_ino) if status.st_ino else Path(file).resolve()
    scheme, _, rest = file.partition("#")[0].partition("://")
    if not _is_web(file):
        return scheme.lower(), rest
    place, _, query = rest.partition("?")
    host, _, path = place.partition("/")
    host = host.rpartition("@")[2].lower().removesuffix(_PORTS[scheme.lower()])
    asked = (each for each in parse_qsl(query) if not _SIGNATURE.fullmatch(each[0]))
    return scheme.lower(), host, path, *asked


def _suffix(source: str) -> str:
    path = _local(source)
    if not is_address(path) and _is_folder(path):
        return ".parquet"
    # In web addresses a question mark begins the query; elsewhere it is part of the name.
    name = re.split(r"[?#]", path, maxsplit=1)[0] if _is_web(path) else path
    suffix = Path(name).suffix.lower()
    if suffix not in _SCANS:
        reject("files", f"end in one of {', '.join(_SCANS)}", repr(_shown(source)))
    return suffix


def _local(source: str) -> str:
    """Remove the protocol ``file://`` from the name of a local file."""
    found = re.fullmatch(r"file://(?:localhost)?(/.*)", source, re.IGNORECASE | re.DOTALL)
    return unquote(found[1]) if found else source


def _is_folder(path: str) -> bool:
    # Not Path.is_dir, which raises for names that the system refuses.
    return os.path.isdir(path)  # noqa: PTH112


def is_address(source: str) -> bool:
    """Whether a source is a web or cloud address, which may be a pattern."""
    return "://" in source


def _is_web(source: str) -> bool:
    return source.lower().startswith(("http://", "https://"))


def name_sources(sources: Sequence[str]) -> str:
    """Write the names of files for a message, without credentials."""
    return one_line(", ".join(_shown(source) for source in sources))


def _shown(source: str) -> str:
    """Write a name for a message."""
    return shortened(without_credentials(source), _LONGEST)
