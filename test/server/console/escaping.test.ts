import fc from 'fast-check';
import { h } from 'preact';
import { renderToString } from 'preact-render-to-string';
import { describe, expect, it } from 'vitest';
import type { DecisionRecord } from '../../../src/decisions/record.ts';
import { DecisionTable } from '../../../src/server/console/decisions/decision-table.tsx';
import { ErrorContent } from '../../../src/server/console/error-page.tsx';
import { Layout } from '../../../src/server/console/layout.tsx';
import { CONSOLE_PAGES } from '../../../src/server/console/pages.ts';
import { Field, LongField, Select } from '../../../src/server/console/parts/fields.tsx';
import { Pager } from '../../../src/server/console/parts/pager.tsx';
import { Text } from '../../../src/server/console/parts/parts.tsx';
import { Chart } from '../../../src/server/console/parts/pictures.tsx';
import type { Caller } from '../../../src/server/users/caller.ts';
import { ANY_CHARACTER } from '../../support/characters.ts';
import { filterSource } from '../../support/filter-folder.ts';
import { createLasting } from '../../support/requests.ts';
import { runService } from '../../support/running-service.ts';
import { rowsOf, textOf, visitor } from './visitor.ts';

const HOSTILE = [
  '</script><script>alert(1)</script>',
  '<img src=x onerror=alert(1)>',
  '"><img src=x onerror="alert(1)">',
  "' onmouseover='alert(1)",
  '</td></tr></table></section><h1>Allowed</h1>',
  '</textarea><svg/onload=alert(1)>',
  '<!--',
  ']]><![CDATA[',
  '&lt;script&gt;&#60;b&#62;&nbsp;&quot;',
  '{{7*7}}<%= 7*7 %>',
  'javascript:alert(1)',
  '\u{1f600} \u05d0\u05d1 العربية',
  '<'.repeat(255),
];
const INVISIBLE = '\u0000\u0007\u001b[31m\u007f\u0085\u200e\u200f\u061c\u202a\u202e\u2066\u2069\u2028\u2029';

/** All that a record can hold of what somebody else has written. */
function record(text: string): DecisionRecord {
  return {
    ...{ time: '2026-12-01T09:00:00.000Z', request_id: 'req-1', operation: 'create', generation: 1 },
    ...{ allowed: false, outcome: 'rejected', failed: false, duration_ms: 1, filter: text, message: text },
    ...{ project_id: text, user_id: text, lease_id: text, lease_name: text, warnings: [text] },
    filters: [{ filter: text, outcome: 'rejected', audit: false, message: text, duration_ms: 1 }],
  };
}

const caller = (text: string): Caller => ({
  ...{ kind: 'member', provenBy: 'keystone', identity: text, who: text, name: text, userId: text },
  memberships: [{ projectId: text, name: text, domain: text, isManager: true }],
});

const everywhere = (text: string): string[] => [
  renderToString(h(DecisionTable, { label: 'x', decisions: [record(text)] })),
  renderToString(h(ErrorContent, { message: text, requestId: 'req-1', isForm: true })),
  renderToString(h(Field, { name: 'x', label: 'x', value: text, mistake: text, suggestions: [text] })),
  renderToString(h(LongField, { name: 'x', label: 'x', value: text, rows: 3 })),
  renderToString(h(Select, { name: 'x', label: 'x', options: [[text, text]] })),
  renderToString(
    h(Layout, {
      ...{ title: text, caller: caller(text), csrf: 'x', pages: CONSOLE_PAGES, path: '/', children: null },
    }),
  ),
];

/** Where texts are data. */
function inParts(text: string): string {
  const series = [{ label: text, look: 'used', form: 'line', values: [1] }] as const;
  const query = new URLSearchParams({ after: `x${text}`, before: `x${text}`, page: text, x: text });
  return [
    renderToString(h(Chart, { id: 'x', title: text, description: text, unit: text, times: [1], series })),
    renderToString(h(Pager, { label: 'x', path: '/x', query, next: `x${text}` })),
  ].join('');
}

/** What is left without the texts: all tags, and the names of their attributes. */
const tags = (text: string) =>
  [...everywhere(text), inParts(text)]
    .join('')
    // An attribute may hold what ends a tag elsewhere.
    .match(/<(?:[^">]|"[^"]*")*>/g)
    ?.map((tag) => tag.replace(/="[^"]*"/g, '='))
    .join('\n');

describe('a text of somebody else', () => {
  it.for(HOSTILE)('adds no tag and no attribute, and is read as it is: %j', (text) => {
    expect(tags(text)).toBe(tags('x'));
    for (const html of everywhere(text).slice(0, 2)) {
      expect(textOf(html).toLowerCase()).toContain(text.toLowerCase());
    }
  });

  it('adds none, whatever it is', () => {
    const anything = fc.oneof(
      fc.string({ unit: ANY_CHARACTER, minLength: 1 }),
      fc.string({ unit: fc.constantFrom(...'<>"\'&/!-= ax\u202e'), minLength: 1 }),
    );
    const plain = tags('x');
    fc.assert(
      fc.property(anything, (text) => {
        expect(tags(text)).toBe(plain);
      }),
    );
  });

  it('has its invisible characters named, and changes the direction of nothing else', () => {
    const html = renderToString(h(Text, { children: `a${INVISIBLE}b\tc\r\nd` }));
    expect(textOf(html)).toBe(
      'a[U+0000][U+0007][U+001B][31m[U+007F][U+0085][U+200E][U+200F][U+061C][U+202A][U+202E][U+2066][U+2069][U+2028][U+2029]b c d',
    );
    expect(html).toMatch(/^<bdi>.*<\/bdi>$/s);
  });

  it('is shown so when it comes with a request: names, ids, and what a filter says', async () => {
    const { url, post } = await runService({
      enforcement: { enabled_filters: ['EchoFilter'], max_lease_duration: undefined },
      filters: {
        'echo-filter.js': filterSource('EchoFilter', { create: "return reject('No: ' + lease.name);" }),
      },
    });
    const name = `${HOSTILE[1]}\u202e"`.padEnd(255, 'w');
    const request = createLasting(60, { user_id: `${HOSTILE[0]}`, project_id: `${HOSTILE[2]}` });
    const { lease } = request;
    await post('/check-create', { ...request, lease: { ...lease, id: '<b>id</b>', name } });
    const { html } = await visitor(url).get('/decisions');
    const shown = name.replace('\u202e', '[U+202E]');
    expect(rowsOf(html, 'Decisions, the newest first')[0]?.slice(1, 5)).toEqual([
      '✗ rejected create · EchoFilter',
      `${shown} <b>id</b>`,
      `${HOSTILE[2]} ${HOSTILE[0]}`,
      `No: ${shown}`,
    ]);
    expect(html).not.toMatch(/<(script>|img|b>id)/);
  });
});
