"""Classes of nodes and missing links of one graph.

    python examples/nodes_and_links.py

300 people in three communities: friends are mostly within a community, and interests hint at it. Five people of each
community say which one they belong to; the others are predicted. Then one friendship in ten is hidden and found again.
"""

from __future__ import annotations

import numpy as np

from gcaps.tasks import LINK_SCORES, CapsuleLinkPredictor, CapsuleNodeClassifier, NodeGraph, split_links
from gcaps.tasks.link_training import link_metrics


def communities(people: int = 300, seed: int = 0) -> NodeGraph:
    """Return the graph with its split: five training and ten validation nodes of each community."""
    rng = np.random.default_rng(seed)
    community = np.arange(people) % 3
    i, j = np.triu_indices(people, 1)
    friends = rng.random(len(i)) < np.where(community[i] == community[j], 0.06, 0.006)
    interests = rng.random((people, 30)) < 0.08
    interests[np.arange(people), rng.integers(0, 6, people) * 3 + community] = True
    order = rng.permutation(people // 3) * 3
    train, validation, test = (
        np.concatenate([order[part] + c for c in range(3)]) for part in (slice(5), slice(5, 15), slice(15, None))
    )
    names = np.array(["chess", "music", "sports"])[community]
    edges = np.stack([i, j], axis=1)[friends]
    return NodeGraph.from_arrays(interests, edges, names, train=train, validation=validation, test=test)


def main(epochs: int = 200) -> dict[str, float]:
    graph = communities()
    model = CapsuleNodeClassifier(epochs=epochs).fit(graph)
    found = {"accuracy": model.score(graph)}
    print(f"communities of {len(graph.test)} people: accuracy {found['accuracy']:.1%}")

    split = split_links(graph, seed=0)
    links = CapsuleLinkPredictor(epochs=epochs, degrees=(2,), embedding=16)
    links.fit(split.graph, validation=split.validation)
    found |= links.evaluate(split.test)
    print(f"hidden friendships: AUC {found['auc']:.1%}, average precision {found['ap']:.1%}")
    for name, score in LINK_SCORES.items():
        other = link_metrics(split.test.y, score(split.graph, split.test.both))
        print(f"  {name:<20} AUC {other['auc']:.1%}, average precision {other['ap']:.1%}")
    return found


if __name__ == "__main__":
    main()
