"""What a message is, for people: protocol and why, events with values and types, and what each byte is.

``inspector`` decodes and maps a message, ``view`` makes a tree of the result, and text and HTML of the tree.
"""

from ticdc_codec.inspection.inspector import Inspection, Inspector, inspect

__all__ = ["Inspection", "Inspector", "inspect"]
