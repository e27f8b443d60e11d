import { describe, expect, it } from 'vitest';
import { conformanceCommand } from '../../src/cli/conformance.ts';
import type { Check, Finding } from '../../src/conformance/check.ts';
import { PROJECT_ID, USER_ID } from '../../src/conformance/leases.ts';
import { detailsOf, jsonOf } from '../../src/conformance/report.ts';
import { CHECKS, runConformance, stackTraceIn } from '../../src/conformance/run.ts';
import type { Exchange } from '../../src/conformance/target.ts';
import { namesUnder, pageNamed, tableUnder } from '../docs/markdown.ts';
import { daysLong, endpointsAt, smallService, TOKEN } from './services.ts';

const check: Check = {
  id: 'x',
  title: 'x',
  protocol: 'Says so.',
  sources: ['here', 'there'],
  run: () => [],
};

function finding(number: number): Finding {
  const exchange: Exchange = {
    operation: 'create',
    url: 'http://h/check-create',
    what: `lease ${number}`,
    bytes: 7,
    headers: { 'X-Auth-Token': '****' },
    valid: true,
    answer: { status: 200, headers: {}, body: 'fine', strayBytes: false },
    excerpt: 'fine',
    failure: undefined,
    milliseconds: 1,
  };
  return { expected: 'something else', exchange };
}

const details = (count: number) =>
  detailsOf({
    check,
    result: 'failed',
    reason: null,
    findings: Array.from({ length: count }, (_, index) => finding(index + 1)),
    exchanges: [],
    milliseconds: 1,
  });

it('a failure says what was sent, what came, what was expected, and what the protocol says where', () => {
  expect(details(1)).toEqual([
    ['sent', 'POST http://h/check-create: lease 1, 7 bytes; X-Auth-Token: ****'],
    ['came', '200 fine'],
    ['expected', 'something else'],
    ['protocol', 'Says so.'],
    ['source', 'here; there'],
  ]);
});

it('of more than three wrong answers the first three are told, and how many more there are', () => {
  expect(details(3)).toHaveLength(11);
  expect(details(5).slice(8)).toEqual([
    ['expected', 'something else'],
    ['more', '2 more unexpected answers'],
    ['protocol', 'Says so.'],
    ['source', 'here; there'],
  ]);
});

const page = pageNamed('docs/reference/conformance-checks.md');
const text = page.lines.join('\n');
const guide = pageNamed('docs/conformance.md').lines.join('\n');

describe('docs/conformance.md and docs/reference/conformance-checks.md', () => {
  it('names every check and what it proves', () => {
    expect(tableUnder(page, 'The checks')).toEqual(CHECKS.map(({ id, title }) => [`\`${id}\``, title]));
  });

  it('names every field of a JSON line', async () => {
    const { url } = await smallService();
    const [check] = CHECKS;
    const options = { endpoints: endpointsAt(url), credentials: { token: TOKEN }, timeout: 5 };
    const { results } = await runConformance({ ...options, checks: check === undefined ? [] : [check] });
    const [line] = results.map(jsonOf);
    expect(namesUnder(page, 'For programs').filter((name) => !/ /.test(name))).toEqual(
      Object.keys(line ?? {}),
    );
  });

  it('says whose leases the service will see, and of how many requests', async () => {
    const { url, asked } = await smallService();
    const options = { endpoints: endpointsAt(url), credentials: { token: TOKEN }, timeout: 5 };
    const { requests } = await runConformance({
      ...options,
      allowLease: daysLong(1),
      denyLease: daysLong(9),
    });
    const [, shown] = /^About (\d+) requests/m.exec(guide) ?? [];
    expect(Math.round(requests / 10) * 10).toBe(Number(shown));
    const lengths = asked.map((one) => one.text.length);
    expect(Math.round(Math.max(...lengths) / 1e6)).toBe(5);

    const owners = asked
      .flatMap(({ json }) => json ?? [])
      .map(({ context }) => `${context.project_id} ${context.user_id}`);
    expect(new Set(owners)).toEqual(new Set([`${PROJECT_ID} ${USER_ID}`, 'climate alice']));
    expect(guide).toContain(`\`${PROJECT_ID}\``);
    expect(guide).toContain(`\`${USER_ID}\``);
  });

  it('names every flag, and the variables of the tokens', () => {
    const flags = conformanceCommand().options.map(({ long }) => long);
    expect(flags.filter((flag) => !text.includes(`${flag}`))).toEqual([]);
    const variables = conformanceCommand().options.flatMap(({ envVar }) => envVar ?? []);
    expect(variables.filter((variable) => !text.includes(`\`${variable}\``))).toEqual([]);
  });
});

const NODE =
  'TypeError: x is not a function\n    at check (/srv/app.js:12:5)\n    at node:internal/process:95:5';

it.for([
  ['of Node.js', NODE],
  ['of Node.js in JSON', JSON.stringify({ message: 'oops', stack: NODE })],
  [
    'of Express',
    '<pre>SyntaxError: Unexpected token<br> &nbsp; &nbsp;at JSON.parse (&#60;anonymous&#62;)<br> &nbsp; &nbsp;at parse (/srv/node_modules/body-parser/lib/types/json.js:92:19)</pre>',
  ],
  [
    'of Python',
    'Traceback (most recent call last):\n  File "/srv/app.py", line 12, in check\nKeyError: \'lease\'',
  ],
  ['of Python in JSON', JSON.stringify({ detail: 'File "/srv/app.py", line 3, in <module>' })],
  ['of Django', '<td>File &quot;/srv/app.py&quot;, line 12, in check</td>'],
  ['of Java', 'java.lang.NullPointerException\n\tat org.example.Policy.check(Policy.java:42)\n'],
  [
    'of Spring in JSON',
    '{"trace":"java.lang.NullPointerException\\r\\n\\tat org.example.Policy.check(Policy.java:42)\\r\\n"}',
  ],
  [
    'of .NET',
    'System.NullReferenceException: Object reference\r\n   at Policy.Check(Lease lease) in C:\\src\\Policy.cs:line 42',
  ],
  ['of Go', 'panic: nil map\n\ngoroutine 19 [running]:\nmain.check(0x0)'],
  ['of Rust', "thread 'tokio-runtime-worker' panicked at src/main.rs:12:5"],
  ['of Ruby', "app.rb:12:in `check': undefined method (NoMethodError)"],
  ['of PHP', '#0 /srv/policy/index.php(12): check()\n#1 {main}'],
])('a stack trace is seen %s', ([, body = '']) => {
  expect(stackTraceIn(body)).toBe(true);
});

it.for([
  '{"message":"The lease is 864000 seconds (10 days) long; the longest allowed is 172800 seconds (2 days)."}',
  '{"message":"No hosts on Sundays.\\nAsk at the help desk (room 12:30)."}',
  'Leases start\nat 09:00 at the earliest',
  '{"message":"expected JSON at line 3"}',
  '<h1>Bad Request</h1><br>at your service',
  '#1 of your leases is too long',
])('no stack trace is seen in %s', (body) => {
  expect(stackTraceIn(body)).toBe(false);
});
