"""Times MaxLeaseDurationFilter of openstack/blazar: `upstream_filter.py SOURCE LIMIT`.

SOURCE has the package `blazar`. The first line of standard input is a JSON list of requests; each line after it,
`[WORK, ROUNDS]`, is a turn over all of them, answered by a line of JSON: seconds, and seconds of the processor.
"""
import datetime
import json
import sys
import time

sys.path.insert(0, sys.argv[1])

from blazar import context as blazar_context  # noqa: E402
from blazar.enforcement import enforcement  # noqa: E402
from blazar.enforcement import exceptions  # noqa: E402
from blazar.utils.openstack import keystone  # noqa: E402,F401 its options
from oslo_config import cfg  # noqa: E402

CONF = cfg.CONF
CONF([], project='blazar', default_config_files=[])
CONF.set_override('enabled_filters', ['MaxLeaseDurationFilter'], group='enforcement')
usage = enforcement.UsageEnforcement()
CONF.set_override('max_lease_duration', int(sys.argv[2]), group='enforcement')
[duration_filter] = usage.enabled_filters


def arguments(request):
    """The arguments of Blazar's manager: dates, reservations and allocations, separately."""
    values = dict(request['lease'])
    for name in ('start_date', 'end_date'):
        values[name] = datetime.datetime.fromisoformat(values[name])
    reservations = [dict(one) for one in values.pop('reservations')]
    allocations = {one['resource_type']: one.pop('allocations') for one in reservations}
    return request['context'], values, reservations, allocations


def caller(context):
    """The context of a call of Blazar's API, with a catalog of three services."""
    catalog = [
        {
            'type': service,
            'name': service,
            'endpoints': [
                {'interface': interface, 'region': context['region_name'], 'url': context['auth_url']}
                for interface in ('admin', 'internal', 'public')
            ],
        }
        for service in ('compute', 'identity', 'reservation')
    ]
    user, project = context['user_id'], context['project_id']
    return blazar_context.BlazarContext(user_id=user, project_id=project, service_catalog=catalog)


requests = json.loads(sys.stdin.readline())
unformatted = [(caller(context), *rest) for context, *rest in map(arguments, requests)]
contexts = [usage.format_context(context, values) for context, values, *_ in unformatted]
ready = [(context, usage.format_lease(*rest)) for context, (_, *rest) in zip(contexts, unformatted)]

context, lease = ready[0]
try:
    duration_filter.check_create(context, dict(lease, end_date=lease['end_date'] + datetime.timedelta(seconds=1)))
except exceptions.MaxLeaseDurationException:
    pass
else:
    sys.exit('expected a lease to be refused that is a second longer')


def check(rounds):
    check = duration_filter.check_create
    for _ in range(rounds):
        for context, lease in ready:
            check(context, lease)


def format_and_check(rounds):
    check, format_lease = duration_filter.check_create, usage.format_lease
    for _ in range(rounds):
        for context, (_, *values) in zip(contexts, unformatted):
            check(context, format_lease(*values))


def whole(rounds):
    check = usage.check_create
    for _ in range(rounds):
        for context, values, reservations, allocations in unformatted:
            check(context, values, reservations, allocations)


TURNS = {'check': check, 'format': format_and_check, 'whole': whole}

print('{}', flush=True)
for line in sys.stdin:
    work, rounds = json.loads(line)
    turn = TURNS[work]
    elapsed, processor = time.perf_counter(), time.process_time()
    turn(rounds)
    print(json.dumps({'seconds': time.perf_counter() - elapsed, 'processor': time.process_time() - processor}), flush=True)
