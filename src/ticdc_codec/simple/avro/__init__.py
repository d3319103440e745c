"""Simple in Avro: one message of the writers' schema in each Kafka value, without header or schema id.

    16               the 12th type of the union at the top: Message
    00 00            type and payload: 00 00 Watermark, 02 02 Bootstrap, 04 04 DDL, 06 06 DML
    …                the payload's fields (wire.md 1.3.2)

fastavro writes all messages and reads those without a row (``message``). The rows of a batch are read all at once, one
field of all of them after the other (``rows``, ``cursors``, ``images``, ``values``). No length or count is believed
before the bytes are there. ``schema`` names the fault of a message that is not what its schema says.
"""
