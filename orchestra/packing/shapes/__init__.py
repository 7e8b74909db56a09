"""Shapes: what a declared type says about a value, and how to carry such a value exactly.

A shape turns a value into a tree of what msgpack carries by itself (None, bool, int, float, str,
bytes, lists) and the tree into an equal value. What cannot be carried exactly, and need not be
copied, is put beside the tree, into a list of *riders*, and the tree has its place in that list.
A value that does not fit its declared type raises `Refusal`.

Shapes are the meaning of boxing. The functions that `orchestra.packing.boxes` writes do the
same faster for values that are as their types say, and come here for all others.
"""
