"""Packing: messages of one class as boxes, and boxes as messages again.

What the annotations of a class mean (`hints`, `classes`, `native`) becomes a shape (`shaping`, `shapes`), and
a shape becomes the functions that seal and open messages: written out for values that are as declared
(`conditions`, `checks`, `trees`, `boxes`), general for all others (`loose`). `making` makes the `codec`.
"""
