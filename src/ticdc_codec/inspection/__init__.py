"""What a message is, for people: protocol and why, events with values and types, and what each byte is.

``inspector`` looks, ``view`` makes a tree of it, ``terminal`` and ``page`` show the tree.
"""

from ticdc_codec.inspection.inspector import Inspection, Inspector, inspect

__all__ = ["Inspection", "Inspector", "inspect"]
