"""What the accounts can refuse beyond the common cases."""

from holdfast.kernel.errors import Conflict, Forbidden, NotFound


class OrganizationNotFound(NotFound):
    code = "organization_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such organization.")


class UserNotFound(NotFound):
    code = "user_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such user.")


class ApiKeyNotFound(NotFound):
    code = "api_key_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such API key.")


class EmailTaken(Conflict):
    code = "email_taken"

    def __init__(self) -> None:
        super().__init__("Another user of this organization has this e-mail address.")


class UserExists(Conflict):
    code = "user_exists"

    def __init__(self) -> None:
        super().__init__("There is a user with this id already.")


class UserInactive(Conflict):
    code = "user_inactive"

    def __init__(self) -> None:
        super().__init__("This user was deactivated: activate the membership before issuing a token.")


class RoleTooHigh(Forbidden):
    code = "role_too_high"

    def __init__(self) -> None:
        super().__init__("Nobody can give, change or take away a role above their own.")
