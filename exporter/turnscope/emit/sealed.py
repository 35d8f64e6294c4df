"""Export requests of parts that are serialised already.

To protobuf a message within another is its bytes, and a field of bytes is serialised just like one of a message: its
rules for changing types promise that. So what takes long is serialised part by part, with pauses in between, and a
request whose parts are declared to be bytes puts them together in one short call.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.logs.v1 import logs_pb2
from opentelemetry.proto.resource.v1 import resource_pb2

_PARTS: Final = {f".{part.DESCRIPTOR.full_name}" for part in (resource_pb2.Resource, logs_pb2.LogRecord)}


def _request() -> Any:
    pool = DescriptorPool()
    for module in (common_pb2, resource_pb2, logs_pb2, logs_service_pb2):
        file = FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
        for message in file.message_type:
            for field in message.field:
                if field.type_name in _PARTS:
                    field.type = FieldDescriptorProto.TYPE_BYTES
                    field.ClearField("type_name")
        pool.AddSerializedFile(file.SerializeToString())
    name = logs_service_pb2.ExportLogsServiceRequest.DESCRIPTOR.full_name
    return GetMessageClass(pool.FindMessageTypeByName(name))


SealedRequest: Final = _request()
"""``ExportLogsServiceRequest`` whose resources and log records are bytes."""
