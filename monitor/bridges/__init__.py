"""Bridges: our numbers and findings, sent one way into what a team uses already.

Each bridge is one file that alone knows its library, and runs in a process of its own (`torchvitals bridge`)
or in the hub: never in the training process, where it could do harm.
"""
