"""The generated messages of errors."""
