"""The files that names, globs and folders mean, their formats, and how messages name them."""

from __future__ import annotations

import gzip
import os
import re
import stat
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from glob import escape, glob, has_magic
from itertools import takewhile
from pathlib import Path
from typing import Literal, TextIO, TypeAlias
from urllib.parse import parse_qsl, unquote

import polars as pl

from polars_wroc.checks import check_text, shorten_text
from polars_wroc.names import write_in_one_line

# Suffixes of files: the engine may name only the end of an address.
_FILE = r"\.(?:parquet|pq|arrow|ipc|feather|csv|tsv|txt|ndjson|jsonl|xlsx)(?:\.(?:gz|zst))?"
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


Format: TypeAlias = Literal["parquet", "ipc", "csv", "ndjson", "xlsx"]
# The formats that are read, by the suffix of a file.
_FORMATS: dict[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "ipc",
    ".ipc": "ipc",
    ".feather": "ipc",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".xlsx": "xlsx",
}
# Without rows these formats have no data types, and they do not store their number of rows.
UNTYPED = ("csv", "ndjson")
_COMPRESSED = (".gz", ".zst")
# In a folder such a file is a note beside the data.
_NOTES = (".txt",)
STANDARD_INPUT = "-"
_LONGEST = 255
# The most names of columns that a message lists.
_MOST_NAMES = 3
# The folder of rows without a value.
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
# Query parameters that give access to a file and do not identify it.
_SIGNATURE = re.compile(
    r"x-(amz|goog)-.*|(aws|google)access(key)?id|signature|expires|(access_)?token|sig|s[eprstv]|"
    r"spr|sip|srt|sdd|sk[estv]|sk[ot]id",
    re.IGNORECASE,
)
_PORTS = {"http": ":80", "https": ":443"}


def require_rows(frame: pl.LazyFrame, sources: Sequence[str]) -> None:
    """Check that files hold rows; those after one that has some are not opened."""
    if frame.head(1).select(pl.len()).collect().item() == 0:
        verb = "has" if len(sources) == 1 else "have"
        msg = f"{name_sources(sources)} {verb} no rows"
        raise ValueError(msg)


def each_file(sources: Sequence[str]) -> list[str]:
    """List the files that names, globs and folders mean, and check that they exist and differ.

    Cloud addresses are returned as they are.
    """
    found = [(file, source) for source in sources for file in _files_of(source)]
    seen: dict[object, str] = {}
    for file, source in found:
        identity = _identity(file)
        if identity in seen:
            first = seen[identity]
            msg = f"{first} is given twice"
            if first != source:
                msg = f"{first} and {source} name the same file"
            raise ValueError(one_line(msg))
        seen[identity] = source
    return [file for file, _ in found]


def format_of(sources: Sequence[str]) -> Format:
    """Return the format of files, which must be one."""
    first = sources[0]
    for source in sources[1:]:
        if _format(source) != _format(first):
            msg = f"files must be of one format; {name_sources([first, source])} are of two"
            raise ValueError(msg)
    if STANDARD_INPUT in sources and len(sources) > 1:
        msg = "the standard input, -, cannot be read together with files"
        raise ValueError(msg)
    return _format(first)


def unreadable(sources: Sequence[str], error: Exception) -> str:
    """Return the message that files cannot be read."""
    said = shorten_text(without_credentials(first_line(error)), _LONGEST)
    return f"cannot read {name_sources(sources)}: {said}"


def store_row_counts(sources: Sequence[str]) -> bool:
    """Whether files store their number of rows, so that it need not be counted."""
    return format_of(sources) in ("parquet", "ipc")


def reads(source: str, target: Path) -> bool:
    """Whether a source, which may be a folder or a pattern, includes the target."""
    local = local_name(source)
    if is_address(local):
        return False
    if _status(local) is None:
        return any(Path(match).resolve() == target for match in _matches(local))
    named = Path(local).resolve()
    return target == named or (named.is_dir() and named in target.parents)


def find_keys(sources: Sequence[str]) -> dict[str, list[str | None]]:
    """Return the columns that folders such as day=1 make, with a value for each file.

    They are folders below a folder that is named, or of a pattern or the name of a file. There are
    none if some files are in such folders, and others are in others.
    """
    found = [
        _keys(Path(file).relative_to(_root(source)))
        for source in sources
        if not is_address(source) and source != STANDARD_INPUT
        for file in _files_of(source)
    ]
    if len({tuple(keys) for keys in found}) != 1:
        return {}
    return {key: [keys[key] for keys in found] for key in found[0]}


