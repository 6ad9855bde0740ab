"""Screens: what a person reads in a terminal."""
