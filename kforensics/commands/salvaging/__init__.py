"""What `salvage` writes: records in several forms, a manifest, and how to put them back."""