def has_other_keys(files: Sequence[str], keys: Collection[str]) -> bool:
    """Whether files are in folders like day=1 above the ones that make columns."""
    return any(_keys(Path(file)).keys() - {*keys} for file in files)


def _keys(path: Path) -> dict[str, str | None]:
    """Read the names of folders such as day=1, as Hive writes them."""
    pairs = [part.split("=", 1) for part in path.parts[:-1] if "=" in part]
    return {key: None if text == _HIVE_NULL else unquote(text) for key, text in pairs}


def _root(source: str) -> str:
    """Return the folder below which the names of folders are values of columns."""
    local = local_name(source)
    if _is_folder(local):
        return local
    if _status(local) is not None:
        return Path(local).anchor
    fixed = takewhile(lambda part: not has_magic(part), Path(local).parts)
    return str(Path(*fixed))


def as_pattern(file: str, scan: Callable[..., pl.LazyFrame]) -> str:
    """Name a file so that the engine, which takes all names for patterns, reads only this one."""
    if not is_address(file):
        return escape(_plain(file))
    if _is_web(file) or escape(file) == file:
        return file
    # For cloud files the engine makes regular expressions, in which it translates only *.
    exactly = re.sub(r"[][*?]", lambda sign: f"[\\x{ord(sign[0]):X}]", file)
    try:
        scan([exactly]).collect_schema()
    except (OSError, pl.exceptions.PolarsError):
        return file.replace("?", "[^/]").replace("[!", "[^")
    return exactly


def _plain(file: str) -> str:
    """Name a file so that a first ``~`` or ``:`` is not read as a home folder or protocol."""
    return f"./{file}" if file.startswith("~") or ":" in file.partition("/")[0] else file


def _files_of(source: str) -> list[str]:
    check_text("files", source)
    local = local_name(source)
    if is_address(local) or source == STANDARD_INPUT:
        return [source]
    status = _status(local)
    if status is not None and stat.S_ISDIR(status.st_mode):
        return _in_folder(local)
    _format(local)
    files = [local] if status is not None else _matches(local)
    if not files:
        wanted = "no file matches" if has_magic(local) else "no such file:"
        msg = f"{wanted} {name_sources([source])}"
        raise ValueError(msg)
    for file in files:
        _check_file(file)
    return files


def _matches(pattern: str) -> list[str]:
    """Find the files that match a pattern."""
    found = glob(pattern, recursive=True)  # noqa: PTH207  (patterns with folders in front)
    return sorted(match for match in found if not _is_folder(match))


def _in_folder(folder: str) -> list[str]:
    """List the files of a folder and its subfolders, which must be of one format."""
    found = [str(path) for path in _walk(folder) if _is_data(path)]
    if not found:
        msg = f"folder {_write_source(folder)} has no file whose name ends in {_listed_suffixes()}"
        raise ValueError(msg)
    first = min(found)
    for file in sorted(found):
        if _format(file) != _format(first):
            pattern = f"{folder.rstrip('/')}/*{Path(first).suffix}"
            msg = (
                f"folder {_write_source(folder)} has files of several formats, "
                f"{name_sources([first, file])}: give the files of one format, "
                f"for example '{pattern}'"
            )
            raise ValueError(one_line(msg))
        _check_file(file)
    return sorted(found)


def _is_data(path: Path) -> bool:
    suffix = _drop_compression(path.name).suffix.lower()
    return suffix in _FORMATS and suffix not in _NOTES


def _walk(folder: str) -> Iterator[Path]:
    """List the files below a folder, following links, but no hidden files.

    Folders that begin with a point or an underscore hold notes of other programs.
    """

    def refuse(error: OSError) -> None:
        raise ValueError(unreadable([folder], error)) from error

    seen = set[object]()
    for place, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        folders[:] = [each for each in folders if not each.startswith((".", "_")) or "=" in each]
        identity = _identity(place)
        if identity in seen:
            msg = f"folder {_write_source(place)} is there twice, by a link"
            raise ValueError(msg)
        seen.add(identity)
        yield from (Path(place, name) for name in names if not name.startswith("."))


def _check_file(file: str) -> None:
    """Raise if a file does not exist, is a pipe or device, or cannot be named."""
    check_text("files", file)
    status = _status(file)
    if status is None:
        msg = f"no such file: {name_sources([file])}"
        raise ValueError(msg)
    if not stat.S_ISREG(status.st_mode):
        msg = f"{name_sources([file])} is a pipe or a device; pipe it to the standard input, -"
        raise ValueError(msg)


