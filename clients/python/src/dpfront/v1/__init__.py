"""The generated messages and stubs of the contract."""
