"""One run over some inputs: the case, its facts, and what is judged by them."""
