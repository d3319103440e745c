"""A small shop: customers buy, pay, send back; goods are restocked and renamed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from random import Random

from ticdc_testkit.workload.database import Database, Key

SCHEMA = """\
USE `shop`;

CREATE TABLE `customers` (
  `id` bigint(20) NOT NULL,
  `name` varchar(60) NOT NULL,
  `email` varchar(80) DEFAULT NULL,
  `balance` decimal(12,2) NOT NULL,
  `vip` tinyint(1) NOT NULL,
  `born` date DEFAULT NULL,
  `wishes` json DEFAULT NULL,
  `avatar` varbinary(32) DEFAULT NULL,
  PRIMARY KEY (`id`) /*T![clustered_index] CLUSTERED */
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE `stock` (
  `sku` varchar(20) NOT NULL,
  `title` varchar(100) NOT NULL,
  `price` decimal(10,2) NOT NULL,
  `quantity` int(11) NOT NULL,
  `weight` double DEFAULT NULL,
  `labels` set('new','sale','heavy','last') DEFAULT NULL,
  `counted` datetime(6) DEFAULT NULL,
  PRIMARY KEY (`sku`) /*T![clustered_index] CLUSTERED */
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE `orders` (
  `id` bigint(20) unsigned NOT NULL,
  `customer_id` bigint(20) NOT NULL,
  `status` enum('new','paid','sent','back') NOT NULL,
  `total` decimal(14,2) NOT NULL,
  `placed` timestamp(3) NOT NULL,
  `note` text DEFAULT NULL,
  PRIMARY KEY (`id`) /*T![clustered_index] CLUSTERED */,
  KEY `customer` (`customer_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE `order_items` (
  `order_id` bigint(20) unsigned NOT NULL,
  `line` smallint(5) unsigned NOT NULL,
  `sku` varchar(20) NOT NULL,
  `pieces` int(11) NOT NULL,
  `price` decimal(10,2) NOT NULL,
  PRIMARY KEY (`order_id`,`line`) /*T![clustered_index] CLUSTERED */
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
"""

_FIRST_GOODS = 20
_FIRST_CUSTOMERS = 10
_MOST_ORDERS = 2000
"""From here on an old order goes when a new one comes."""
_NEW, _PAID, _SENT, _BACK = "1234"
_START = datetime(2026, 1, 1)
_NAMES = ("Ana", "Björn", "Chen Wei 陈伟", "Dilara", "Eve O'Neil", 'Finn "Fi"', "Grażyna", "Hana", "Ivo\tJr.", "Jun 🙂")
_THINGS = ("lamp", "chair", "kettle", "rug", "clock", "mirror", "shelf", "mug")
_NOTES = (None, "ring twice", "leave at the door\nplease", "a gift — no bill", "¡urgente!", "")


def transactions(database: Database, random: Random) -> Iterator[None]:
    """Opens the shop with some goods and customers; then something happens over and over."""
    for _ in range(_FIRST_GOODS):
        _new_goods(database, random)
    yield
    for _ in range(_FIRST_CUSTOMERS):
        _sign_up(database, random)
    yield
    happenings, weights = zip(*_HAPPENINGS, strict=True)
    while True:
        random.choices(happenings, weights)[0](database, random)
        yield


def _new_goods(database: Database, random: Random) -> None:
    stock = database["stock"]
    sku = f"{random.choice(_THINGS)}-{random.randrange(10**6):06}"
    stock.insert(
        sku=sku,
        title=f"{sku.title()} № {random.randrange(100)}",
        price=_money(random, 40_000),
        quantity=str(random.randrange(5, 500)),
        weight=random.choice((None, f"{random.randrange(1, 4000) / 8:g}")),
        labels=str(random.randrange(16)),
        counted=f"{_time(random):%Y-%m-%d %H:%M:%S.%f}",
    )


def _sign_up(database: Database, random: Random) -> None:
    customers = database["customers"]
    number = random.randrange(1, 1 << 40)
    customers.insert(
        id=str(number),
        name=random.choice(_NAMES),
        email=random.choice((None, f"c{number}@example.com")),
        balance=_money(random, 100_000),
        vip=str(int(random.random() < 0.1)),
        born=random.choice((None, str(date(1940, 1, 1) + timedelta(days=random.randrange(25_000))))),
        wishes=_wishes(random),
        avatar=random.choice((None, "", random.randbytes(random.randrange(1, 32)).hex())),
    )


def _buy(database: Database, random: Random) -> None:
    """Lets a customer order up to four things: an order, its lines, less in stock."""
    orders, items, stock = database["orders"], database["order_items"], database["stock"]
    if len(orders) >= _MOST_ORDERS:
        _forget(database, random)
    number = str(random.randrange(1, 1 << 63) * 2 + random.randrange(2))
    total = Decimal(0)
    for line in range(1, random.randrange(2, 6)):
        sku = stock.any_key(random)
        goods, pieces = stock[sku], random.randrange(1, 5)
        items.insert(order_id=number, line=str(line), sku=sku[0], pieces=str(pieces), price=goods["price"])
        stock.update(sku, quantity=str(int(goods["quantity"] or 0) - pieces))
        total += Decimal(goods["price"] or 0) * pieces
    orders.insert(
        id=number,
        customer_id=database["customers"].any_key(random)[0],
        status=_NEW,
        total=str(total),
        placed=f"{_time(random):%Y-%m-%d %H:%M:%S.%f}"[:-3],
        note=random.choice(_NOTES),
    )


def _go_on(database: Database, random: Random) -> None:
    """Moves an order on: it is paid, sent or sent back."""
    if not len(database["orders"]):
        return
    orders, customers = database["orders"], database["customers"]
    key = orders.any_key(random)
    order = orders[key]
    match order["status"]:
        case "1":
            payer: Key = (order["customer_id"],)
            balance = Decimal(customers[payer]["balance"] or 0) - Decimal(order["total"] or 0)
            customers.update(payer, balance=str(balance))
            orders.update(key, status=_PAID)
        case "2":
            orders.update(key, status=_SENT)
        case _:
            orders.update(key, status=_BACK, note="came back")


def _forget(database: Database, random: Random) -> None:
    """Deletes an order, with its lines."""
    if not len(database["orders"]):
        return
    (number,) = key = database["orders"].any_key(random)
    database["orders"].delete(key)
    items = database["order_items"]
    for line in range(1, 5):
        if (number, str(line)) in items:
            items.delete((number, str(line)))


def _restock(database: Database, random: Random) -> None:
    sku = database["stock"].any_key(random)
    counted = f"{_time(random):%Y-%m-%d %H:%M:%S.%f}"
    database["stock"].update(sku, quantity=str(random.randrange(50, 500)), counted=counted)


def _relabel(database: Database, random: Random) -> None:
    """Changes the sku of goods, which is their key."""
    (sku,) = key = database["stock"].any_key(random)
    database["stock"].update(key, sku=f"{str(sku).partition('-')[0]}-{random.randrange(10**6):06}", labels="1")


def _wish(database: Database, random: Random) -> None:
    customers = database["customers"]
    customers.update(customers.any_key(random), wishes=_wishes(random))


_HAPPENINGS: tuple[tuple[Callable[[Database, Random], None], int], ...] = (
    (_buy, 40),
    (_go_on, 30),
    (_restock, 8),
    (_forget, 6),
    (_sign_up, 6),
    (_wish, 5),
    (_relabel, 3),
    (_new_goods, 2),
)
"""What may happen, and how often."""


def _money(random: Random, most: int) -> str:
    return str(Decimal(random.randrange(100, most)).scaleb(-2))


def _time(random: Random) -> datetime:
    return _START + timedelta(microseconds=random.randrange(30 * 86_400 * 1_000_000))


def _wishes(random: Random) -> str | None:
    """Returns wishes as TiDB prints JSON."""
    things = random.sample(_THINGS, random.randrange(4))
    return json.dumps({"colour": random.choice(("red", "grün", None)), "things": things}, ensure_ascii=False)
