"""Run an exported model on a graph of three nodes and a single node, with NumPy and ONNX Runtime, without gcaps."""

import json
import sys

import numpy as np
import onnxruntime

model = onnxruntime.InferenceSession(sys.argv[1])
about = {name: json.loads(value) for name, value in model.get_modelmeta().custom_metadata_map.items()}
size = {"nodes": 4, "edges": 4, "graphs": 2}
given = {i["name"]: np.zeros([size.get(n, n) for n in i["shape"]], i["dtype"]) for i in about["inputs"]}
given["edge_index"] = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])  # both directions of 0–1 and 1–2
given["batch"] = np.array([0, 0, 0, 1])  # the graph of each node
print(*about["classes" if about["task"] == "classification" else "targets"], sep="\t")
for row in model.run(None, given)[0]:
    print(*row, sep="\t")
