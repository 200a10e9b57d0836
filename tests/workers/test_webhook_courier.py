"""The way out, over real sockets: what is sent, what is never sent, and to whom."""

import asyncio
import datetime
import ipaddress
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from holdfast.webhooks.courier import Answer, Courier, Lookup
from holdfast.webhooks.target import Address, TargetRefused
from tests.workers.receiver import Receiver, Reply, receiving

HEADERS = {"webhook-id": "msg_1", "content-type": "application/json"}


def answers(*turns: list[str]) -> Lookup:
    """A resolver that says another thing each time it is asked, and the last one for ever."""
    left = list(turns)

    async def lookup(host: str, port: int) -> list[Address]:
        turn = left.pop(0) if len(left) > 1 else left[0]
        return [ipaddress.ip_address(text) for text in turn]

    return lookup


async def posted(receiver: Receiver, courier: Courier, url: str) -> Answer:
    try:
        return await courier.post(url, HEADERS, b'{"type":"X"}')
    finally:
        await courier.close()


def test_a_post_arrives_with_its_headers_and_the_answer_comes_back() -> None:
    async def main() -> None:
        async with receiving() as receiver:
            receiver.reply = lambda _: Reply(201, {"x": "y"}, b"thank you")
            answer = await posted(receiver, Courier(private_targets=True), receiver.url("/a/b?c=d%20e"))
            assert (answer.status_code, answer.body, answer.error) == (201, "thank you", None)
            (one,) = receiver.received
            assert (one.path, one.body, one.headers["webhook-id"]) == ("/a/b?c=d%20e", b'{"type":"X"}', "msg_1")
            assert one.headers["host"] == f"127.0.0.1:{receiver.port}"

    asyncio.run(main())


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1:{port}/",
        "https://localhost:{port}/",
        "https://2130706433:{port}/",
        "https://0x7f000001:{port}/",
        "https://127.1:{port}/",
        "https://0:{port}/",
        "https://[::1]:{port}/",
        "https://[::ffff:127.0.0.1]:{port}/",
        "https://169.254.169.254/latest/meta-data/",
        "https://10.0.0.1/",
        "http://127.0.0.1:{port}/",
    ],
)
def test_nothing_leaves_for_a_target_inside_the_house(url: str) -> None:
    async def main() -> None:
        async with receiving() as receiver:
            address = url.format(port=receiver.port)
            courier = Courier()
            with pytest.raises(TargetRefused):
                await courier.check(address)
            answer = await posted(receiver, courier, address)
            assert answer.status_code is None
            assert answer.error is not None
            assert answer.error.startswith("refused to send")
            assert receiver.received == []

    asyncio.run(main())


def test_a_name_that_changes_its_address_after_the_check_is_checked_again() -> None:
    async def main() -> None:
        async with receiving() as receiver:
            courier = Courier(lookup=answers(["93.184.216.34"], ["127.0.0.1"]))
            url = f"https://rebinding.example:{receiver.port}/"
            await courier.check(url)
            answer = await posted(receiver, courier, url)
            assert answer.error == "refused to send: the host has a loopback address, where nothing is sent to"
            assert receiver.received == []

    asyncio.run(main())


def test_one_look_is_all_a_delivery_takes_so_that_the_connection_goes_where_was_checked() -> None:
    async def main() -> None:
        async with receiving() as receiver:
            # Asked a second time, the resolver would lead elsewhere.
            courier = Courier(private_targets=True, lookup=answers(["127.0.0.1"], ["127.0.0.9"]))
            answer = await posted(receiver, courier, receiver.url(host="rebinding.example"))
            assert answer.status_code == 200
            assert receiver.received[0].headers["host"] == f"rebinding.example:{receiver.port}"

    asyncio.run(main())


