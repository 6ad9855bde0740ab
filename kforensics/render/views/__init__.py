"""What each command shows, as blocks: one view for all formats."""
