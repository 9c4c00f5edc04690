"""How texts are said shorter: tool results of any kind, cut where nothing is torn, folded, and named by what they held.

Strings and JSON in, strings and JSON out: nothing here knows of messages, spans or tokens but by a measure it is given.
"""
