"""Conclusions across replicas: evidence and protocol in, verdicts out."""
