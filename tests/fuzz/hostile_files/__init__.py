"""Hostile files, a source a kind; ../hostile.py runs the program over them."""
