"""What is no regular file: pipes, devices, folders, sockets and links."""

from __future__ import annotations

import json
import os
import pathlib
import socket
from collections.abc import Iterator

from hostile_files.case import Hostile
from hostile_files.descriptions import description
from hostile_files.huggingface import CONFIG


def special_files(folder: pathlib.Path) -> Iterator[Hostile]:
    """Pipes, devices, folders and sockets as every kind of file; `folder` is where they lie."""
    os.mkfifo(folder / "fifo")
    (folder / "folder").mkdir()
    (folder / "device").symlink_to("/dev/zero")
    (folder / "loop").symlink_to("loop")
    os_socket = socket.socket(socket.AF_UNIX)
    os_socket.bind(str(folder / "socket"))
    (folder / "m.yaml").write_bytes(description("  - linear: {name: l, features: 4}"))
    for kind in ("fifo", "folder", "device", "socket", "loop", "missing"):
        for command in (
            f"check {{}}/{kind} --gpu t4",
            f"summary {{}}/{kind}",
            f"batch {{}}/{kind} --gpu t4",
            f"lower {{}}/{kind} -o /dev/null",
            f"check {{}}/m.yaml --gpu {{}}/{kind}",
            f"plan {{}}/m.yaml --gpu t4 --host {{}}/{kind}",
            f"check {{}}/m.yaml --gpu t4 --calibration {{}}/{kind}",
            f"check {{}}/m.yaml --gpu t4 --cudnn {{}}/{kind}",
            f"check {{}}/m.yaml --gpu t4 --configs {{}}/{kind}",
            f"validate {{}}/{kind} --model-only",
            f"explain {{}}/{kind} l",
            f"diff {{}}/{kind} {{}}/{kind}",
            f"export {{}}/{kind} --to dot",
        ):
            yield Hostile(f"special {command}", {}, command)
        for place in ("refs/main", "snapshots", "snapshots/a", "snapshots/a/config.json", "refs"):
            hub = (
                folder / "hub" / "hub" / f"models--o--{kind}-{place.replace('/', '-').replace('.', '-')}"
            )
            path = hub / place
            path.parent.mkdir(parents=True, exist_ok=True)
            if place.startswith("snapshots"):
                (hub / "refs").mkdir(exist_ok=True)
                (hub / "refs" / "main").write_text("a")
            path.symlink_to(folder / kind)
            yield Hostile(f"special hub {kind} as {place}", {}, f"check hf:o/{hub.name[11:]} --gpu t4")
        for name in (
            "config.json",
            "model.safetensors",
            "model.safetensors.index.json",
            "m.gguf",
            "adapter_config.json",
        ):
            inside = folder / f"in-{kind}-{name}"
            inside.mkdir()
            if name != "config.json":
                (inside / "config.json").write_text(json.dumps(CONFIG))
            (inside / name).symlink_to(folder / kind)
            yield Hostile(f"special {kind} as {name}", {}, f"check {inside} --gpu t4 --seq 16")
