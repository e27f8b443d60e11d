import { describe, expect, it } from 'vitest';
import { stackTraceIn } from '../../src/conformance/checks/whole-run.ts';

const NODE =
  'TypeError: x is not a function\n    at check (/srv/app.js:12:5)\n    at node:internal/process:95:5';

describe('a stack trace is seen', () => {
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
    ['of Python without its first line', '  File "/srv/app.py", line 12, in check'],
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
  ])('%s', ([, body = '']) => {
    expect(stackTraceIn(body)).toBe(true);
  });
});

describe('no stack trace is seen in', () => {
  it.for([
    '',
    '{"message":"The lease is 864000 seconds (10 days) long; the longest allowed is 172800 seconds (2 days)."}',
    '{"message":"No hosts on Sundays.\\nAsk at the help desk (room 12:30)."}',
    'Leases start\nat 09:00 at the earliest',
    '{"message":"expected JSON at line 3"}',
    '<h1>Bad Request</h1><br>at your service',
    '#1 of your leases is too long',
    'see policy.php for more',
  ])('%s', (body) => {
    expect(stackTraceIn(body)).toBe(false);
  });
});
