"""Findings and documents as text, JSON and HTML; knows nothing of disks."""
