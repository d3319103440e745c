"""Simple in Avro: a Message of the writers' ``message.json`` in each Kafka value, without header or schema id.

    16               the 12th type of the union at the top: Message
    00 00            type and payload: 00 00 Watermark, 02 02 Bootstrap, 04 04 DDL, 06 06 DML
    …                the payload's fields (wire.md 1.3.2)

Messages without a row are read field by field (``control``), the rows of a batch all at once, one field of all of them
after the other (``cursors``, ``rows``, ``values``). No length or count is believed before the bytes are there.
"""
