"""Generators of inputs that nobody wrote: files from outside (C++, reader_fuzz), Python programs, operator graphs."""
