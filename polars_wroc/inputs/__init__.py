"""Arguments of the caller, read and checked."""
