"""Merges and reads configurations with SkyPilot's own functions.

Usage: skypilot-merge.py SKYPILOT_SOURCE < questions. Each line is a JSON object: `{"keys": true}` requests
the lists of keys; `server` and `client` the server's result for a client's configuration; `base`, `over`,
`allowed` and `disallowed` a merge. Each answer is a line: `{"value": ...}`, `{"refused": "..."}` if
SkyPilot refuses, or `{"crash": "..."}`.
"""
import importlib.util
import json
import os
import sys
import types

SOURCE = sys.argv[1]


class Log:

    def __init__(self):
        self.warnings = []

    def __getattr__(self, name):
        return lambda *_args, **_kwargs: None

    def warning(self, text, *_args, **_kwargs):
        self.warnings.append(text)


class InvalidSkyPilotConfigError(ValueError):
    pass


def module(name, **members):
    made = types.ModuleType(name)
    made.__dict__.update(members)
    sys.modules[name] = made
    return made


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, os.path.join(SOURCE, path))
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


module('sky', __path__=[], exceptions=module('sky.exceptions', InvalidSkyPilotConfigError=InvalidSkyPilotConfigError),
       sky_logging=module('sky.sky_logging', init_logger=lambda _name: Log()))
config_utils = load('sky.utils.config_utils', 'sky/utils/config_utils.py')


def lists_of_keys():
    """The two lists of the constants, without the imports of their module."""
    with open(os.path.join(SOURCE, 'sky/skylet/constants.py'), encoding='utf-8') as file:
        text = file.read()
    scope = {'List': list, 'Tuple': tuple}
    for name in ('OVERRIDEABLE_CONFIG_KEYS_IN_TASK', 'SKIPPED_CLIENT_OVERRIDE_KEYS'):
        start = text.index(f'\n{name}') + 1
        assignment = text[text.index('= [', start):text.index('\n]', start) + 2]
        exec(f'{name} {assignment}', scope)  # pylint: disable=exec-used
    return scope['OVERRIDEABLE_CONFIG_KEYS_IN_TASK'], scope['SKIPPED_CLIENT_OVERRIDE_KEYS']


TASK_KEYS, SERVER_KEYS = lists_of_keys()


def tuples(keys):
    return None if keys is None else [tuple(key) for key in keys]


def over_server(server, client):
    """The first half of override_skypilot_config, with the same calls."""
    base, override = config_utils.Config(server), config_utils.Config(client)
    warned = []
    for key in SERVER_KEYS:
        if key != ('db',):
            value = override.pop_nested(key, default_value=None)
            if value is not None and value != base.get_nested(key, default_value=None):
                warned.append('.'.join(key))
    merged = base.get_nested((), None, dict(override), None, SERVER_KEYS)
    return {'tree': merged, 'warned': warned}


def answer(question):
    if 'keys' in question:
        return {'task': TASK_KEYS, 'server': SERVER_KEYS}
    if 'server' in question:
        return over_server(question['server'], question['client'])
    return config_utils.Config(question['base']).get_nested((), None, question['over'], tuples(question['allowed']),
                                                            tuples(question['disallowed']))


for line in sys.stdin:
    # pylint: disable=broad-except
    try:
        reply = {'value': answer(json.loads(line))}
    except ValueError as error:
        reply = {'refused': str(error)}
    except Exception as error:
        reply = {'crash': f'{type(error).__name__}: {error}'}
    print(json.dumps(reply), flush=True)
