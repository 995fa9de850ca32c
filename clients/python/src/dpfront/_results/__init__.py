"""The server's answers as plain objects.

``raw`` is the message of the contract behind an object, with everything that has no name here.
``str`` gives a text for people, and notebooks show the same as HTML.
"""
