"""Record batches and message sets, their records, and the table of batches."""
