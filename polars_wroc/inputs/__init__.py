"""Reading and checking of what the caller passes."""
