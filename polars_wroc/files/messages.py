"""Error messages in one line, without the credentials of cloud addresses."""

from __future__ import annotations

import re

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
    return without_credentials(" ".join(text.split("\n")).replace("\r", " "))


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
