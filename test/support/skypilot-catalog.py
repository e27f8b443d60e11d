"""Finds possible machines and their prices with SkyPilot's own catalog functions.

Usage: skypilot-catalog.py SKYPILOT_SOURCE < questions. Each line is a JSON object with `file`,
`accelerator`, `count`, `cpus`, `memory`, `spot`, `region`, `max` and `type`. Each answer is a line:
`{"prices": [...]}` of all possible machines, or `{"error": "..."}` without pandas.
"""
import importlib.abc
import importlib.machinery
import json
import sys
import types

try:
    import pandas as pd
except ImportError:
    for _ in sys.stdin:
        print(json.dumps({'error': 'pandas is not installed'}))
    sys.exit(0)

SOURCE = sys.argv[1]


class StandIn:
    """Anything that another module of SkyPilot may contain. As a decorator it changes nothing."""

    def __getattr__(self, name):
        return StandIn()

    def __call__(self, *args, **kwargs):
        return args[0] if len(args) == 1 and callable(args[0]) else StandIn()

    def __enter__(self):
        return self

    def __exit__(self, *args):
        return False

    def __mro_entries__(self, bases):
        return ()

    def __getitem__(self, item):
        return StandIn()

    def __fspath__(self):
        return '/nonexistent'

    def __str__(self):
        return 'stand-in'


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):

    def find_spec(self, name, path, target=None):
        top = name.split('.')[0]
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if top in ('sky', 'filelock') else None

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__path__ = []
        module.__getattr__ = lambda name: StandIn()
        return module

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, StandIns())
with open(f'{SOURCE}/sky/catalog/common.py', encoding='utf-8') as source:
    common = types.ModuleType('sky_catalog_common')
    sys.modules['sky_catalog_common'] = common
    exec(compile(source.read(), 'common.py', 'exec'), common.__dict__)
common.pd = pd


def prices(df, asked):
    spot, region, limit = asked['spot'], asked['region'], asked['max']
    if asked['type'] is not None:
        names = [asked['type']]
    elif asked['accelerator'] is None:
        name = common.get_instance_type_for_cpus_mem_impl(df, asked['cpus'], asked['memory'], region, None, spot, limit)
        names = [] if name is None else [name]
    else:
        names, _ = common.get_instance_type_for_accelerator_impl(df, asked['accelerator'], asked['count'], asked['cpus'],
                                                                 asked['memory'], spot, region, None, limit)
    found = []
    for name in names or []:
        offered = common.get_region_zones(df[df['InstanceType'] == name], spot)
        for one in offered:
            if region is not None and one.name.lower() != region.lower():
                continue
            found.append(common.get_hourly_cost_impl(df, name, spot, one.name, None))
    return found


class Region:

    def __init__(self, name):
        self.name = name

    def set_zones(self, zones):
        pass


common.cloud_lib = types.SimpleNamespace(Region=Region, Zone=lambda name: name)
frames = {}
for line in sys.stdin:
    asked = json.loads(line)
    file = asked['file']
    if file not in frames:
        frames[file] = pd.read_csv(file)
    print(json.dumps({'prices': prices(frames[file], asked)}))
