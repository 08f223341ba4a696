"""Files in, lazily, and files out, whole or not at all."""
