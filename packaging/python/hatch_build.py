"""The tag of the wheel, from the environment: its program and its library are for one architecture and any Python."""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Tag(BuildHookInterface):
    def initialize(self, version, build_data):
        build_data |= {"pure_python": False, "tag": os.environ["WHEEL_TAG"]}