def _status(file: str) -> os.stat_result | None:
    """Return the status of a file; None if it does not exist."""
    try:
        return Path(file).stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or first_line(error)
        msg = f"cannot read {name_sources([file])}: {said}"
        raise ValueError(msg) from error


def _identity(file: str) -> object:
    """Return a value that is the same for all names of one file."""
    if file == STANDARD_INPUT:
        return file
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


def _format(source: str) -> Format:
    if source == STANDARD_INPUT:
        return _format_of_content(read_standard_input())
    path = local_name(source)
    if not is_address(path) and _is_folder(path):
        return _format(_in_folder(path)[0])
    if is_address(path) and path.endswith("/"):
        return "parquet"
    # In web addresses a question mark begins the query; elsewhere it is part of the name.
    name = re.split(r"[?#]", path, maxsplit=1)[0] if _is_web(path) else path
    bare = _drop_compression(name)
    found = _FORMATS.get(bare.suffix.lower())
    if found is None or (bare.name != Path(name).name and found not in UNTYPED):
        if not is_address(path) and not has_magic(path) and _status(path) is None:
            msg = f"no such file: {name_sources([source])}"
            raise ValueError(msg)
        msg = (
            f"cannot tell the format of {name_sources([source])}: its name must end in "
            f"{_listed_suffixes()}, and .csv or .ndjson may have .gz or .zst behind"
        )
        raise ValueError(msg)
    return found


def _listed_suffixes() -> str:
    *others, last = _FORMATS
    return f"{', '.join(others)} or {last}"


def _drop_compression(name: str) -> Path:
    """Remove the suffix of a compressed file."""
    path = Path(name)
    return path.with_suffix("") if path.suffix.lower() in _COMPRESSED else path


# The first bytes of files in other formats than CSV.
_BEGINNINGS: dict[bytes, Format] = {
    b"PAR1": "parquet",
    b"ARROW1": "ipc",
    b"PK": "xlsx",
    b"{": "ndjson",
}


def _format_of_content(content: bytes) -> Format:
    start = content.removeprefix(b"\xef\xbb\xbf").lstrip()
    return next((each for mark, each in _BEGINNINGS.items() if start.startswith(mark)), "csv")


# The first bytes of compressed files.
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def read_standard_input() -> bytes:
    """Read the standard input once, and decompress it."""
    if sys.stdin is None or sys.stdin.closed:
        msg = "cannot read the standard input: it is closed"
        raise OSError(msg)
    return _read_all(sys.stdin)


@lru_cache(maxsize=1)
def _read_all(stream: TextIO) -> bytes:
    content = stream.buffer.read()
    if content.startswith(ZSTD):
        return "\n".join(pl.scan_lines(content).collect().to_series()).encode()
    return gzip.decompress(content) if content.startswith(GZIP) else content


def local_name(source: str) -> str:
    """Remove the protocol ``file://`` from the name of a local file."""
    found = re.fullmatch(r"file://(?:localhost)?(/.*)", source, re.IGNORECASE | re.DOTALL)
    return unquote(found[1]) if found else source


def _is_folder(path: str) -> bool:
    # Not Path.is_dir, which raises for names that the system refuses.
    return os.path.isdir(path)  # noqa: PTH112


def is_address(source: str) -> bool:
    """Whether a source is a web or cloud address, which may be a pattern."""
    return "://" in source


def is_pattern(source: str) -> bool:
    """Whether a source is an address that may stand for several files."""
    return is_address(source) and not _is_web(source) and has_magic(source)


def describe_difference(columns: Collection[str], others: Collection[str]) -> str:
    """Describe how names of columns differ; empty if they are the same."""
    lacking = [name for name in columns if name not in others]
    more = [name for name in others if name not in columns]
    parts = list[str]()
    if lacking:
        parts.append(f"it lacks {', '.join(map(repr, lacking[:_MOST_NAMES]))}")
    if more:
        parts.append(f"it has {', '.join(map(repr, more[:_MOST_NAMES]))}")
    return " and ".join(parts)


def _is_web(source: str) -> bool:
    return source.lower().startswith(("http://", "https://"))


def name_sources(sources: Sequence[str]) -> str:
    """Write the names of files for a message, without credentials."""
    return one_line(", ".join(_write_source(source) for source in sources))


def _write_source(source: str) -> str:
    """Write a name for a message."""
    if source == STANDARD_INPUT:
        return "standard input"
    return shorten_text(without_credentials(source), _LONGEST)
