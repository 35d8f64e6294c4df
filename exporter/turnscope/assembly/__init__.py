"""Events in, facts out: the pure state machine between the journal and the outputs."""

from turnscope.assembly.assembler import Assembler
from turnscope.assembly.settings import AssemblySettings
from turnscope.model import AssemblyStatus

__all__ = ["Assembler", "AssemblySettings", "AssemblyStatus"]
