import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { serviceOptions } from '../../src/server/configuration/options.ts';
import { BLAZAR_ENDPOINTS, OWN_PATHS } from '../../src/server/own-paths.ts';
import { projectFile } from '../support/files.ts';

const FOLDER = 'examples/compose';
const read = (name: string) => readFileSync(projectFile(`${FOLDER}/${name}`), 'utf8');

/** What the example uses of the Compose specification. Any other key is a mistake. */
const service = z.strictObject({
  image: z.string(),
  build: z.string().optional(),
  command: z.array(z.string()).optional(),
  restart: z.enum(['unless-stopped', 'on-failure']),
  read_only: z.literal(true).optional(),
  cap_drop: z.tuple([z.literal('ALL')]).optional(),
  security_opt: z.tuple([z.literal('no-new-privileges')]).optional(),
  stop_grace_period: z
    .string()
    .regex(/^\d+s$/)
    .optional(),
  environment: z.record(z.string(), z.string()).optional(),
  ports: z.array(z.string().regex(/^127\.0\.0\.1:\d+:\d+$/)).optional(),
  volumes: z.array(z.string().regex(/^[\w./-]+:\/[\w./-]+(:ro)?$/)).optional(),
  depends_on: z
    .record(
      z.string(),
      z.strictObject({ condition: z.enum(['service_healthy', 'service_completed_successfully']) }),
    )
    .optional(),
  healthcheck: z
    .strictObject({
      test: z.array(z.string()),
      interval: z.string(),
      timeout: z.string(),
      retries: z.number(),
    })
    .optional(),
});
const composeFile = z.strictObject({
  'x-policy-service': z.unknown(),
  services: z.record(z.string(), service),
  networks: z.strictObject({
    default: z.strictObject({
      ipam: z.strictObject({ config: z.tuple([z.strictObject({ subnet: z.cidrv4() })]) }),
    }),
  }),
  volumes: z.record(z.string(), z.null()),
});
const { services, volumes, networks } = composeFile.parse(parse(read('compose.yaml'), { merge: true }));
const replicas = Object.entries(services).filter(([name]) => name.startsWith('replica-'));

it('has volumes and dependencies that exist', () => {
  const mounted = Object.values(services).flatMap((one) => one.volumes ?? []);
  const named = mounted.map((one) => one.split(':')[0] ?? '').filter((from) => !from.startsWith('.'));
  expect(new Set(named)).toEqual(new Set(Object.keys(volumes)));
  for (const { depends_on = {} } of Object.values(services)) {
    expect(Object.keys(services)).toEqual(expect.arrayContaining(Object.keys(depends_on)));
  }
});

it('gives every replica the rights of the documentation, its own folder, and time to stop', () => {
  expect(replicas).toHaveLength(2);
  const folders = replicas.map(([, { volumes: own = [] }]) => own.find((one) => one.includes('/var/lib/')));
  expect(new Set(folders).size).toBe(2);
  for (const [, one] of replicas) {
    expect(one).toMatchObject({ image: 'blazar-enforcement', build: '../..', read_only: true });
    expect([one.cap_drop, one.security_opt]).toEqual([['ALL'], ['no-new-privileges']]);
    expect(Number.parseInt(one.stop_grace_period ?? '', 10)).toBeGreaterThan(
      serviceOptions.parse({}).shutdown_grace,
    );
  }
});

it('has secrets only as variables that must be set', () => {
  const values = Object.values(services).flatMap(({ environment = {} }) => Object.entries(environment));
  const secrets = values.filter(([name]) => /TOKENS|PASSWORD|CONNECTION/.test(name));
  expect(secrets.length).toBeGreaterThan(0);
  expect(secrets.filter(([, value]) => !/\$\{\w+:\?[^}]+\}/.test(value))).toEqual([]);
});

it('believes nginx, which asks both replicas', () => {
  const [{ subnet }] = networks.default.ipam.config;
  expect(read('blazar.conf')).toContain(`\ntrusted_proxies = ${subnet}\n`);
  const servers = [...read('nginx.conf').matchAll(/^ {4}server (\S+):8642 /gm)].map(([, name]) => name);
  expect(servers).toEqual(replicas.map(([name]) => name));
  expect(services.nginx?.ports).toEqual(['127.0.0.1:8641:8641']);
  expect(read('nginx.conf')).toContain('listen 8641;');
});

it('passes on what Blazar asks, and nothing else', () => {
  const [, pattern = '^$'] = /location ~ (\S+) \{/.exec(read('nginx.conf')) ?? [];
  const passed = OWN_PATHS.filter((path) => new RegExp(pattern).test(path));
  expect(new Set(passed)).toEqual(new Set(BLAZAR_ENDPOINTS.flatMap((name) => [`/${name}`, `/v1/${name}`])));
});
