"""Bodies are decoded strictly, straight from their bytes: "1" is no number and "false" no boolean."""

from typing import Any, ClassVar

import msgspec
from litestar.dto import AbstractDTO
from litestar.typing import FieldDefinition

from holdfast.http.problem import invalid_body


class StrictBody(AbstractDTO[Any]):
    """Litestar's own way converts "yes" to true and names no field of broken JSON. Used for the whole application."""

    model_type = object
    _decoders: ClassVar[dict[str, msgspec.json.Decoder[Any]]] = {}

    @classmethod
    def create_for_field_definition(
        cls, field_definition: FieldDefinition, handler_id: str, backend_cls: Any = None
    ) -> None:
        cls._decoders[handler_id] = msgspec.json.Decoder(field_definition.annotation)

    @classmethod
    def create_openapi_schema(cls, field_definition: FieldDefinition, handler_id: str, schema_creator: Any) -> Any:
        return schema_creator.for_field_definition(field_definition)

    @classmethod
    def generate_field_definitions(cls, model_type: Any) -> Any:
        raise NotImplementedError

    @classmethod
    def detect_nested_field(cls, field_definition: FieldDefinition) -> bool:
        return False

    def decode_bytes(self, value: bytes) -> Any:
        handler: Any = self.asgi_connection.route_handler
        try:
            return self._decoders[handler.handler_id].decode(value)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise invalid_body(error) from error
