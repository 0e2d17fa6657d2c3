"""Model files: one safetensors file, never pickle, and checks of everything that is read."""
