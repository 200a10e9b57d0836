"""What webhooks can refuse beyond the common cases."""

from holdfast.kernel.errors import Conflict, NotFound


class WebhookNotFound(NotFound):
    code = "webhook_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such webhook.")


class DeliveryNotFound(NotFound):
    code = "delivery_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such delivery.")


class WebhookDisabled(Conflict):
    code = "webhook_disabled"

    def __init__(self) -> None:
        super().__init__("The webhook is disabled: enable it before anything is sent to it again.")


class TooManyWebhooks(Conflict):
    code = "too_many_webhooks"

    def __init__(self, limit: int) -> None:
        super().__init__(f"An organization has at most {limit} webhooks.", limit=limit)
