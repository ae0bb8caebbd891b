"""``gcaps tasks``: graph capsules for nodes and links."""

from __future__ import annotations

import typer

from gcaps.cli.options import with_config
from gcaps.cli.tasks import links, nodes
from gcaps.config.tasks import LinkConfig, NodeConfig

app = typer.Typer(
    help="Graph capsules beyond whole graphs: classes of nodes, links.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
app.command("nodes")(with_config(nodes.run, NodeConfig))
app.command("links")(with_config(links.run, LinkConfig))
