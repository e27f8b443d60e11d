import { describe, expect, it } from 'vitest';
import { ALLOWED } from '../support/decisions.ts';
import { resourcePolicy, taskWith } from './helpers.ts';

const IMAGES = ['docker:ghcr.io/ours/*', 'docker:ubuntu:24.04', 'ami-0abc', 'skypilot:*'];
const policy = (options: Readonly<Record<string, unknown>> = {}) =>
  resourcePolicy('AllowedImagesPolicy', { allowed_images: IMAGES, ...options });
const having = (text: string) => expect.stringContaining(text);

describe('AllowedImagesPolicy', () => {
  it.each([
    '{}',
    '{image_id: "docker:ghcr.io/ours/train:1"}',
    '{image_id: " docker:ubuntu:24.04 "}',
    '{infra: k8s, image_id: "ghcr.io/ours/train@sha256:00"}',
    '{infra: gcp, image_id: {us-east1: "skypilot:gpu", us-west1: "docker:ghcr.io/ours/x"}}',
    '{image_id: {docker: "docker:ghcr.io/ours/x"}}',
    '{image_id: {null: "docker:ubuntu:24.04"}}',
  ])('allows the listed images, and none: %s', async (resources) => {
    await (await policy()).leaves(resources);
  });

  it.each([
    ['{image_id: "docker:ghcr.io/theirs/x"}', 'docker:ghcr.io/theirs/x'],
    ['{image_id: "DOCKER:ghcr.io/ours/x", infra: aws}', 'DOCKER:ghcr.io/ours/x'],
    ['{infra: aws, image_id: "ghcr.io/ours/x"}', 'ghcr.io/ours/x'],
    ['{infra: aws, image_id: {a: ami-0abc, b: ami-1}}', 'ami-1'],
    ['{image_id: {docker: evil}}', 'docker:evil'],
    ['{infra: k8s, image_id: ami-0abc}', 'docker:ami-0abc'],
    ['{image_id: ami-0abc}', 'docker:ami-0abc'],
    ['{image_id: "docker:ghcr.io/ours/x", any_of: [{cpus: 2}, {image_id: "docker:evil"}]}', 'docker:evil'],
  ])('rejects another, in every alternative and for every region: %s', async (resources, image) => {
    await (await policy()).refuses(
      resources,
      `The image ${image} is not allowed here. Set resources.image_id to one of: ${IMAGES.join(', ')}.`,
    );
  });

  it.each([
    '{image_id: 3}',
    '{image_id: "docker:a b"}',
    '{image_id: {a: 3}}',
    '{image_id: "docker:ghcr.io/ours/x;id"}',
  ])('rejects what it cannot read: %s', async (resources) => {
    const { refuses } = await policy();
    await refuses(resources, expect.stringMatching(/^resources\.image_id: expected an image/));
  });

  it.each([
    'envs: {SKYPILOT_DOCKER_SERVER: evil.io}\n',
    'secrets: {SKYPILOT_DOCKER_SERVER: evil.io}\n',
    'envs: {SKYPILOT_DOCKER_SERVER: "evil.io/"}\n',
  ])('completes a name with the registry of the login, as SkyPilot does: %j', async (login) => {
    const task = taskWith('{image_id: "docker:ghcr.io/ours/x"}', login);
    await (await policy()).refuses('', expect.stringMatching(/docker:(evil\.io|\*{4})\//), { task });
  });

  it('knows the registry of an allowed name, and rejects one that it cannot see', async () => {
    const { leaves, refuses } = await policy();
    const task = (login: string) => taskWith('{image_id: "docker:ghcr.io/ours/x"}', login);
    await leaves('', { task: task('envs: {SKYPILOT_DOCKER_SERVER: ghcr.io}\n') });
    const hidden = task('managed_secrets: [SKYPILOT_DOCKER_SERVER]\n');
    await refuses('', having('managed_secrets'), { task: hidden });
  });

  const pod = (image: string) => `{pod_config: {spec: {containers: [{name: ray-node, image: "${image}"}]}}}`;
  it.each([
    ['the configuration', '{}', `kubernetes: ${pod('evil')}`],
    ['a context', '{}', `kubernetes: {context_configs: {east: ${pod('evil')}}}`],
    ['an SSH node pool', '{}', `ssh: {context_configs: {pool: ${pod('evil')}}}`],
    ['an init container', '{}', 'kubernetes: {pod_config: {spec: {initContainers: [{image: evil}]}}}'],
    ['the task', `{}\nconfig: {kubernetes: ${pod('evil')}}`, '{}'],
    [
      'an alternative',
      `{any_of: [{cpus: 1}, {_cluster_config_overrides: {kubernetes: ${pod('evil')}}}]}`,
      '{}',
    ],
    ['a volume', '{}', 'kubernetes: {pod_config: {spec: {volumes: [{image: {reference: evil}}]}}}'],
    ['an instance of Vast', '{}', 'vast: {create_instance_kwargs: {image: evil}}'],
    ['a template of Vast', '{}', 'vast: {create_instance_kwargs: {template_hash_id: evil}}'],
  ])('looks at the images of %s', async (_where, resources, config) => {
    const { leaves, refuses } = await policy();
    await refuses(resources, having('The image docker:evil is not allowed here.'), { config: `${config}\n` });
    const fine = (text: string) => text.replaceAll('evil', 'ghcr.io/ours/x');
    await leaves(fine(resources), { config: `${fine(config)}\n` });
  });

  it('looks at the default images of a cloud, and refuses images that are no text', async () => {
    const { refuses } = await policy();
    await refuses('{}', having('The image evil:gpu'), {
      config: 'oci: {region_configs: {default: {image_tag_gpu: "evil:gpu"}}}\n',
    });
    await refuses('{}', having('not a text'), {
      config: 'kubernetes: {pod_config: {spec: {containers: [{image: 5}]}}}\n',
    });
  });

  it('refuses options of docker run that are not listed', async () => {
    await (await policy()).refuses('{}', 'docker.run_options may not have --rm here.', {
      config: 'docker: {run_options: ["--rm", evil]}\n',
    });
    const { leaves, refuses } = await policy({ allowed_images_run_options: ['--shm-size=2g'] });
    await refuses('', having('may not have --shm-size=2g evil'), {
      task: taskWith('{}', 'config: {docker: {run_options: "--shm-size=2g evil"}}\n'),
    });
    await leaves('{}', { config: 'docker: {run_options: [--shm-size=2g]}\n' });
  });

  it('judges the containers that options of sbatch name', async () => {
    const { leaves, refuses } = await policy();
    const task = (options: string) => taskWith('{}', `config: {slurm: {sbatch_options: {${options}}}}\n`);
    for (const options of [
      'container-image: evil',
      'container_im: evil',
      'container: /b',
      'container-name: x',
      'container-image: ghcr.io/ours/../../home/evil.sqsh',
    ]) {
      await refuses('{}', having('is not allowed here'), { task: task(options) });
    }
    for (const [name, value] of [
      ['comment', 'x --container-image=evil'],
      ['comment', "x '--container-image=evil'"],
      ['container-image', "ghcr.io/ours/'..'/evil"],
    ]) {
      await refuses('{}', `slurm.sbatch_options may not have ${name} here.`, {
        task: task(`${name}: "${value}"`),
      });
    }
    const clusters = 'slurm: {cluster_configs: {a: {sbatch_options: {container-image: evil}}}}\n';
    await refuses('{}', having('docker:evil'), { config: clusters });
    await leaves('{}', { task: task('container-image: "ubuntu:24.04", comment: x, c: 4, qos: high') });
  });

  it('rejects a task without an image if the operator wants that, but no controller', async () => {
    const { ask, refuses } = await policy({ allowed_images_unnamed: 'reject' });
    await refuses(
      '{any_of: [{cpus: 2}, {image_id: "docker:ubuntu:24.04"}]}',
      having('Tasks must name an image here.'),
    );
    for (const name of ['exec', 'jobs.launch_controller', 'serve.launch_controller']) {
      expect(await ask({ name, task: taskWith('{}') })).toMatchObject(ALLOWED);
      await refuses('{image_id: "docker:evil"}', expect.any(String), { name });
    }
  });
});
