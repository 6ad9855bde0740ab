"""The lines a broker writes about its logs, one module a concern; `formats.server_log` reads whole files with them."""
