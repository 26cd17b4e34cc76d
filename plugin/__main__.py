"""The components for programs in other languages; see docs/package.md."""

from tpu_ray.plugin import serve

if __name__ == "__main__":
    serve()
