"""``gcaps tasks``: graph capsules for nodes, links, sequences and generation."""

from __future__ import annotations

import typer

from gcaps.cli.options import with_config
from gcaps.cli.tasks import generation, links, nodes, predict, sequences
from gcaps.config.generation import GenerationConfig
from gcaps.config.sequences import SequenceConfig
from gcaps.config.tasks import LinkConfig, NodeConfig

app = typer.Typer(
    help="Graph capsules beyond whole graphs: classes of nodes, links, sequences, generation.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
)
app.command("nodes")(with_config(nodes.run, NodeConfig))
app.command("links")(with_config(links.run, LinkConfig))
app.command("sequences")(with_config(sequences.run, SequenceConfig))
app.command("generate")(with_config(generation.run, GenerationConfig))
app.command("predict")(predict.run)
