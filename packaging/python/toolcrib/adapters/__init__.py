"""Adapters that put Toolcrib into the native slots of agent frameworks.

Each submodule imports its framework when it is imported. The package itself imports none of them.
"""
