"""What GKE does with the machines of node pools, over the double in `tests/rig/cloud`: slices come and go as a whole,
spot machines are taken away, the autoscaler follows the pods. For tests only.
"""
