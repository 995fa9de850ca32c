"""Bridges to other packages."""
