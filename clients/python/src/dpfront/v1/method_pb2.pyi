from google.protobuf import descriptor_pb2 as _descriptor_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROLE_UNSPECIFIED: _ClassVar[Role]
    ROLE_VIEWER: _ClassVar[Role]
    ROLE_WORKER: _ClassVar[Role]
    ROLE_ADMIN: _ClassVar[Role]

class Scope(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SCOPE_UNSPECIFIED: _ClassVar[Scope]
    SCOPE_ANYWHERE: _ClassVar[Scope]
    SCOPE_STUDY: _ClassVar[Scope]
    SCOPE_SERVER: _ClassVar[Scope]
ROLE_UNSPECIFIED: Role
ROLE_VIEWER: Role
ROLE_WORKER: Role
ROLE_ADMIN: Role
SCOPE_UNSPECIFIED: Scope
SCOPE_ANYWHERE: Scope
SCOPE_STUDY: Scope
SCOPE_SERVER: Scope
RULES_FIELD_NUMBER: _ClassVar[int]
rules: _descriptor.FieldDescriptor

class MethodRules(_message.Message):
    __slots__ = ("role", "scope", "resource", "audited", "slow", "endless", "reveals_no_results")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    AUDITED_FIELD_NUMBER: _ClassVar[int]
    SLOW_FIELD_NUMBER: _ClassVar[int]
    ENDLESS_FIELD_NUMBER: _ClassVar[int]
    REVEALS_NO_RESULTS_FIELD_NUMBER: _ClassVar[int]
    role: Role
    scope: Scope
    resource: str
    audited: bool
    slow: bool
    endless: bool
    reveals_no_results: bool
    def __init__(self, role: _Optional[_Union[Role, str]] = ..., scope: _Optional[_Union[Scope, str]] = ..., resource: _Optional[str] = ..., audited: bool = ..., slow: bool = ..., endless: bool = ..., reveals_no_results: bool = ...) -> None: ...
