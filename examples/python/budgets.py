#!/usr/bin/env python3
"""What is left of the budgets of your project, and what a lease would cost.

    budgets.py https://enforcement.example.org

openstacksdk finds your account, in clouds.yaml (OS_CLOUD) or in the variables OS_*; keystoneauth1 gets its tokens and renews them. The
service needs `[service] keystone_auth = true`. Exit codes: 0; 1 if Keystone or the service refuses or fails; 2 for wrong arguments.
"""

import datetime
import sys

import openstack
from keystoneauth1 import adapter, exceptions

# In seconds, for each request.
TIMEOUT = 60


class Problem(Exception):
    """An error of the API, as RFC 9457 has it."""


class Enforcement:
    """The API, with the account of a connection."""

    def __init__(self, connection, endpoint):
        self._api = adapter.Adapter(connection.session, endpoint_override=endpoint.rstrip("/"))

    def ask(self, method, path, **arguments):
        """The JSON of an answer."""
        answer = self._api.request(
            path,
            method,
            headers={"Accept": "application/json, application/problem+json"},
            raise_exc=False,
            # A redirect would take the token elsewhere.
            redirect=False,
            **arguments,
        )
        try:
            told = answer.json()
        except ValueError:
            told = None
        if not isinstance(told, dict) or answer.status_code >= 300:
            detail = told.get("detail") if isinstance(told, dict) else None
            raise Problem(detail or f"{path}: the service answered {answer.status_code}")
        return told

    def items(self, path, **query):
        """Each item of a list, across its pages."""
        while True:
            page = self.ask("GET", path, params=query)
            yield from page["items"]
            if page["next"] is None:
                return
            query["after"] = page["next"]


def main(endpoint):
    connection = openstack.connect(api_timeout=TIMEOUT)
    enforcement = Enforcement(connection, endpoint)
    project = connection.current_project_id

    for budget in enforcement.items("/v1/budgets", project_id=project):
        whose = budget["user"]["name"] or budget["user"]["id"] if budget["user"] else "the project"
        print(f"{whose}: {budget['left']} of {budget['amount']} {budget['unit']} left until {budget['valid_until']}")

    start = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
    wanted = {
        "name": "two-hosts-for-a-day",
        "start_date": start.strftime("%Y-%m-%d %H:%M"),
        "end_date": (start + datetime.timedelta(days=1)).strftime("%Y-%m-%d %H:%M"),
        "reservations": [{"resource_type": "physical:host", "min": 1, "max": 2}],
    }
    estimate = enforcement.ask("POST", f"/v1/projects/{project}/estimate", json=wanted)
    print("two hosts for a day:", "allowed" if estimate["allowed"] else estimate["message"])
    for suggestion in estimate["suggestions"]:
        print("  or:", suggestion["text"])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    try:
        main(sys.argv[1])
    except (Problem, exceptions.ClientException) as error:
        sys.exit(f"error: {error}")
