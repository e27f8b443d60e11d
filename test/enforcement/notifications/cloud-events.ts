/** Events as any receiver of CloudEvents reads them. */
import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { expect } from 'vitest';
import { projectFile } from '../../support/files.ts';

export interface CloudEvent {
  readonly id: string;
  readonly source: string;
  readonly type: string;
  readonly subject: string;
  readonly time: string;
  readonly data: Readonly<Record<string, unknown>>;
}

const ajv = new Ajv({
  allowUnionTypes: true,
  formats: {
    'uri-reference': /^[A-Za-z0-9\-._~:/?#@!$&'()*+,;=%]*$/,
    uri: /^[a-z][a-z0-9+.-]*:\S+$/i,
    'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/,
  },
});
const isEvent = ajv.compile(
  JSON.parse(readFileSync(projectFile('test/fixtures/cloudevents/cloudevents.json'), 'utf8')) as object,
);

/** A body that was sent: valid by the schema of CloudEvents, and its attributes of characters that attributes may have. */
export function eventIn(body: string): CloudEvent {
  const event = JSON.parse(body) as CloudEvent;
  expect(isEvent(event), JSON.stringify(isEvent.errors)).toBe(true);
  for (const [name, value] of Object.entries(event)) {
    expect(name).toMatch(/^[a-z0-9]{1,20}$/);
    if (name !== 'data') {
      expect(value).toMatch(/^[^\p{Cc}\p{Cs}]+$/u);
    }
  }
  return event;
}
