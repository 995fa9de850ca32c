# Generated from _async by make generate-python. Do not edit.

"""The clients."""
