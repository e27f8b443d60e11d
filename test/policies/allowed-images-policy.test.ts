import { describe, expect, it } from 'vitest';
import { askTwice, chainOf, problemsOf } from './helpers.ts';

const ALLOWED = ['docker:ghcr.io/ours/*', 'docker:ubuntu:24.04', 'ami-0abc', 'skypilot:*'];
const chain = (options: Readonly<Record<string, unknown>> = {}) =>
  chainOf(['AllowedImagesPolicy'], { allowed_images: ALLOWED, ...options });
const taskWith = (resources: string, more = '') => `resources: ${resources}\nrun: hostname\n${more}`;

async function refused(task: string, config = '{}\n', options: Readonly<Record<string, unknown>> = {}) {
  const { ask } = await chain(options);
  const answer = await ask({ task, config });
  expect(answer).toMatchObject({ allowed: false, failed: false });
  return answer.message;
}

describe('AllowedImagesPolicy', () => {
  it.each([
    '{}',
    '{image_id: null}',
    '{image_id: "docker:ghcr.io/ours/train:1"}',
    '{image_id: " docker:ubuntu:24.04 "}',
    '{infra: k8s, image_id: "ghcr.io/ours/train@sha256:00"}',
    '{infra: aws/us-east-1, image_id: ami-0abc}',
    '{infra: gcp, image_id: {us-east1: "skypilot:gpu", us-west1: "docker:ghcr.io/ours/x"}}',
    '{infra: aws, image_id: {us-east-1: ami-0abc, docker: ghcr.io/ours/x}}',
    '{image_id: {docker: "docker:ghcr.io/ours/x"}}',
    '{image_id: {null: "docker:ubuntu:24.04"}}',
    '{any_of: [{infra: k8s}, {image_id: "docker:ubuntu:24.04"}]}',
  ])('allows the listed images, and none: %s', async (resources) => {
    const { ask } = await chain();
    const task = taskWith(resources);
    expect(await askTwice(ask, { task })).toMatchObject({ changed: false, task_: task });
  });

  it.each([
    ['{image_id: "docker:ghcr.io/theirs/x"}', 'docker:ghcr.io/theirs/x'],
    ['{image_id: "docker:ubuntu:24.04-x"}', 'docker:ubuntu:24.04-x'],
    ['{image_id: "docker:GHCR.io/ours/x"}', 'docker:GHCR.io/ours/x'],
    ['{image_id: "DOCKER:ghcr.io/ours/x", infra: aws}', 'DOCKER:ghcr.io/ours/x'],
    ['{infra: aws, image_id: "ghcr.io/ours/x"}', 'ghcr.io/ours/x'],
    ['{infra: aws, image_id: {a: ami-0abc, b: ami-1}}', 'ami-1'],
    ['{image_id: {null: "docker:x"}}', 'docker:x'],
    ['{image_id: {docker: evil}}', 'docker:evil'],
    ['{infra: k8s, image_id: ami-0abc}', 'docker:ami-0abc'],
    ['{image_id: ami-0abc}', 'docker:ami-0abc'],
    ['{image_id: "docker:ghcr.io/ours/x", any_of: [{cpus: 2}, {image_id: "docker:evil"}]}', 'docker:evil'],
  ])('rejects another, in every alternative and for every region: %s', async (resources, image) => {
    expect(await refused(taskWith(resources))).toBe(
      `The image ${image} is not allowed here. Set resources.image_id to one of: ${ALLOWED.join(', ')}.`,
    );
  });

  it.each([
    '{image_id: 3}',
    '{image_id: ""}',
    '{image_id: [x]}',
    '{image_id: "docker:a b"}',
    '{image_id: {a: 3}}',
    '{image_id: {a: null}}',
    '{image_id: "docker:ghcr.io/ours/x;id"}',
  ])('rejects what it cannot read: %s', async (resources) => {
    expect(await refused(taskWith(resources))).toMatch(/^resources\.image_id: expected an image/);
  });

  it.each([
    'envs: {SKYPILOT_DOCKER_SERVER: evil.io}\n',
    'secrets: {SKYPILOT_DOCKER_SERVER: evil.io}\n',
    'envs: {SKYPILOT_DOCKER_SERVER: "evil.io/"}\n',
  ])('completes a name with the registry of the login, as SkyPilot does: %j', async (login) => {
    expect(await refused(taskWith('{image_id: "docker:ghcr.io/ours/x"}', login))).toMatch(
      /docker:(evil\.io|\*{4})\//,
    );
  });

  it('knows the registry of an allowed name, and rejects one that it cannot see', async () => {
    const { ask } = await chain();
    const task = taskWith('{image_id: "docker:ghcr.io/ours/x"}', 'envs: {SKYPILOT_DOCKER_SERVER: ghcr.io}\n');
    expect(await askTwice(ask, { task })).toMatchObject({ allowed: true });
    const hidden = taskWith(
      '{image_id: "docker:ghcr.io/ours/x"}',
      'managed_secrets: [SKYPILOT_DOCKER_SERVER]\n',
    );
    expect(await refused(hidden)).toContain('managed_secrets');
  });

  const pod = (image: string) => `{pod_config: {spec: {containers: [{name: ray-node, image: "${image}"}]}}}`;
  it.each([
    ['the configuration', '{}', `kubernetes: ${pod('evil')}`],
    ['a context', '{}', `kubernetes: {context_configs: {east: ${pod('evil')}}}`],
    ['an SSH node pool', '{}', `ssh: {context_configs: {pool: ${pod('evil')}}}`],
    ['the task', `{}\nconfig: {kubernetes: ${pod('evil')}}`, '{}'],
    [
      'an alternative',
      `{any_of: [{cpus: 1}, {_cluster_config_overrides: {kubernetes: ${pod('evil')}}}]}`,
      '{}',
    ],
    ['an init container', '{}', 'kubernetes: {pod_config: {spec: {initContainers: [{image: evil}]}}}'],
    ['a volume', '{}', 'kubernetes: {pod_config: {spec: {volumes: [{image: {reference: evil}}]}}}'],
    ['an instance of Vast', '{}', 'vast: {create_instance_kwargs: {image: evil}}'],
    ['a template of Vast', '{}', 'vast: {create_instance_kwargs: {template_hash_id: evil}}'],
  ])('looks at the images of %s', async (_where, resources, config) => {
    expect(await refused(taskWith(resources), `${config}\n`)).toContain(
      'The image docker:evil is not allowed here.',
    );
    const { ask } = await chain();
    const fine = (text: string) => text.replaceAll('evil', 'ghcr.io/ours/x');
    expect(
      await askTwice(ask, { task: taskWith(fine(resources)), config: `${fine(config)}\n` }),
    ).toMatchObject({ changed: false });
  });

  it('looks at the default images of a cloud, and refuses images that are no text', async () => {
    expect(
      await refused(taskWith('{}'), 'oci: {region_configs: {default: {image_tag_gpu: "evil:gpu"}}}\n'),
    ).toContain('The image evil:gpu');
    expect(
      await refused(taskWith('{}'), 'kubernetes: {pod_config: {spec: {containers: [{image: 5}]}}}\n'),
    ).toContain('not a text');
  });

  it('refuses options of docker run that are not listed', async () => {
    expect(await refused(taskWith('{}'), 'docker: {run_options: ["--rm", evil]}\n')).toBe(
      'docker.run_options may not have --rm here.',
    );
    expect(
      await refused(`${taskWith('{}')}config: {docker: {run_options: "--shm-size=2g evil"}}\n`, '{}\n', {
        allowed_images_run_options: ['--shm-size=2g'],
      }),
    ).toContain('may not have --shm-size=2g evil');
    const { ask } = await chain({ allowed_images_run_options: ['--shm-size=2g'] });
    expect(await askTwice(ask, { config: 'docker: {run_options: [--shm-size=2g]}\n' })).toMatchObject({
      changed: false,
    });
  });

  it('rejects a task without an image if the operator wants that, but no controller', async () => {
    const options = { allowed_images_unnamed: 'reject' };
    expect(
      await refused(taskWith('{any_of: [{cpus: 2}, {image_id: "docker:ubuntu:24.04"}]}'), '{}\n', options),
    ).toContain('Tasks must name an image here.');
    const { ask } = await chain(options);
    for (const name of ['exec', 'jobs.launch_controller', 'serve.launch_controller']) {
      expect(await ask({ name, task: taskWith('{}') })).toMatchObject({ allowed: true });
      expect(await ask({ name, task: taskWith('{image_id: "docker:evil"}') })).toMatchObject({
        allowed: false,
      });
    }
  });

  it('is refused without images', async () => {
    expect(await problemsOf('AllowedImagesPolicy', {})).toEqual([
      expect.stringContaining('AllowedImagesPolicy needs allowed_images'),
    ]);
  });
});
