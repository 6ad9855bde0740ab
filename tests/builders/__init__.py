"""Values that tests are made of, in one place."""
