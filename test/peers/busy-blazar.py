"""
Runs serve.py of the real Blazar, whose path is the first argument, as a Blazar in use: it answers callers at once, each in a thread of its own.
  POST /_heal  {"hosts": 2}   so many hosts fail: Blazar gives their leases others, or none, as its monitor does. Answers what has changed
"""

import contextlib
import datetime
import importlib.util
import sys
import threading
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import sqlalchemy


@sqlalchemy.event.listens_for(sqlalchemy.engine.Engine, 'do_connect')
def connect(_dialect, _record, _args, options):
    options.update(check_same_thread=False, timeout=600)


sys.argv = sys.argv[1:]
spec = importlib.util.spec_from_file_location('serve', sys.argv[0])
peer = importlib.util.module_from_spec(spec)
spec.loader.exec_module(peer)

from blazar.monitor import base as monitor  # noqa: E402
from oslo_utils import timeutils  # noqa: E402

# In a file, a transaction fails that writes after another has written. In the databases of sites it waits.
with contextlib.closing(peer.sqlalchemy_api.facade_wrapper._get_facade().writer.get_engine().raw_connection()) as raw:
    raw.execute('PRAGMA journal_mode = WAL')
write = peer.facade_wrapper.session_for_write
writing = threading.RLock()


@contextlib.contextmanager
def write_alone(**options):
    with writing, write(**options) as session:
        yield session


peer.facade_wrapper.session_for_write = write_alone

# Blazar has one timer for each: neither runs twice at once.
ticking, healing = threading.Lock(), threading.Lock()
tick = peer.app.view_functions['tick']


def tick_alone():
    with ticking:
        return tick()


peer.app.view_functions['tick'] = tick_alone


@peer.app.post('/_heal')
def heal():
    count = int(peer.flask.request.get_json()['hosts'])
    plugin = peer.manager.plugins['physical:host']
    changed = {}

    def handled():
        now = timeutils.utcnow()
        changed.update(plugin.heal_reservations(failed, now, now + datetime.timedelta(hours=1)))
        return changed

    with healing:
        active = {one['id'] for one in peer.db_api.reservation_get_all_by_values(status='active')}
        used = {
            one['compute_host_id']
            for one in peer.db_api.host_allocation_get_all_by_values()
            if one['reservation_id'] in active
        }
        hosts = sorted(peer.db_api.host_list(), key=lambda host: host['id'] not in used)
        failed = hosts[:count]
        for host in failed:
            peer.db_api.host_update(host['id'], {'reservable': False})
        monitor.BaseMonitor([]).call_monitor_plugin(handled)
        for host in failed:
            peer.db_api.host_update(host['id'], {'reservable': True})
    return changed


truth = peer.truth


def truth_until_events():
    """A change that failed may have moved the event that ends a lease, and not its end date: it runs until then."""
    last = {}
    for lease in peer.db_api.lease_list():
        if any(one['status'] in ('active', 'error') for one in lease['reservations']):
            ends = [
                one['time']
                for one in lease['events']
                if one['event_type'] == 'end_lease' and one['status'] in ('UNDONE', 'IN_PROGRESS')
            ]
            last[lease['id']] = str(max([lease['end_date'], *ends]))
    return [{**one, 'end_date': last.get(one['lease_id'], one['end_date'])} for one in truth()]


peer.truth = truth_until_events


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 64


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


server = make_server('127.0.0.1', peer.args.port, peer.app, server_class=Server, handler_class=Quiet)
print(f'Listening on http://127.0.0.1:{server.server_port}', flush=True)
server.serve_forever()
