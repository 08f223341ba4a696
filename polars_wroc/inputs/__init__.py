"""What the caller passes, read and checked."""
