/**
 * Tasks as they are sent here, beside SkyPilot's own `Task`. Needs `SKYPILOT_SOURCE`, a checkout of SkyPilot, and
 * python3 with its dependencies (or stand-ins for them in `PYTHONPATH`, which a module `sky_stub` installs).
 */
import { expect, it } from 'vitest';
import { YamlDocument } from '../../../src/base/yaml/document.ts';
import { isMapping, type Mapping } from '../../../src/base/yaml/tree.ts';
import { taskAsSent, taskText } from '../../../src/skypilot/request/sent-request.ts';
import { runWithSkypilot, skypilotSource } from '../../support/skypilot-source.ts';

const SOURCE = skypilotSource();
const PEER = `
from sky import task as task_lib
from sky.utils import yaml_utils
answers = []
for text, idle, down in asked:
    task = task_lib.Task.from_yaml_config(yaml_utils.safe_load(text) or {})
    for one in task.resources:
        one.override_autostop_config(down=down, idle_minutes=idle)
        if one.autostop_config is not None:
            down, idle = one.autostop_config.down, one.autostop_config.idle_minutes
    answers.append([yaml_utils.dump_yaml_str(task.to_yaml_config()), idle, down])
`;

const TASKS = [
  'run: x\n',
  'name: t\nnum_nodes: 2\nresources: {accelerators: H100:8, infra: k8s/foo/bar, autostop: 2h, image_id: ubuntu}\n',
  'resources: {accelerators: {A100: 1, H100: 2}, use_spot: true, labels: {a: b}}\n',
  'resources: {gpus: [A100, "H100:2", "A100:4"], autostop: {idle_minutes: 4, hook: echo}}\n',
  'resources: {accelerators: {A100: 8, H100: 8}, any_of: [{infra: aws}, {infra: gcp}]}\n',
  'resources: {labels: {base: x}, memory: 4GB, any_of: [{infra: gcp, labels: {one: a}}, {cloud: kubernetes, region: r, labels: {two: b}}, {accelerators: "A100:8"}]}\n',
  'resources: {ordered: [{infra: aws/*/us-east-1a, cpus: 4}, {infra: gcp, autostop: false, memory: 0.5}], autostop: 10}\n',
  'resources: {accelerators: tpu-v5p-8}\n',
  'resources: {accelerators: "tpu-v6e-slice:4"}\n',
  'resources: {cloud: AWS, region: us-east-1, image_id: ami-1, job_recovery: failover, disk_tier: BEST}\n',
  'resources: {cloud: aws, image_id: {us-east-1: ami-1, docker: "docker:foo"}, local_disk: 500+, max_hourly_cost: 2}\n',
  'resources: {ports: [8080, "22-25", 26, "9000,9001"], disk_size: 256GB, cpus: 4+, memory: 16GB+}\n',
  'resources: {instance_type: p4d.24xlarge, infra: "*/us-east-1", memory: 512MB, disk_size: 1TB, autostop: true}\n',
  'resources: {infra: ssh/pool, autostop: {down: true}, job_recovery: {max_restarts_on_errors: 3}}\n',
  'resources: {accelerators: {A100: ~}, job_recovery: none}\n',
  'resources: {accelerators: "A100:0.5", _cluster_config_overrides: {docker: {run_options: [a]}}}\nconfig: {}\n',
  'config: {kubernetes: {provision_timeout: 600}, hooks: [{run: echo a}]}\nrun: x\n',
  'resources: ~\nenvs: {A: 1, B: 1.0, C: 1.5e-7, D: true, E: yes, F: 2026-11-21, G: 012, H: 0x1F, I: 1e3, J: 1.0e+20}\n',
  'secrets: {A: 1, B: ~}\nenvs: {X: hello}\nfile_mounts: {"/a/$X": "b/$X/$Y"}\nvolumes: {/mnt: vol}\n',
  'secrets: {B: ~, "secrets:C": ~}\n',
  'pool: {workers: 3}\nresources: {accelerators: A100}\n',
  'secrets: [secrets:A]\napi_server_access: false\nsetup: |\n  a\n\n  b\n',
];
const FLAGS = [
  { idleMinutes: null, down: false },
  { idleMinutes: 30, down: false },
  { idleMinutes: null, down: true },
];

/** Without what only repeats the text; alternatives in any order. */
function comparable(text: string): unknown {
  const { _user_specified_yaml: _, ...task } = YamlDocument.parse(text).value as Mapping;
  const { resources } = task;
  if (!isMapping(resources) || !Array.isArray(resources.any_of)) {
    return task;
  }
  const any_of = resources.any_of.map((one) => YamlDocument.from(one).value as Mapping);
  const key = (one: Mapping) => JSON.stringify(Object.entries(one).sort());
  return { ...task, resources: { any_of: any_of.sort((a, b) => (key(a) < key(b) ? -1 : 1)) } };
}

it.skipIf(SOURCE === undefined)("sends tasks as SkyPilot's own code does", () => {
  const asked = TASKS.flatMap((text) => FLAGS.map((flags) => ({ text, flags })));
  const answers = runWithSkypilot<[string, unknown, boolean]>(
    SOURCE ?? '',
    PEER,
    asked.map(({ text, flags }) => [text, flags.idleMinutes, flags.down]),
  );
  expect(answers).toHaveLength(asked.length);
  for (const [index, { text, flags }] of asked.entries()) {
    const { task, autostop } = taskAsSent(YamlDocument.parse(text), flags);
    const [sent = '', idleMinutes, down] = answers[index] ?? [];
    const any = text.includes('autostop: false');
    expect({ text, flags, task: comparable(taskText(task)) }).toEqual({
      text,
      flags,
      task: comparable(sent),
    });
    // With several alternatives, SkyPilot's order is that of a set.
    expect({ text, autostop: any ? null : autostop }).toEqual({
      text,
      autostop: any ? null : { idleMinutes, down },
    });
  }
});
