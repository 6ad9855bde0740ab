"""Open and torn transactions of every replica, joined with what their coordinators know."""
