"""Read a `.log` file: its entries in order, their damage, and the places where sound batches begin again."""
