/** Compares responses of a real service with /openapi.json. */
import { expect } from 'vitest';
import { PAGE_HEADERS } from '../../src/server/console/layout.tsx';
import type { DescribedAnswer, Description, Schema } from './api-description.ts';
import { postHead } from './raw-http.ts';

export interface Answer {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Sends JSON to a described path. `as`: by another method than the described one. */
export async function described(
  at: string,
  path: string,
  { method = 'POST', as = method, ...init }: RequestInit & { readonly as?: string } = {},
): Promise<Answer> {
  const headers = { ...(init.body && { 'Content-Type': 'application/json' }), ...init.headers };
  const answer = await fetch(at, { redirect: 'manual', ...init, headers, method: as });
  const { status, headers: sent } = answer;
  return { method: method.toLowerCase(), path, status, headers: sent, text: await answer.text() };
}

/** What can be wrong with a post to any path of a protocol, but for what is in its JSON. */
export function mistakenPosts(
  { url, raw }: { readonly url: string; raw(bytes: string): Promise<string> },
  path: string,
  body: string,
  { query = '', headers = {} }: { readonly query?: string; readonly headers?: Record<string, string> } = {},
): Promise<Answer>[] {
  const at = `${url}${path}${query}`;
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const longHeaders = `POST ${path} HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`;
  return [
    described(at, path, { body: '{', headers }),
    described(at, path, { body, headers, as: 'PUT' }),
    ...['text/plain', 'application/json; charset=latin1'].map((type) =>
      described(at, path, { body, headers: { ...headers, 'Content-Type': type } }),
    ),
    described(at, path, { body, headers: { ...headers, 'Content-Encoding': 'zstd' } }),
    ...[`${postHead(path + query, 8_388_609, lines.join(''))}{`, longHeaders].map(async (bytes) =>
      parsedAnswer('post', path, await raw(bytes)),
    ),
  ];
}

/** A response on a separate connection. */
export function parsedAnswer(method: string, path: string, raw: string): Answer {
  const [head = '', text = ''] = raw.split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  const headers = new Headers(lines.map((line) => line.split(': ', 2) as [string, string]));
  return { method, path, status: Number(statusLine.split(' ')[1]), headers, text };
}

/** Expects each response to match its description. */
export function expectEachDescribed(api: Description, answers: readonly Answer[]) {
  const given = new Set<string>();
  const shown = new Set<string>();
  for (const answer of answers) {
    const { name, answer: described } = describedAs(api, answer);
    const key = `${answer.method} ${answer.path} ${answer.status}`;
    expect({ key, text: answer.text, wrong: wrongHeaders(api, answer, described) }).toMatchObject({
      wrong: [],
    });
    expect({ key, text: answer.text, wrong: wrongBody(api, answer, described) }).toMatchObject({ wrong: [] });
    given.add(key);
    shown.add(`${name} ${exampleOf(answer, described)}`);
  }
  return { given, shown };
}

/** Expects each response to match its description, and all responses and examples of these paths to occur. */
export function expectDescribed(
  api: Description,
  answers: readonly Answer[],
  isMeant: (path: string) => boolean = () => true,
): void {
  const { given, shown } = expectEachDescribed(api, answers);
  const meant = api.operations.filter(({ path }) => isMeant(path));
  const described = meant.flatMap(({ method, path, operation }) =>
    Object.keys(operation.responses).map((status) => `${method} ${path} ${status}`),
  );
  expect([...given].sort()).toEqual(described.sort());
  const references = new Set(
    meant.flatMap(({ operation }) => Object.values(operation.responses).map(({ $ref }) => $ref)),
  );
  const examples = [...references].flatMap(($ref) => {
    const { content = {} } = api.resolved({ $ref }) as DescribedAnswer;
    const named = content['application/json']?.examples ?? {};
    return Object.keys(named).map((example) => `${$ref.split('/').at(-1)} ${example}`);
  });
  expect([...shown]).toEqual(expect.arrayContaining(examples));
}

function describedAs(
  api: Description,
  { method, path, status }: Answer,
): { name: string; answer: DescribedAnswer } {
  const reference = api.document.paths[path]?.[method]?.responses[status];
  if (reference === undefined) {
    throw new Error(`${method} ${path} answers ${status}, which is not described`);
  }
  const name = '$ref' in reference ? (reference.$ref.split('/').at(-1) ?? '') : '';
  return { name, answer: api.resolved(reference) as DescribedAnswer };
}

/** Headers of HTTP itself, and headers for browsers. */
const PLUMBING = [
  'Content-Type',
  'Content-Length',
  'Connection',
  'Keep-Alive',
  'Date',
  'Vary',
  'Transfer-Encoding',
].concat(Object.keys(PAGE_HEADERS));

function wrongHeaders(api: Description, { headers }: Answer, described: DescribedAnswer): string[] {
  const wrong = Object.entries(described.headers).flatMap(([name, reference]) => {
    const { schema, required } = api.resolved(reference) as { schema: Schema; required: boolean };
    const text = headers.get(name);
    if (text === null && !required) {
      return [];
    }
    const value = text !== null && schema.type === 'integer' ? Number(text) : text;
    return api.mistakes(schema, value).map((mistake) => `${name}:${mistake}`);
  });
  const known = [...Object.keys(described.headers), ...PLUMBING].map((name) => name.toLowerCase());
  return [...wrong, ...[...headers.keys()].filter((name) => !known.includes(name))];
}

/** Undescribed attributes are errors, too: clients may accept more, but we describe all that we send. */
function wrongBody(api: Description, { headers, text }: Answer, { content }: DescribedAnswer): string[] {
  const type = headers.get('Content-Type')?.split(';')[0];
  if (content === undefined) {
    return text === '' && type === undefined ? [] : [`${type} "${text}" where no body is described`];
  }
  const described = content[type ?? ''];
  if (described === undefined) {
    return [`a body of type ${type}`];
  }
  const value: unknown = type?.endsWith('json') ? JSON.parse(text) : text;
  const { properties } = api.resolved(described.schema) as { properties?: object };
  const more =
    properties === undefined || 'openapi' in properties
      ? []
      : Object.keys(value as object).filter((name) => !(name in properties));
  return [...api.mistakes(described.schema, value), ...more];
}

/** The name of the example that equals the body, except for the request id. */
function exampleOf({ headers, text }: Answer, { content = {} }: DescribedAnswer): string | undefined {
  const id = headers.get('X-Openstack-Request-Id') ?? '';
  const examples = Object.entries(content['application/json']?.examples ?? {});
  return examples.find(([, { value }]) => {
    const shown = JSON.stringify(value, (name, part) => (name === 'request_id' ? id : part));
    return shown === text;
  })?.[0];
}
