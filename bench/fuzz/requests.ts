/** Generates malformed requests: mutated bodies, encodings and headers; path and method may not match. */
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { fuzzedText, type Operation, onceIn } from './texts.ts';

export interface FuzzedRequest {
  readonly operation: Operation;
  readonly method: string;
  /** Usually a field of the operation. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Sent without Content-Length. */
  readonly chunked: boolean;
}

/** The encoding of the body, and the headers that describe it. */
const ENCODINGS: readonly { readonly says?: string; readonly make: (text: string) => Buffer }[] = [
  { says: 'gzip', make: (text) => gzipSync(text) },
  { says: 'deflate', make: (text) => deflateSync(text) },
  { says: 'deflate', make: (text) => deflateRawSync(text) },
  { says: 'br', make: (text) => brotliCompressSync(text) },
  { says: 'identity', make: (text) => Buffer.from(text) },
  // With headers that do not match.
  { says: 'gzip', make: (text) => Buffer.from(text) },
  { says: 'br', make: (text) => gzipSync(text) },
  { make: (text) => gzipSync(text) },
  { says: 'gzip', make: (text) => gzipSync(text).subarray(0, -9) },
  { says: 'gzip', make: (text) => Buffer.concat([gzipSync(text), Buffer.from('and more')]) },
  { says: 'zstd', make: (text) => Buffer.from(text) },
  { says: 'gzip, gzip', make: (text) => gzipSync(gzipSync(text)) },
  { make: (text) => Buffer.from(text, 'utf16le') },
  { make: (text) => Buffer.from(text, 'latin1') },
  { make: (text) => Buffer.from(text).subarray(0, -1) },
  { make: () => Buffer.alloc(0) },
];

const encoding = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constant({ make: (made: string) => Buffer.from(made) } as (typeof ENCODINGS)[0]),
  },
  { weight: 1, arbitrary: fc.constantFrom(...ENCODINGS) },
);

const flips = onceIn(
  10,
  fc.array(fc.record({ at: fc.nat(), bits: fc.integer({ min: 1, max: 255 }) }), {
    minLength: 1,
    maxLength: 3,
  }),
  [],
);

const method = onceIn(
  20,
  fc.constantFrom('GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'),
  'POST',
);

export const PLAIN_PATHS = ['/', '/v1/'];

/** Contains the name of the operation. */
const path = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.constantFrom(...PLAIN_PATHS).map((folder) => (name: string) => folder + name),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      (name: string) => `/${name}/`,
      (name: string) => `/${name}?lease=1`,
      (name: string) => `//${name}`,
      (name: string) => `/v2/${name}`,
      (name: string) => `/${name}/../${name}`,
      (name: string) => `/${name.toUpperCase()}`,
      (name: string) => `/${name.replace('e', '%65')}`,
      (name: string) => `/${name}%00`,
      (name: string) => `/${name}%`,
    ),
  },
);

export const JSON_TYPES = ['application/json', 'application/json; charset=utf-8'];

const OTHER_TYPES =
  'APPLICATION/JSON|application/json;charset="UTF-8"|application/json; charset=utf-16|application/json; charset=latin1|application/json;|application/vnd.api+json|text/json|text/plain|application/x-www-form-urlencoded|multipart/form-data; boundary=x|application|*/*|;|""|'.split(
    '|',
  );

const contentType = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...JSON_TYPES) },
  { weight: 1, arbitrary: fc.constantFrom(...OTHER_TYPES) },
);

const HEADERS =
  'x-auth-token authorization x-openstack-request-id accept accept-encoding cookie x-forwarded-for forwarded if-none-match range referer te x-http-method-override'.split(
    ' ',
  );

const headerText = fc.string({
  unit: fc.integer({ min: 32, max: 126 }).map((code) => String.fromCharCode(code)),
});

const furtherHeaders = onceIn(3, fc.dictionary(fc.constantFrom(...HEADERS), headerText), {});

/** Any of them. Two in five reach the chain. */
export const fuzzedRequest: fc.Arbitrary<FuzzedRequest> = fc
  .record({
    text: fuzzedText,
    method,
    path,
    encoding,
    flips,
    contentType,
    furtherHeaders,
    chunked: fc.boolean(),
  })
  .map(({ text: made, encoding: { says, make }, flips: flipped, contentType: type, ...rest }) => {
    const body = make(made.text);
    for (const { at, bits } of body.length === 0 ? [] : flipped) {
      body.writeUInt8((body[at % body.length] ?? 0) ^ bits, at % body.length);
    }
    return {
      operation: made.operation,
      method: rest.method,
      path: rest.path(made.operation),
      headers: {
        ...rest.furtherHeaders,
        'content-type': type,
        ...(says !== undefined && { 'content-encoding': says }),
      },
      body,
      chunked: rest.chunked,
    };
  });
