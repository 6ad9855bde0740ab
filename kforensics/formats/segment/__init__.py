"""A `.log` file: its entries in order, their damage, and where sound batches begin again."""
