"""The operations of clients, without input and output.

Every operation is a generator. It yields a `Call`, which returns the answer or raises a
`CallError`, and a `Pause` to wait; it returns the result. The blocking and the asyncio client
run the same operations, so that request ids and errors cannot differ between them.
"""
