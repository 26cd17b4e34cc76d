"""What GKE runs on a node beside the kubelet, for emulated TPU hosts under the real kubelet."""
