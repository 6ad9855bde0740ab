"""What a command is asked: every option once, for the command line, the library and the manual pages."""
