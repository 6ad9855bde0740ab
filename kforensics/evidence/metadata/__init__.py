"""The KRaft metadata log: every state that it leads to."""
