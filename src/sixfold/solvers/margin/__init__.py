"""Hinge losses: interior point, dual coordinate descent, hard and widest margin."""
