"""What the accounts can refuse beyond the common cases."""

from holdfast.kernel.errors import Conflict, Forbidden, NotFound, Unauthorized


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


# Signing in -----------------------------------------------------------------------------------------------------------
class SignInFailed(Unauthorized):
    """One and the same for an address that is not known, a wrong password, and somebody who may not any more."""

    code = "sign_in_failed"

    def __init__(self) -> None:
        super().__init__("E-mail address or password is wrong.")


class ChooseOrganization(Conflict):
    """The password is right in several organizations: `organizations` has them."""

    code = "choose_organization"

    def __init__(self, organizations: list[dict[str, str]]) -> None:
        super().__init__(
            "You belong to several organizations: say which in organization_id.", organizations=organizations
        )


class CsrfFailed(Forbidden):
    code = "csrf_failed"


class WrongPassword(Forbidden):
    code = "wrong_password"

    def __init__(self) -> None:
        super().__init__("The current password is wrong.")


class NoSignIn(Conflict):
    """A password would be of no use to this user."""

    code = "cannot_sign_in"
