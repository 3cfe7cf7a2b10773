"""Rows become data files: conformed, grouped, shredded and measured."""
