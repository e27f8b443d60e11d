/** The most expensive requests of a given size for each endpoint, valid and invalid. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../requests.ts';
import { atMost, JSON_SHAPES, type Shape, textOf, YAML_SHAPES } from './shapes.ts';

export interface ExpensiveRequest {
  readonly name: string;
  readonly path: string;
  readonly contentType: string;
  /** Built when it is sent, because there are many and they are long. */
  readonly body: () => Buffer;
}

/** The text of a request with a placeholder for a shape. */
type Place = (shape: Shape, bytes: number) => string;

const DATES = '"start_date":"2030-01-01 09:00","end_date":"2030-01-02 09:00"';
const CONTEXT = '"context":{"user_id":"u","project_id":"p"}';

/** `text` with the shape in place of `§`, about this many bytes in all. */
function within(text: string): Place {
  return (shape, bytes) => text.replace('§', () => shape(bytes - text.length));
}

const lease = (members: string) => within(`{${CONTEXT},"lease":{${DATES},${members}}}`);
const update = (current: string, next: string) =>
  within(`{${CONTEXT},"current_lease":{${DATES},${current}},"lease":{${DATES},${next}}}`);

const CREATE: Readonly<Record<string, Place>> = {
  'the body': (shape, bytes) => shape(bytes),
  'a context': within(`{"context":§,"lease":{${DATES}}}`),
  'a project': within(`{"context":{"user_id":"u","project_id":§},"lease":{${DATES}}}`),
  'an attribute of the context': within(
    `{"context":{"user_id":"u","project_id":"p","a":§},"lease":{${DATES}}}`,
  ),
  'a region': within(`{"context":{"user_id":"u","project_id":"p","region_name":§},"lease":{${DATES}}}`),
  'a lease': within(`{${CONTEXT},"lease":§}`),
  'a date': within(`{${CONTEXT},"lease":{"start_date":§,"end_date":"2030-01-02"}}`),
  'a name': lease('"name":§'),
  'an id': lease('"id":§'),
  'an attribute': lease('"a":§'),
  reservations: lease('"reservations":§'),
  'a resource type': lease('"reservations":[{"resource_type":§,"max":1}]'),
  'a size': lease('"reservations":[{"resource_type":"physical:host","max":§}]'),
  'a resource property': lease(
    '"reservations":[{"resource_type":"physical:host","max":1,"resource_properties":§}]',
  ),
  'a flavor': lease('"reservations":[{"resource_type":"flavor:instance","amount":1,"flavor_id":§}]'),
  'an attribute of a reservation': lease('"reservations":[{"resource_type":"physical:host","max":1,"a":§}]'),
  allocations: lease(
    '"reservations":[{"resource_type":"physical:host","min":1,"max":20000,"allocations":§}]',
  ),
  'an allocation': lease('"reservations":[{"resource_type":"physical:host","max":1,"allocations":[§]}]'),
  'a factor': lease(
    '"reservations":[{"resource_type":"physical:host","max":1,"allocations":[{"su_factor":§}]}]',
  ),
};

/** A project whose leases a filter changes. */
const CHANGED = within(`{"context":{"user_id":"u","project_id":"q"},"lease":{${DATES},"reservations":§}}`);

const UPDATE: Readonly<Record<string, Place>> = {
  'reservations of both': (shape, bytes) =>
    update('"reservations":§', '"reservations":§')(shape, bytes / 2).replace('§', () => shape(bytes / 2)),
  'current reservations': update('"reservations":§', '"reservations":[{"id":"a","max":1}]'),
  'the name of both': (shape, bytes) =>
    update('"id":"a","name":§', '"name":§')(shape, bytes / 2).replace('§', () => shape(bytes / 2)),
};

const host = (index: number) =>
  `{"id":"r${index}","resource_type":"physical:host","min":1,"max":1,"resource_properties":"[\\"==\\",\\"$gpu\\",\\"${index}\\"]"}`;
const property = (index: number) => `[\\"==\\",\\"$p${index}\\",\\"x\\"]`;

