/** What /openapi.json says of SkyPilot, where it is served, and that it is so. */
import { describe, expect, it, vi } from 'vitest';
import { PolicyChain } from '../../src/skypilot/policies/policy-chain.ts';
import {
  type Answer,
  described,
  expectDescribed,
  mistakenPosts,
  parsedAnswer,
} from '../support/api-answers.ts';
import { apiDescription, type DescribedOperation, descriptionWith } from '../support/api-description.ts';
import { postHead } from '../support/raw-http.ts';
import { body, inside, wireBody } from '../support/skypilot.ts';
import { PATH, runSkypilot } from '../support/skypilot-service.ts';
import { itIsSoundWith } from './openapi-sections.ts';

const api = descriptionWith({ skypilotPath: PATH });

function operationOf(document: typeof apiDescription, path: string): DescribedOperation {
  const operation = document.paths[path]?.post;
  if (operation === undefined) {
    throw new Error(`${path} is not described`);
  }
  return operation;
}

describe('the description', () => {
  it('has the endpoint at its path if SkyPilot is served', async () => {
    const { request } = await runSkypilot({ IdlePolicy: '' });
    expect((await request('/openapi.json')).json).toEqual(api.document);
    const elsewhere = await runSkypilot(
      { IdlePolicy: '' },
      { skypilot: { path: '/sky', tokens: ['s3cret-0123456789abcdef'] } },
    );
    const { json, text } = await elsewhere.request('/openapi.json');
    expect(json).toEqual(descriptionWith({ skypilotPath: '/sky' }).document);
    expect(text).not.toContain('s3cret-0123456789abcdef');
    expect(Object.keys(descriptionWith({ skypilotPath: '/sky' }).document.paths)).toContain('/sky');
    expect(Object.keys(descriptionWith({ skypilotPath: '/sky' }).document.paths)).not.toContain(PATH);
  });

  it('does not mention SkyPilot if it is not served', async () => {
    const { request } = await runSkypilot({}, { skypilot: { path: '/sky' } });
    const { json } = await request('/openapi.json');
    expect(json).toEqual(apiDescription);
    const { paths, components } = apiDescription;
    expect(String([Object.keys(paths), Object.keys(components.schemas)])).not.toMatch(/skypilot|\/sky/i);
  });

  itIsSoundWith(api, [PATH]);

  it('requires the token as the password or in the query', () => {
    expect(operationOf(api.document, PATH).security).toEqual([{ password: [] }, { token: [] }, {}]);
    expect(api.document.components.securitySchemes?.token).toMatchObject({ in: 'query', name: 'token' });
  });

  it.for(['launch-client', 'jobs-launch-server'])(
    'has a schema that accepts a request of SkyPilot, as string and as object: %s',
    (name) => {
      const schema = { $ref: '#/components/schemas/SkypilotRequest' };
      expect(api.mistakes(schema, JSON.parse(wireBody(name)))).toEqual([]);
      expect(api.mistakes(schema, inside(wireBody(name)))).toEqual([]);
      expect(api.mistakes(schema, { ...inside(wireBody(name)), task: 7 })).not.toEqual([]);
    },
  );
});

const REQUEST = body({ task: 'name: train\nrun: python train.py\n' });

const send = (url: string, body = REQUEST, query = '') => described(`${url}${PATH}${query}`, PATH, { body });

async function fromOneService(): Promise<Answer[]> {
  const policies = {
    NamePolicy:
      "if (task.name === 'reject') throw new PolicyRejected('No.'); if (task.name === 'break') throw new Error('x');",
  };
  const service = await runSkypilot(policies, { skypilot: { tokens: ['secret-0123456789abcdef'] } });
  const query = '?token=secret-0123456789abcdef';
  const texts = [REQUEST, body({ task: 'name: reject\n' }), body({ task: 'name: break\n' }), '{}'];
  return Promise.all([
    ...texts.map((text) => send(service.url, text, query)),
    send(service.url),
    ...mistakenPosts(service, PATH, REQUEST, { query }),
  ]);
}

/** To a wrong token, after ten of them. */
async function fromGuesses(): Promise<Answer[]> {
  const { url } = await runSkypilot(
    { IdlePolicy: '' },
    { skypilot: { tokens: ['secret-0123456789abcdef'] } },
  );
  const answers: Answer[] = [];
  for (let count = 0; count <= 10; count += 1) {
    answers.push(await send(url, REQUEST, '?token=another'));
  }
  return answers;
}

async function fromAFault(): Promise<Answer[]> {
  const { url } = await runSkypilot({ IdlePolicy: '' });
  const review = vi.spyOn(PolicyChain.prototype, 'review').mockRejectedValue(new Error('a fault'));
  const answer = await send(url);
  review.mockRestore();
  return [answer];
}

async function fromBusyService(): Promise<Answer[]> {
  const { url } = await runSkypilot(
    { SilentPolicy: 'return new Promise(() => {});' },
    { service: { max_concurrent: 1, max_queued: 0 }, skypilot: { deadline: 5 } },
  );
  return Promise.all([send(url), send(url)]);
}

async function fromWaiting(): Promise<Answer[]> {
  const { raw } = await runSkypilot({ IdlePolicy: '' }, { service: { deadline: 1 } });
  return [parsedAnswer('post', PATH, await raw(`${postHead(PATH, 100)}{`))];
}

it('SkyPilot gets exactly the described responses', async () => {
  const fault = await fromAFault();
  const groups = await Promise.all([fromOneService(), fromGuesses(), fromBusyService(), fromWaiting()]);
  expectDescribed(api, [...fault, ...groups.flat()], (path) => path === PATH);
});
