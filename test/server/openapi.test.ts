import { readdirSync, readFileSync } from 'node:fs';
import Router from '@koa/router';
import { describe, expect, it, vi } from 'vitest';
import { CONSOLE_PAGES } from '../../src/server/console/pages.ts';
import { createExample, endExample, updateExample } from '../../src/server/openapi/operations.ts';
import { BLAZAR_ENDPOINTS, LOGIN_PATHS } from '../../src/server/own-paths.ts';
import { pageNamed, tableUnder } from '../docs/markdown.ts';
import {
  apiDescription,
  leaseDescription,
  mistakes,
  operations,
  validatorOf,
} from '../support/api-description.ts';
import { projectFile } from '../support/files.ts';
import { runService } from '../support/running-service.ts';
import { itIsSoundWith } from './openapi-sections.ts';

/** What browsers and calendar programs ask for, nothing to generate a client for. */
const FOR_BROWSERS = new Set<string>([
  ...LOGIN_PATHS,
  ...CONSOLE_PAGES.map(({ path }) => path).filter((path) => path !== '/'),
  '/events',
  '/assets/{hash}/{name}',
  '/calendars/{file}',
]);

describe('GET /openapi.json', () => {
  it('answers with the description, to everyone, and tells nothing of the configuration', async () => {
    const { request } = await runService({
      service: { tokens: ['s3cret-0123456789abcdef'], body_limit: 2000 },
      enforcement: { max_lease_duration: 4711 },
    });
    const { status, json, headers } = await request('/openapi.json');
    expect({ status, type: headers.get('Content-Type') }).toEqual({
      status: 200,
      type: 'application/json; charset=utf-8',
    });
    expect(json).toEqual(apiDescription);
    expect((await request('/openapi.json')).json).toEqual(json);
  });
});

describe('the description', () => {
  itIsSoundWith(leaseDescription, []);

  it('lists every path and method that the service has, and no other', async () => {
    const routes = vi.spyOn(Router.prototype, 'routes');
    await runService();
    const mounted = routes.mock.contexts
      .flatMap((router) => (router as Router).stack)
      .flatMap(({ path, methods }) =>
        methods.map((method) => `${method} ${String(path).replaceAll(/:(\w+)/g, '{$1}')}`),
      )
      // Where GET is possible, HEAD is.
      .filter((route) => !route.startsWith('HEAD '))
      .filter((route) => !FOR_BROWSERS.has(route.split(' ')[1] ?? ''));
    // A handler of their own answers them.
    const blazar = BLAZAR_ENDPOINTS.flatMap((name) => [`POST /${name}`, `POST /v1/${name}`]);
    const described = operations.map(({ method, path }) => `${method.toUpperCase()} ${path}`);
    expect([...described].sort()).toEqual([...mounted, ...blazar].sort());
  });

  it('says the same of each path under /v1', () => {
    const twins = operations.filter(
      ({ path, operation }) => path.startsWith('/v1/') && operation.tags.includes('leases'),
    );
    expect(twins).toHaveLength(5);
    for (const { method, path, operation } of twins) {
      const { operationId, ...first } = apiDescription.paths[path.slice('/v1'.length)]?.[method] ?? {};
      expect(operation).toEqual({ ...first, operationId: `${operationId}V1` });
    }
  });

  it('has what a generated client is named and described by', () => {
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    const tags = apiDescription.tags.map(({ name }) => name);
    for (const { operation } of operations) {
      expect(operation.operationId).toMatch(/^[a-z][A-Za-z0-9]+$/);
      expect([operation.summary, operation.description]).not.toContain('');
      expect(tags).toEqual(expect.arrayContaining([...operation.tags]));
    }
    const { version, license } = JSON.parse(readFileSync(projectFile('package.json'), 'utf8'));
    expect(apiDescription.info).toMatchObject({ version, license: { identifier: license } });
  });

  it('asks for a token where the service does, and nowhere else', () => {
    for (const { path, operation } of operations) {
      const asks = Object.keys(operation.responses).includes('401');
      expect(operation.security, path).toEqual(asks ? [{ 'X-Auth-Token': [] }, {}] : []);
    }
  });

  it('has the statuses and headers that docs/reference/protocol.md has', () => {
    const protocol = pageNamed('docs/reference/protocol.md');
    const written = (heading: string) =>
      new Set(tableUnder(protocol, heading).map(([cell = '']) => cell.replaceAll('`', '')));
    const statuses = operations
      .filter(({ method, operation }) => method === 'post' && !operation.tags.includes('users'))
      .flatMap(({ operation }) => Object.keys(operation.responses));
    // A path that is not there is not described.
    expect(new Set([...statuses, '404'])).toEqual(written('What the policy service answers'));
    expect(new Set(Object.keys(apiDescription.components.headers ?? {}))).toEqual(written('Headers'));
  });

  it('has schemas that say something of every attribute, in keywords of JSON Schema', () => {
    for (const [name, schema] of Object.entries(apiDescription.components.schemas)) {
      expect(() => validatorOf(name)({}), name).not.toThrow();
      for (const [attribute, said] of Object.entries((schema.properties ?? {}) as Record<string, object>)) {
        const keywords = Object.keys(said).filter(
          (keyword) => !['description', 'examples'].includes(keyword),
        );
        expect(keywords, `${name}.${attribute}`).not.toEqual([]);
      }
    }
  });
});

describe('a request that is known to be right', () => {
  const NAMES = {
    'check-create': 'CreateRequest',
    'check-update': 'UpdateRequest',
    'on-end': 'EndRequest',
    create: 'CreateRequest',
    update: 'UpdateRequest',
  } as const;

  it.for([
    ...readdirSync(projectFile('test/fixtures/blazar-wire')).map(
      (name) => `test/fixtures/blazar-wire/${name}`,
    ),
    ...readdirSync(projectFile('examples/requests')).map((name) => `examples/requests/${name}`),
  ])('is so by its schema: %s', (file) => {
    const [, kind] = /\/(check-create|check-update|on-end|create|update)[^/]*$/.exec(file) ?? [];
    const schema = { $ref: `#/components/schemas/${NAMES[kind as keyof typeof NAMES]}` };
    expect(mistakes(schema, JSON.parse(readFileSync(projectFile(file), 'utf8')))).toEqual([]);
  });

  it('is shown on docs/reference/protocol.md as it is in the description', () => {
    const shown = (word: string) => {
      const block = pageNamed('docs/reference/protocol.md').blocks.find(({ words }) => words.includes(word));
      return JSON.parse(block?.text ?? '') as unknown;
    };
    expect(createExample).toEqual(shown('create'));
    expect(updateExample).toEqual(shown('update'));
    expect(endExample.lease).toEqual(updateExample.current_lease);
  });
});