def test_a_name_with_one_address_inside_the_house_is_refused_whatever_the_others_are() -> None:
    async def main() -> None:
        async with receiving() as receiver:
            courier = Courier(lookup=answers(["93.184.216.34", "10.1.2.3"]))
            answer = await posted(receiver, courier, "https://half.example/")
            assert answer.error is not None
            assert "private" in answer.error

    asyncio.run(main())


def test_where_one_address_does_not_answer_the_next_is_tried() -> None:
    async def main() -> None:
        async with receiving() as receiver:
            courier = Courier(private_targets=True, lookup=answers(["127.0.0.9", "127.0.0.1"]))
            answer = await posted(receiver, courier, receiver.url(host="two.example"))
            assert answer.status_code == 200
            assert len(receiver.received) == 1

    asyncio.run(main())


def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    async def main() -> None:
        async with receiving() as receiver:
            receiver.reply = lambda _: Reply(307, {"location": receiver.url("/elsewhere")}, b"")
            answer = await posted(receiver, Courier(private_targets=True), receiver.url())
            assert (answer.status_code, answer.succeeded, answer.error) == (307, False, "answered 307")
            assert [one.path for one in receiver.received] == ["/hook"]

    asyncio.run(main())


def test_an_answer_is_kept_to_its_first_kilobyte_and_without_what_cannot_be_stored() -> None:
    async def main() -> None:
        async with receiving() as receiver:
            receiver.reply = lambda _: Reply(500, {}, b"a\x00\xff" + b"x" * 1_000_000)
            answer = await posted(receiver, Courier(private_targets=True), receiver.url())
            assert answer.status_code == 500
            assert answer.body is not None
            assert answer.body.startswith("a\ufffdx")
            assert len(answer.body) == 1_023

    asyncio.run(main())


def test_whoever_does_not_answer_in_time_has_not_answered() -> None:
    async def main() -> None:
        async with receiving() as receiver:
            receiver.reply = lambda _: Reply(after_s=5)
            answer = await posted(receiver, Courier(private_targets=True, timeout_s=0.3), receiver.url())
            assert (answer.status_code, answer.error) == (None, "no answer within 0.3 seconds")
            assert 250 <= answer.duration_ms < 3_000

    asyncio.run(main())


def test_nobody_listening_is_an_error_and_not_an_exception() -> None:
    async def main() -> None:
        async with receiving() as receiver:
            url = receiver.url()
        answer = await posted(receiver, Courier(private_targets=True), url)
        assert answer.error is not None
        assert answer.error.startswith("could not be sent")

    asyncio.run(main())


def test_a_proxy_in_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with receiving() as proxy, receiving() as receiver:
            for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
                monkeypatch.setenv(name, proxy.url(""))
            answer = await posted(receiver, Courier(private_targets=True), receiver.url())
            assert answer.status_code == 200
            assert (len(proxy.received), len(receiver.received)) == (0, 1)

    asyncio.run(main())


# TLS ------------------------------------------------------------------------------------------------------------------
def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate for the name, signed by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return cert_file, key_file


@pytest.mark.parametrize(("name", "arrives"), [("hooks.example", True), ("other.example", False)])
def test_the_certificate_must_be_for_the_name_in_the_url_and_not_for_the_address(
    tmp_path: Path, name: str, arrives: bool
) -> None:
    cert_file, key_file = certificate(tmp_path, "hooks.example")
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(cert_file, key_file)
    asked_for: list[str | None] = []
    theirs.sni_callback = lambda _socket, server_name, _context: asked_for.append(server_name)
    ours = ssl.create_default_context(cafile=str(cert_file))

    async def main() -> None:
        async with receiving(theirs) as receiver:
            courier = Courier(private_targets=True, tls=ours, lookup=answers(["127.0.0.1"]))
            answer = await posted(receiver, courier, receiver.url(host=name, scheme="https"))
            assert asked_for == [name]
            assert (answer.status_code == 200) == arrives, answer
            assert len(receiver.received) == int(arrives)
            assert arrives or "CERTIFICATE_VERIFY_FAILED" in str(answer.error)

    asyncio.run(main())
