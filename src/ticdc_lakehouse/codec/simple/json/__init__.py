"""Simple in JSON."""
