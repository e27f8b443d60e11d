import fc from 'fast-check';
import { h } from 'preact';
import { renderToString } from 'preact-render-to-string';
import { describe, expect, it } from 'vitest';
import type { DecisionRecord } from '../../../src/decisions/record.ts';
import { Decisions } from '../../../src/server/console/decisions.tsx';
import { JudgeForm } from '../../../src/server/console/judging.tsx';
import { Ledger } from '../../../src/server/console/ledger.tsx';
import { Text } from '../../../src/server/console/text.tsx';
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

const everywhere = (text: string): string[] => [
  renderToString(h(Decisions, { decisions: [record(text)] })),
  renderToString(h(JudgeForm, { status: 200, operation: 'create', request: text, verdict: record(text) })),
  renderToString(h(JudgeForm, { status: 400, operation: 'create', request: text, error: text })),
];

/** Where texts are cut. */
function picture(text: string): string {
  const lease = { leaseId: `x${text}`, name: `x${text}`, userId: text, start: 0n, end: 1n };
  const budget = { id: 1n, projectId: text, userId: text, validFrom: 0n, validUntil: 1n, amount: 1n };
  const timeline = {
    ...{ now: 0n, recorded: 1, planned: undefined },
    leases: [{ ...lease, state: 'active' as const }],
  };
  const refused = [{ record: record(`x${text}`), start: 0n, end: 1n }];
  const project = { budgets: [{ ...budget, taken: 0n, left: 1n }], timeline, refused };
  return renderToString(h(Ledger, { projectId: 'x', unit: text, shown: { kind: 'project', project } }));
}

/** What is left without the texts: all tags with all attributes. */
const tags = (text: string) =>
  [...everywhere(text), picture(text)]
    .join('')
    .match(/<[^>]*>/g)
    ?.join('\n');

describe('a text of somebody else', () => {
  it.for(HOSTILE)('adds no tag and no attribute, and is read as it is: %j', (text) => {
    expect(tags(text)).toBe(tags('x'));
    for (const html of everywhere(text)) {
      expect(textOf(html)).toContain(text);
    }
  });

  it('adds none, whatever it is', () => {
    const anything = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string({ unit: fc.constantFrom(...'<>"\'&/!-= ax\u202e') }),
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
    const { html } = await visitor(url).get();
    const shown = name.replace('\u202e', '[U+202E]');
    expect(rowsOf(html, 'Latest decisions')[0]?.slice(1, 5)).toEqual([
      '✗ rejected create · EchoFilter',
      `${shown} <b>id</b>`,
      `${HOSTILE[2]} ${HOSTILE[0]}`,
      `No: ${shown}`,
    ]);
    expect(html).not.toMatch(/<(script|img|b>id)/);
  });
});