/** Shapes for the content of leases, up to the accepted size and beyond. */
const LEASE_SHAPES: Readonly<Record<string, Shape>> = {
  'right reservations': atMost(500, host),
  'reservations with a long property': (bytes) =>
    atMost(
      500,
      (index) =>
        `{"resource_type":"physical:host","max":1,"x":${textOf('ä')(Math.min(500, bytes / 500 - 100))},"i":${index}}`,
    )(bytes),
  'more reservations': atMost(60_000, host),
  'reservations of different types': atMost(500, (index) => `{"resource_type":"t${index}","amount":1}`),
  'reservations with the same id': atMost(1000, () => '{"id":"a","resource_type":"physical:host","max":1}'),
  'reservations with many properties': (bytes) => {
    const many = `"[\\"and\\",${Array.from({ length: 99 }, (_, index) => property(index)).join(',')}]"`;
    return atMost(
      1000,
      () => `{"resource_type":"physical:host","max":1,"resource_properties":${many}}`,
    )(bytes);
  },
  'reservations with deep properties': (bytes) =>
    atMost(
      1000,
      () => `{"resource_type":"physical:host","max":1,"resource_properties":"${'['.repeat(8000)}"}`,
    )(bytes),
  'captured hosts': (bytes) => {
    const { lease: captured } = JSON.parse(
      readFileSync(join(ROOT, 'test/fixtures/blazar-wire/check-create-physical-host.json'), 'utf8'),
    );
    const [reservation] = captured.reservations;
    const text = JSON.stringify(reservation.allocations[0]);
    const count = Math.floor((bytes - 2000) / (text.length + 8));
    const allocations = Array.from({ length: count }, (_, id) => ({
      ...reservation.allocations[0],
      id: String(id),
    }));
    return JSON.stringify([{ ...reservation, max: count, allocations }]);
  },
  'reservations with allocations': atMost(
    500,
    (index) =>
      `{"id":"r${index}","resource_type":"physical:host","max":20,"allocations":[${Array(40).fill('{"su_factor":"2.5"}').join(',')}]}`,
  ),
};

const ALLOCATION_SHAPES: Readonly<Record<string, Shape>> = {
  'right allocations': atMost(20_000, (index) => `{"id":"${index}","su_factor":"1.5"}`),
  'different allocations': atMost(20_000, (index) => `{"id":"${index}","k${index}":1}`),
  'allocations without anything': atMost(20_000, () => '{}'),
};

const pod = (spec: string) =>
  within(
    `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","resource":{"group":"","version":"v1","resource":"pods"},"operation":"CREATE","namespace":"n","object":{"metadata":{"name":"p"},"spec":${spec}}}}`,
  );
const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';

const REVIEW: Readonly<Record<string, Place>> = {
  'the body': (shape, bytes) => shape(bytes),
  'a request': within('{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":§}'),
  'a specification': pod('§'),
  'an unknown attribute': pod('{"a":§}'),
  'a scheduler': pod('{"schedulerName":§}'),
  'a node selector': pod('{"nodeSelector":§}'),
  tolerations: pod('{"tolerations":§}'),
  'an affinity': pod('{"affinity":§}'),
  terms: pod(`{"affinity":{"nodeAffinity":{"${REQUIRED}":{"nodeSelectorTerms":§}}}}`),
  expressions: pod(
    `{"affinity":{"nodeAffinity":{"${REQUIRED}":{"nodeSelectorTerms":[{"matchExpressions":§}]}}}}`,
  ),
  'values of an expression': pod(
    `{"affinity":{"nodeAffinity":{"${REQUIRED}":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"In","values":§}]}]}}}}`,
  ),
  'terms of other pods': pod(`{"affinity":{"podAffinity":{"${REQUIRED}":§}}}`),
};

const POD_SHAPES: Readonly<Record<string, Shape>> = {
  'right tolerations': atMost(
    1000,
    (index) => `{"key":"k${index}","operator":"Equal","value":"v","effect":"NoSchedule"}`,
  ),
  'right labels': atMost(9000, (index) => `"k${index}":"v"`, ['{', '}']),
  'right values': atMost(10_000, (index) => `"node-${index}"`),
  'right terms': atMost(
    1000,
    (index) => `{"matchExpressions":[{"key":"k${index}","operator":"In","values":["a","b"]}]}`,
  ),
  'terms with many expressions': atMost(
    300,
    () => `{"matchExpressions":[${Array(90).fill('{"key":"k","operator":"In","values":["v"]}').join(',')}]}`,
  ),
  'right expressions': atMost(1000, (index) => `{"key":"k${index}","operator":"In","values":["a","b"]}`),
};

