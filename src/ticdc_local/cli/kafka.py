"""``ticdc-lake kafka``: the bundled Kafka broker, up until Ctrl-C."""

from __future__ import annotations

import argparse
import socket
from contextlib import ExitStack
from pathlib import Path

from ticdc_codec.errors import ConfigError
from ticdc_local.broker import Broker, free_ports
from ticdc_local.cli.arguments import local_path, port, writing
from ticdc_local.cli.notice import note, progress

FOLDER = ".kafka"
PORT = 9092
EXAMPLES = """examples:
  ticdc-lake kafka                          at localhost:9092, where generated feeds look for it
  ticdc-lake kafka --port 19092 --folder .lake/kafka      the topics of the demo"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("--port", type=port, default=PORT, help=f"where clients connect (default: {PORT})")
    parser.add_argument(
        "--folder",
        type=local_path,
        default=Path(FOLDER),
        help=f"where its topics stay (default: {FOLDER}); created if missing",
    )


def run(options: argparse.Namespace) -> int:
    """Keeps the broker up; it ends with this process."""
    _check_port(options.port)
    with writing("--folder", options.folder):
        options.folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        with progress("starting Kafka"):
            broker = stack.enter_context(Broker(options.folder, options.port))
        servers = f"localhost:{options.port}"
        print(f"Kafka runs at {servers}; its topics stay in {options.folder}. Ctrl-C ends it.", flush=True)
        note("Next, in another terminal:")
        note(f"  ticdc-lake generate --workload shop --protocol canal-json --bootstrap-servers {servers} --topic crm")
        note(f"  ticdc-lake feed new crm --protocol canal-json --bootstrap-servers {servers} --topic crm")
        broker.wait()
    return 1


def _check_port(number: int) -> None:
    """Raises ConfigError if the port is in use."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", number))
        except OSError as error:
            raise ConfigError(
                f"--port: {number}: {error.strerror}; take another one, such as --port {free_ports(1)[0]}"
            ) from None
