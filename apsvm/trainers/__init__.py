"""Recipes: what is minimised, in which stages, and what is logged of it."""
