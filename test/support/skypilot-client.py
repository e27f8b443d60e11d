"""Sends requests to a running policy service with SkyPilot's own client, like SkyPilot before a launch.

Usage: skypilot-client.py SKYPILOT_SOURCE < questions. The line "names" requests SkyPilot's names of
requests. Each other line is a JSON object with `url`, `tasks` (YAML), `config` (YAML), `name`, `options`,
`atClientSide`, `user`, `apiVersion` and `version`. Each answer is a line: `sent`, the bodies; and the
client's results: `tasks`, `resources`, `config` and `same` (nothing has changed), or `error` with its
`type`. `again` is the result of a second request with these tasks and this configuration. Alternatives are
sorted, since SkyPilot keeps them in a set.
"""
import json
import logging
import os
import sys
import tempfile

SOURCE = sys.argv[1]
sys.path.insert(0, SOURCE)
try:
    import sky_stub  # noqa: F401, stand-ins for missing packages
except ImportError:
    pass
out, sys.stdout = sys.stdout, sys.stderr
os.environ['HOME'] = tempfile.mkdtemp()
os.environ['NO_PROXY'] = '127.0.0.1'
os.chdir(os.environ['HOME'])
for variable in ('SKYPILOT_CONFIG', 'SKYPILOT_GLOBAL_CONFIG', 'SKYPILOT_PROJECT_CONFIG'):
    os.environ.pop(variable, None)

import requests  # noqa: E402
import sky  # noqa: E402
from sky import admin_policy, dag as dag_lib, models, skypilot_config  # noqa: E402
from sky.server import versions  # noqa: E402
from sky.utils import admin_policy_utils, common_utils, config_utils, yaml_utils  # noqa: E402

logging.disable(logging.CRITICAL)
sent = []
post = requests.post


def recorded_post(url, **arguments):
    sent.append(json.dumps(arguments['json']))
    return post(url, **arguments)


requests.post = recorded_post


def apply(dag, config, question):
    options = question.get('options')
    skypilot_config._set_loaded_config(config)
    user = question.get('user')
    common_utils.get_current_user = lambda: user and models.User(**user)
    versions.get_remote_api_version = lambda: question.get('apiVersion')
    versions.get_remote_version = lambda: question.get('version')
    return admin_policy_utils.apply(dag,
                                    sky.AdminPolicyRequestName(question['name']),
                                    options and admin_policy.RequestOptions(**options),
                                    at_client_side=question['atClientSide'])


def sorted_task(task):
    written = task.to_yaml_config()
    alternatives = written.get('resources', {}).get('any_of')
    if alternatives is not None:
        alternatives.sort(key=repr)
    return written


def answer(dag, config, question):
    sent.clear()
    before = [sorted_task(task) for task in dag.tasks]
    # pylint: disable=broad-except
    try:
        mutated, mutated_config = apply(dag, config, question)
    except Exception as error:
        return {'sent': list(sent), 'type': type(error).__name__, 'error': str(error)}, None, None
    tasks = [sorted_task(task) for task in mutated.tasks]
    asked_config = yaml_utils.safe_load(json.loads(json.loads(sent[0]))['skypilot_config'])
    return {
        'sent': list(sent),
        'tasks': tasks,
        'resources': [sorted(repr(one) for one in task.resources) for task in mutated.tasks],
        'imageIds': [[repr(one.image_id) for one in task.resources] for task in mutated.tasks],
        'config': dict(mutated_config),
        'same': tasks == before and dict(mutated_config) == asked_config,
    }, mutated, mutated_config


for line in sys.stdin:
    question = json.loads(line)
    if question == 'names':
        out.write(json.dumps([name.value for name in sky.AdminPolicyRequestName]) + '\n')
        out.flush()
        continue
    dag = dag_lib.Dag()
    for text in question['tasks']:
        dag.add(sky.Task.from_yaml_config(yaml_utils.safe_load(text) or {}))
    config = config_utils.Config.from_dict(yaml_utils.safe_load(question['config']))
    config['admin_policy'] = question['url']
    first, mutated, mutated_config = answer(dag, config, question)
    if mutated is not None:
        first['again'], _, _ = answer(mutated, mutated_config, question)
    out.write(json.dumps(first) + '\n')
    out.flush()