/** The shapes for each endpoint. `bytes`: maximum length of a body. */
export function* expensiveRequests(bytes: number): Generator<ExpensiveRequest> {
  const size = bytes - 64;
  const all = { ...JSON_SHAPES, ...LEASE_SHAPES };
  yield* jsonRequests('/check-create', CREATE, all, size);
  yield* jsonRequests('/check-create', { allocations: CREATE.allocations as Place }, ALLOCATION_SHAPES, size);
  yield* jsonRequests('/check-create', { 'reservations that are changed': CHANGED }, LEASE_SHAPES, size);
  yield* jsonRequests(
    '/check-update',
    UPDATE,
    { ...LEASE_SHAPES, 'a text': textOf('a'), 'a text of umlauts': textOf('ä') },
    size,
  );
  yield* jsonRequests(
    '/on-end',
    { reservations: CREATE.reservations as Place, 'a name': CREATE['a name'] as Place },
    all,
    size,
  );
  yield* jsonRequests('/kubernetes/admission?timeout=10s', REVIEW, { ...JSON_SHAPES, ...POD_SHAPES }, size);
  yield* jsonRequests('/kubernetes/validation?timeout=10s', REVIEW, POD_SHAPES, size);
  yield* skypilotRequests(size);
  yield* formRequests(size);
}

function* jsonRequests(
  path: string,
  places: Readonly<Record<string, Place>>,
  shapes: Readonly<Record<string, Shape>>,
  bytes: number,
): Generator<ExpensiveRequest> {
  for (const [where, place] of Object.entries(places)) {
    for (const [what, shape] of Object.entries(shapes)) {
      const body = () => Buffer.from(place(shape, bytes));
      yield { name: `${path}: ${what} as ${where}`, path, contentType: 'application/json', body };
    }
  }
}

function* skypilotRequests(bytes: number): Generator<ExpensiveRequest> {
  const path = '/skypilot/admin-policy';
  const contentType = 'application/json';
  for (const [what, shape] of Object.entries(JSON_SHAPES)) {
    const body = () => Buffer.from(shape(bytes));
    yield { name: `${path}: ${what} as the body`, path, contentType, body };
    const inner = () => inText(shape(bytes), bytes);
    yield { name: `${path}: ${what} in a text`, path, contentType, body: inner };
  }
  for (const [what, shape] of Object.entries(YAML_SHAPES)) {
    for (const member of ['task', 'skypilot_config', 'user']) {
      const body = () => envelope(member, shape, bytes);
      yield { name: `${path}: ${what} as ${member}`, path, contentType, body };
    }
  }
}

/** Newlines and quotes are escaped twice, so less fits. */
function envelope(member: string, shape: Shape, bytes: number): Buffer {
  for (let size = bytes - 200; ; size = Math.floor(size * 0.8)) {
    const members = {
      task: 'run: x\n',
      skypilot_config: '{}\n',
      request_name: 'launch',
      [member]: shape(size),
    };
    const body = Buffer.from(JSON.stringify(JSON.stringify(members)));
    if (body.length <= bytes) {
      return body;
    }
  }
}

function inText(text: string, bytes: number): Buffer {
  const body = Buffer.from(JSON.stringify(text));
  return body.length <= bytes
    ? body
    : Buffer.from(JSON.stringify(text.slice(0, (text.length * bytes) / body.length - 8)));
}

function* formRequests(bytes: number): Generator<ExpensiveRequest> {
  const path = '/';
  const contentType = 'application/x-www-form-urlencoded';
  const forms: Readonly<Record<string, () => string>> = {
    fields: () => '&a=1'.repeat((3 * bytes) / 4),
    'empty fields': () => '&a'.repeat((3 * bytes) / 2),
    escapes: () => `operation=create&request=${'%5B'.repeat(bytes)}`,
    brackets: () => `operation=create&request=${'['.repeat(bytes)}`,
    'right reservations': () =>
      `operation=create&request=${encodeURIComponent((CREATE.reservations as Place)(LEASE_SHAPES['right reservations'] as Shape, bytes))}`,
  };
  for (const [what, form] of Object.entries(forms)) {
    yield { name: `${path}: a form of ${what}`, path, contentType, body: () => Buffer.from(form()) };
  }
}
