"""Reading files lazily, and writing files completely or not at all."""
