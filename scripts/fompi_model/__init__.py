"""The parts of scripts/fompi-model. Only the standard library is needed, except for drawing.py."""
